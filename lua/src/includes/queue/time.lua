-- The time that a script goes by. Needs:
--- include values

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return digits(tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
end
