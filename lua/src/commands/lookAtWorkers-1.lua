--[[
Tells which workers are registered in a group of queues, once per period for all who ask.

KEYS  1 the throttle of the group
ARGV  1 period in ms  2 and on: echomq:workers of each queue

Returns one of these:
      { -1 } nobody is registered
      { ms until the next look } somebody else looked less than a period ago
      { 0, registrations, … } for each queue two lists: those that were seen missing, and all others

Works when Redis is at its maxmemory.

Cost: O(N) in the workers registered. Where nobody is, one EXISTS; while throttled, two commands more.
--]]
--- include values

local throttle, period = KEYS[1], ARGV[1]
local queues = {}
for at = 2, #ARGV do
  queues[at - 1] = ARGV[at]
end

if #queues == 0 or redis.call("EXISTS", unpack(queues)) == 0 then
  return { -1 }
end
redis.pcall("ZREM", queues[1], "-") -- changes nothing: goes first so that a full Redis lets the next one write
if not redis.call("SET", throttle, "", "NX", "PX", period) then
  local left = redis.call("PTTL", throttle)
  if left == -1 then -- left by a broken tool
    redis.call("PEXPIRE", throttle, period)
  end
  return { math.max(left, 1) }
end
local answer = { 0 }
for _, workers in ipairs(queues) do
  answer[#answer + 1] = attempt("ZRANGEBYSCORE", workers, "-inf", "(0") or {}
  answer[#answer + 1] = attempt("ZRANGEBYSCORE", workers, 0, "+inf") or {}
end
return answer
