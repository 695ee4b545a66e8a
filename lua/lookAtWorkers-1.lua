-- Built by tools/build-lua from lua/src/commands/lookAtWorkers-1.lua: edit that file, not this one.
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

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if value and type(value) == "string" and value:find("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  if number > -2 ^ 31 and number < 2 ^ 31 and number % 1 == 0 then
    return string.format("%d", number) -- which costs half
  end
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    return nil
  end
  value = tonumber(value)
  if value and value > -2 ^ 53 and value < 2 ^ 53 then -- which NaN is not
    return value
  end
  return nil
end

-- The table of a JSON object. A field that is absent is an empty one; for text that is
-- no JSON object the second value is false.
local function object(text)
  if not text or text == "" or text == "{}" then
    return {}, true
  end
  local decoded, value = pcall(cjson.decode, text)
  if decoded and type(value) == "table" and value[1] == nil then
    return value, true
  end
  return {}, false
end

-- The reply of a command, or nil when the command failed.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    return nil
  end
  return reply
end

--- commands/lookAtWorkers-1.lua

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
