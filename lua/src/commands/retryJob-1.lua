--[[
Makes a failed job available again, with no stalls, attempts or failure on record.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id

A flow parent waits for the job again. One whose own children are pending, or have failed and
forbid it, may run again but not complete: finishJob sees to that.

Returns 1, or 0 when no such job is in `failed`. An id without a job is removed from there, with
what may be left of it.

Cost: O(log N) in the failed jobs.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/line
--- include queue/remove
--- include queue/reserved
--- include parents/retry

local prefix, id = ARGV[1], ARGV[2]
local queue = queue_at(prefix)
local key = prefix .. id

local fault = refusal(queue, types_of(queue, unpack(is_reserved(id) and {} or { key, "hash" })))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if redis.call("ZREM", queue.failed, id) == 0 then
  return 0
end
local fields = is_reserved(id) and {} or redis.call("HMGET", key, "name", "data", "priority", "parentKey", "parent")
if not (fields[1] or fields[2]) then
  remove_job(queue, id)
  return 0
end
redis.call("HDEL", key, "stc", "atm", "defa", "failedReason", "stacktrace", "finishedOn", "processedOn", "returnvalue")
tell_parent_of_retry({ parent_key = fields[4], parent = object(fields[5]) }, key)
trim_events(queue)
make_available(queue, id, number(fields[3]) or 0, "LPUSH")
wake(queue)
emit(queue, "waiting", id, "prev", "failed")
return 1
