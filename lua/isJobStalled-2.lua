-- Built by tools/build-lua from lua/src/commands/isJobStalled-2.lua: edit that file, not this one.
--[[
Tells whether a job sits in `active` and has no lock.

KEYS  1 active  2 the job's lock
ARGV  1 the job's id

Returns 1 or 0. Cost: O(N) in `active` for a job without a lock, else O(1).
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

--- includes/types.lua
-- Whether keys have the types that they should have. Needs:

-- What answers with a number if and only if a key has the type, or is not there. That costs
-- half of what TYPE costs.
local SIZE = { list = "LLEN", zset = "ZCARD", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN" }

-- What is wrong with the first key that holds something else than it should, or nil.
-- `types` is a list of a key, its type, a key, its type …
local function mistyped(types)
  for at = 1, #types, 2 do
    local key, should_be = types[at], types[at + 1]
    local size = redis.pcall(SIZE[should_be], key)
    if type(size) ~= "number" then
      if not size.err:find("WRONGTYPE", 1, true) then
        return key .. " may not be used by this user, or not from here"
      end
      local found = attempt("TYPE", key)
      return key .. " is " .. (found and "a " .. found.ok or "something else") .. " and should be a " .. should_be
    end
  end
  return nil
end

--- commands/isJobStalled-2.lua

local fault = mistyped({ KEYS[1], "list" })
if fault then
  return redis.error_reply("ECHOMQ refuses the queue: " .. fault .. ". Repair or remove that key.")
end
if redis.call("EXISTS", KEYS[2]) == 1 then
  return 0
end
return redis.call("LPOS", KEYS[1], ARGV[1]) and 1 or 0
