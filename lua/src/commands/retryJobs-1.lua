--[[
Makes failed jobs available again, with no stalls, attempts or failure on record but a line in the log.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 … ids

A flow parent waits for the job again. One whose own children are pending, or have failed and
forbid it, may run again but not complete: finishAndFetch sees to that.

Returns for each id 1, or 0 when no such job is in `failed`. An id without a job is removed from
there, with what may be left of it.

Cost: O(log N) in the failed jobs, for each id.
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
--- include queue/remove
--- include queue/reserved
--- include parents/retry

local prefix = ARGV[1]
local queue, now = queue_at(prefix), nil

-- The keys of the jobs, with their types.
local function types_of_jobs()
  local types = {}
  for at = 2, #ARGV do
    if not is_reserved(ARGV[at]) then
      types[#types + 1] = prefix .. ARGV[at]
      types[#types + 1] = "hash"
    end
  end
  return unpack(types)
end

local function retry(id)
  local key = prefix .. id
  if redis.call("ZREM", queue.failed, id) == 0 then
    return 0
  end
  local fields = is_reserved(id) and {} or redis.call("HMGET", key, "name", "data", "priority", "parentKey", "parent",
    "opts")
  if not (fields[1] or fields[2]) then
    remove_jobs(queue, { id })
    return 0
  end
  redis.call("HDEL", key, "stc", "suspect", "atm", "defa", "failedReason", "stacktrace", "finishedOn", "processedOn",
    "returnvalue")
  tell_parent_of_retry({ parent_key = fields[4], parent = object(fields[5]) }, key)
  local priority = number(fields[3]) or 0
  add_to_history(key, object(fields[6]), now, "retried, back to " .. place_of_waiting(queue, priority))
  make_available(queue, id, priority, "LPUSH")
  wake(queue)
  emit(queue, "waiting", id, "prev", "failed")
  return 1
end

local refused = refusal(queue, types_of(queue, types_of_jobs()))
if refused then
  return refused
end
now = tonumber(time_in_ms())
local outcomes, retried = {}, false
for at = 2, #ARGV do
  outcomes[at - 1] = retry(ARGV[at])
  retried = retried or outcomes[at - 1] == 1
end
if retried then
  trim_events(queue)
end
return outcomes
