--[[
Pauses or resumes a queue for the workers of every runtime.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 "paused" or "resumed"

The ids of `wait` move to `paused`, or back. Returns 1.

Cost: O(1), or O(N) in the ids when both lists hold some.
--]]
--- include queue/keys
--- include queue/meta
--- include queue/wake

local CHUNK = 1000 -- ids moved together; Lua unpacks no more than 8,000
local prefix, event = ARGV[1], ARGV[2]
local queue = queue_at(prefix)
local pausing = event == "paused"

-- The ids that are moved have waited longer: they stay at the tail, which is fetched first.
local function move_all(from, to)
  if redis.call("EXISTS", from) == 0 then
    return
  elseif redis.call("EXISTS", to) == 0 then
    redis.call("RENAME", from, to)
    return
  end
  for at = 0, redis.call("LLEN", from) - 1, CHUNK do
    redis.call("RPUSH", to, unpack(redis.call("LRANGE", from, at, at + CHUNK - 1)))
  end
  redis.call("UNLINK", from)
end

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if pausing then
  redis.call("HSET", queue.meta, "paused", 1)
  move_all(queue.wait, queue.paused)
  redis.call("DEL", queue.marker)
else
  redis.call("HDEL", queue.meta, "paused")
  queue.is_paused = false
  move_all(queue.paused, queue.wait)
  if redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
  mark_next_due(queue)
end
redis.call("XADD", queue.events, "*", "event", event)
return 1
