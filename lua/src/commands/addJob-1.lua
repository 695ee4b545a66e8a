--[[
Adds a job to a queue.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 name  4 data  5 opts, a JSON object
      6 the time in ms, or 0 for the server's  7 when it is due in ms, or + and in how many ms, or 0 for now
      8 priority, 0 for none, or `first`: fetched before all that wait now
      9 what `version` of the meta becomes when there is none

Returns 1, or 0 when the job is there already: the call was sent twice.

Cost: O(log N) in the jobs delayed or prioritized.
--]]
--- include values
--- include types
--- include queue/keys
--- include queue/meta
--- include queue/time
--- include queue/add

local prefix, id, name, data, opts = unpack(ARGV, 1, 5)
local timestamp, due, is_first, version = time_in_ms(ARGV[6]), number(ARGV[7]), ARGV[8] == "first", ARGV[9]
if ARGV[7]:sub(1, 1) == "+" then
  due = timestamp + due
end
local priority = is_first and 0 or number(ARGV[8])
local queue = queue_at(prefix)
local key = prefix .. id

local types
if due > 0 then
  types = { queue.delayed, "zset" }
elseif priority > 0 then
  types = { queue.prioritized, "zset", queue.pc, "string" }
else
  types = { queue.wait, "list", queue.paused, "list" }
end
local fault = mistyped(types) or refusal(queue, {
  queue.meta, "hash", queue.active, "list", queue.marker, "zset", queue.events, "stream", prefix .. "id", "string",
})
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if redis.call("EXISTS", key) == 1 then
  return 0
end
redis.call("INCR", prefix .. "id")
if queue.version == "" then
  redis.call("HSET", queue.meta, "version", version)
end
redis.call("HSET", key, "name", name, "data", data, "opts", opts, "timestamp", timestamp,
  "delay", due > 0 and digits(due - timestamp) or 0, "priority", priority)
add_to_queue(queue, id, name, priority, due, is_first)
return 1
