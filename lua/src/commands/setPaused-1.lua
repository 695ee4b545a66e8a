--[[
Pauses or resumes a queue for the workers of every runtime.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 "paused" or "resumed"

The ids of `wait` move to `paused`, or back. Returns 1.

Cost: O(1), or O(N) in the ids of the shorter list when both hold some.
--]]
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/full
--- include queue/join
--- include queue/put_markers

local prefix, event = ARGV[1], ARGV[2]
local queue = queue_at(prefix)
local pausing = event == "paused"

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
write_although_full(queue)
if pausing then
  redis.call("HSET", queue.meta, "paused", 1)
  join_lists(queue, queue.paused)
  redis.call("DEL", queue.marker)
else
  redis.call("HDEL", queue.meta, "paused")
  queue.is_paused = false
  join_lists(queue, queue.wait)
  put_markers_back(queue)
end
redis.call("XADD", queue.events, "*", "event", event)
return 1
