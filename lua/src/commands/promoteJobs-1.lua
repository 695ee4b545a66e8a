--[[
Makes delayed jobs available now. A line in the log of each tells of it.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 … ids

Returns for each id "done", or why it was not: "not-delayed", or "gone" without a job.

Cost: O(log N) in the delayed jobs, for each id.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/history
--- include queue/time
--- include queue/line
--- include queue/reserved

local prefix = ARGV[1]
local queue, now = queue_at(prefix), nil

local function promote(id)
  local key = prefix .. id
  local fields = not is_reserved(id) and attempt("HMGET", key, "name", "data", "priority", "opts")
  if not fields or not (fields[1] or fields[2]) then
    return "gone"
  end
  if redis.call("ZREM", queue.delayed, id) == 0 then
    return "not-delayed"
  end
  redis.call("HSET", key, "delay", 0)
  local priority = number(fields[3]) or 0
  add_to_history(key, object(fields[4]), now, "promoted before it was due, to " .. place_of_waiting(queue, priority))
  make_available(queue, id, priority, "LPUSH")
  emit(queue, "waiting", id, "prev", "delayed")
  return "done"
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
now = tonumber(time_in_ms())
trim_events(queue)
local outcomes, done = {}, false
for at = 2, #ARGV do
  outcomes[at - 1] = promote(ARGV[at])
  done = done or outcomes[at - 1] == "done"
end
if done then
  wake(queue)
end
return outcomes
