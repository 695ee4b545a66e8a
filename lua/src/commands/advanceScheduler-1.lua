--[[
Adds the next job of a job scheduler, as the worker that fetches one of its jobs must do. The
worker has made its opts from those of the fetched one, which readScheduler gave it.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id of the scheduler
      3 id of the job that was fetched  4 the time in ms, as readScheduler returned it
      5 when the next job is due in ms  6 its opts, a JSON object

Returns 1; 0 when there is nothing to add: the scheduler is gone, the job is not its latest one,
or the call was sent twice.

Cost: O(log N) in the jobs delayed or prioritized and in the schedulers.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/full
--- include queue/add
--- include queue/wake

local prefix, scheduler, producer, timestamp, due, opts = unpack(ARGV, 1, 6)
local queue = queue_at(prefix)
local scheduler_key, id = queue["repeat"] .. ":" .. scheduler, "repeat:" .. scheduler .. ":" .. due
local wait = math.max(due - timestamp, 0)

local refused = refusal(queue, types_of(queue, prefix .. "id", "string", scheduler_key, "hash"))
if refused then
  return refused
end
local previous = tonumber(redis.call("ZSCORE", queue["repeat"], scheduler) or "")
if not previous or producer ~= "repeat:" .. scheduler .. ":" .. digits(previous)
  or redis.call("EXISTS", prefix .. id) == 1 then
  return 0
end
local job = redis.call("HMGET", prefix .. producer, "name", "data", "priority")
local plan = redis.call("HMGET", scheduler_key, "name", "data", "ic")
local name, priority = plan[1] or job[1] or "", number(job[3]) or 0
write_although_full(queue) -- or the scheduler would stop
redis.call("ZADD", queue["repeat"], due, scheduler)
redis.call("HSET", scheduler_key, "ic", digits(counter(plan[3]) + 1))
redis.pcall("INCR", prefix .. "id") -- when it holds no number, that is no matter of this job
redis.call("HSET", prefix .. id, "name", name, "data", plan[2] or job[2] or "{}", "opts", opts, "timestamp", timestamp,
  "delay", digits(wait), "priority", digits(priority), "rjk", scheduler)
if redis.call("EXISTS", prefix .. producer) == 1 then
  redis.call("HSET", prefix .. producer, "nrjid", id)
end
if add_to_queue(queue, id, name, priority, wait > 0 and tonumber(due) or 0) then
  wake(queue)
end
return 1
