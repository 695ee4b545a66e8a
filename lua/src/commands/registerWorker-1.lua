--[[
Registers the connection that stands for a worker process in a queue, or refreshes it.

KEYS  1 echomq:workers
ARGV  1 key prefix of the queue, with its last colon
      2 registration: "<worker id> <client id> <run id of the server> <name of the worker>"
      3 the one before, which this takes the place of, or empty
      4 for how many ms a registration counts that nobody refreshes

A worker whose connection was seen missing counts as there again. Returns 1.

Works when Redis is at its maxmemory. Cost: O(log N) in the workers registered.
--]]
--- include queue/full
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/time
--- include values

local workers, registration, before, kept_for = KEYS[1], ARGV[2], ARGV[3], number(ARGV[4])
local queue = queue_at(ARGV[1])

local refused = refusal(queue, types_of(queue, workers, "zset"))
if refused then
  return refused
end
write_although_full(queue)
local now = tonumber(time_in_ms(0))
if before ~= "" and before ~= registration then
  redis.call("ZREM", workers, before)
end
redis.call("ZADD", workers, digits(now), registration)
-- Both what was refreshed long ago and, below zero, what was seen missing long ago.
local old = redis.call("ZRANGEBYSCORE", workers, digits(kept_for - now), digits(now - kept_for), "LIMIT", 0, 100)
if #old > 0 then
  redis.call("ZREM", workers, unpack(old))
end
redis.call("PEXPIRE", workers, digits(kept_for))
return 1
