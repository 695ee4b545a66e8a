--[[
Requeues jobs that their worker holds and does not run, as if it had never fetched them.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon
      2 and on: id and token of each job, in the order in which they are to be fetched again

They are the next ones to be fetched. Returns the ids that the worker did not hold any more;
nothing is written for those, but that an id whose job is gone leaves `active`, and the job that
waits for its end is added. A call that is sent twice finds its jobs requeued.

Cost: for each job O(N) in `active` from its new end to the job, O(log N) in those prioritized.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/line
--- include queue/lists
--- include queue/time
--- include finish/gone

local prefix = ARGV[1]
local queue, timestamp = queue_at(prefix), time_in_ms()
local lost, has_freed = {}, false

-- The score that goes before all others of a priority. It may be lower than any that `pc`
-- gives out.
local function first_score(priority)
  local lowest, highest = priority * 2 ^ 32 - 2 ^ 31, priority * 2 ^ 32 + 2 ^ 31 - 1
  local first = redis.call("ZRANGEBYSCORE", queue.prioritized, digits(lowest), digits(highest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  return first and digits(math.max(tonumber(first) - 1, lowest)) or priority_score(queue, priority)
end

local function requeue_job(id)
  local key = prefix .. id
  local fields = redis.call("HMGET", key, "priority", "ats")
  local priority = number(fields[1]) or 0
  redis.call("DEL", key .. ":lock")
  redis.call("SREM", queue.stalled, id)
  redis.call("LREM", queue.active, 1, id) -- from its new end: jobs that were not started are not old
  redis.call("HSET", key, "ats", digits(math.max(counter(fields[2]) - 1, 0)))
  redis.call("HDEL", key, "processedOn", "pb")
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, first_score(priority), id)
  else
    redis.call("RPUSH", waiting_list(queue), id)
  end
  emit(queue, "waiting", id, "prev", "active")
  has_freed = true
end

-- What to do with a job whose lock is not the worker's. Only one that was requeued by this
-- very call has no lock and no worker.
local function look_for(id, lock)
  if redis.call("EXISTS", prefix .. id) == 0 then
    has_freed = (not lock and end_gone_job(queue, id, timestamp)) or has_freed
  elseif not lock and not attempt("HGET", prefix .. id, "pb") then
    return
  end
  lost[#lost + 1] = id
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
trim_events(queue)
for at = #ARGV - 1, 2, -2 do
  local id, token = ARGV[at], ARGV[at + 1]
  local lock = attempt("GET", prefix .. id .. ":lock")
  if lock == token and redis.call("TYPE", prefix .. id).ok == "hash" then
    requeue_job(id)
  else
    look_for(id, lock ~= token and lock)
  end
end
if has_freed then
  wake(queue)
end
return lost
