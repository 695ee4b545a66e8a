--[[
Makes a failed job available again, with no stalls, attempts or failure on record.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id

Returns 1, or 0 when no such job is in `failed`.

Cost: O(log N) in the failed jobs.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/line

local prefix, id = ARGV[1], ARGV[2]
local queue = queue_at(prefix)
local key = prefix .. id

local fault = refusal(queue, types_of(queue, key, "hash"))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if redis.call("EXISTS", key) == 0 or redis.call("ZREM", queue.failed, id) == 0 then
  return 0
end
redis.call("HDEL", key, "stc", "atm", "defa", "failedReason", "stacktrace", "finishedOn", "processedOn", "returnvalue")
trim_events(queue)
make_available(queue, id, number(redis.call("HGET", key, "priority")) or 0, "LPUSH")
wake(queue)
emit(queue, "waiting", id, "prev", "failed")
return 1
