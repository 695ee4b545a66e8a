--[[
Adds the next job of a job scheduler, as the worker that fetches one of its jobs must do.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id of the scheduler
      3 id of the job that was fetched  4 timestamp in ms
      5 when a cron pattern is due next in ms, or 0 for a scheduler with an interval

Returns 1; 0 when there is nothing to add: the scheduler is gone or has ended, the job is not
its latest one, or the call was sent twice.

Cost: O(log N) in the jobs delayed or prioritized and in the schedulers.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/add
--- include queue/full

local prefix, scheduler, producer, timestamp = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local queue = queue_at(prefix)
local scheduler_key = queue["repeat"] .. ":" .. scheduler
local now = tonumber(timestamp)

-- When a scheduler with an interval is due next: runs that were missed are left out.
local function next_of_interval(previous, every, offset)
  local due = previous + every
  if due < now then
    due = math.floor(now / every) * every + offset
    if due <= now then
      due = due + every
    end
  end
  return math.floor(due)
end

local function opts_of_next(opts, due, count, id)
  opts["repeat"] = type(opts["repeat"]) == "table" and opts["repeat"] or {}
  opts["repeat"].count = count
  opts.prevMillis, opts.delay, opts.timestamp, opts.jobId = due, math.max(due - now, 0), now, id
  return cjson.encode(opts)
end

local fault = refusal(queue, types_of(queue, prefix .. "id", "string", scheduler_key, "hash"))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local previous = tonumber(redis.call("ZSCORE", queue["repeat"], scheduler) or "")
if not previous or producer ~= "repeat:" .. scheduler .. ":" .. digits(previous) then
  return 0
end
local job = redis.call("HMGET", prefix .. producer, "opts", "name", "data", "priority")
local plan = redis.call("HMGET", scheduler_key, "name", "data", "every", "offset", "limit", "endDate")
local opts = object(job[1])
local every = number(plan[3])
local count = (type(opts["repeat"]) == "table" and number(opts["repeat"].count) or 0) + 1
local limit, ends = number(plan[5]), number(plan[6])
local due = every and every > 0 and next_of_interval(previous, every, number(plan[4]) or 0) or number(ARGV[5])
local id = "repeat:" .. scheduler .. ":" .. digits(due or 0)
if not due or due == 0 or (limit and count > limit) or (ends and now > ends) or redis.call("EXISTS", prefix .. id) == 1 then
  return 0
end

local priority = number(job[4]) or 0
write_although_full(queue) -- or the scheduler would stop
redis.call("ZADD", queue["repeat"], digits(due), scheduler)
redis.call("HSET", scheduler_key, "ic", digits(counter(redis.call("HGET", scheduler_key, "ic")) + 1))
redis.call("INCR", prefix .. "id")
redis.call("HSET", prefix .. id, "name", plan[1] or job[2] or "", "data", plan[2] or job[3] or "{}",
  "opts", opts_of_next(opts, due, count, id), "timestamp", timestamp, "delay", digits(math.max(due - now, 0)),
  "priority", digits(priority), "rjk", scheduler)
if redis.call("EXISTS", prefix .. producer) == 1 then
  redis.call("HSET", prefix .. producer, "nrjid", id)
end
add_to_queue(queue, id, plan[1] or job[2] or "", priority, due > now and due or 0)
return 1
