--[[
Adds a job for a message that is moved here from another broker, once: the set
`echomq:moved` of the queue notes the ids whose messages may still be there.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 name  4 data  5 opts, a JSON object
      6 timestamp in ms  7 when it is due in ms, or 0 for now
      8 priority, 0 for none, or `first`: fetched before all that wait now
      9 what `version` of the meta becomes when there is none
     10 when it failed in ms, or 0 for a job that is to run  11 failedReason
     12 stacktrace, a JSON list, or nothing

Returns 1, or 0 when it was moved before. For a job that failed there are no events: it is no news.

Cost: O(log N) in the jobs delayed, prioritized or failed.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/add
--- include queue/wake

local prefix, id, name, data, opts, timestamp = unpack(ARGV, 1, 6)
local due, is_first, version = number(ARGV[7]), ARGV[8] == "first", ARGV[9]
local priority = is_first and 0 or number(ARGV[8])
local failed_at, reason, trace = number(ARGV[10]), ARGV[11], ARGV[12]
local queue = queue_at(prefix)
local key, moved = prefix .. id, prefix .. "echomq:moved"

local refused = refusal(queue, types_of(queue, moved, "set", prefix .. "id", "string"))
if refused then
  return refused
end
if redis.call("EXISTS", key) == 1 or redis.call("SISMEMBER", moved, id) == 1 then
  return 0
end
redis.call("SADD", moved, id)
redis.pcall("INCR", prefix .. "id") -- when it holds no number, that is no matter of this job
if queue.version == "" then
  redis.call("HSET", queue.meta, "version", version)
end
redis.call("HSET", key, "name", name, "data", data, "opts", opts, "timestamp", timestamp,
  "delay", due > 0 and digits(due - timestamp) or 0, "priority", priority)
if failed_at == 0 then
  if add_to_queue(queue, id, name, priority, due, is_first) then
    wake(queue)
  end
  return 1
end
redis.call("HSET", key, "finishedOn", digits(failed_at), "failedReason", reason)
if trace ~= "" then
  redis.call("HSET", key, "stacktrace", trace)
end
redis.call("ZADD", queue.failed, digits(failed_at), id)
return 1
