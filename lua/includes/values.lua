-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if type(value) == "string" and value:match("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  if type(value) ~= "number" and type(value) ~= "string" then
    return nil
  end
  value = tonumber(value)
  if value and value == value and math.abs(value) < 2 ^ 53 then
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

-- The first of the keys that holds something else than it should, as text for an error.
local function mistyped(types)
  for _, entry in ipairs(types) do
    local found = attempt("TYPE", entry[1])
    if not found then
      return entry[1] .. " may not be used by this user, or not from here"
    elseif found.ok ~= "none" and found.ok ~= entry[2] then
      return string.format("%s is a %s and should be a %s", entry[1], found.ok, entry[2])
    end
  end
  return nil
end
