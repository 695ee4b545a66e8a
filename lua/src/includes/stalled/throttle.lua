-- The throttle: of many sweepers one makes a check per interval. Needs no other include but
-- takes the `call` of stalled/call.

local EARLY = 1000 -- most ms by which a sweeper may come early to its own throttle

local KNOWN_FOR = 3600000 -- ms for which it is known when a check was made that no throttle tells of

-- Notes when a check was made that took no throttle: after a crash, or by hand.
local function note_unthrottled(call)
  if call.sweep ~= "" and not call.interval and redis.call("EXISTS", call.queue.meta) == 1 then
    redis.call("SET", call.throttle .. ":last", call.timestamp, "PX", KNOWN_FOR)
  end
end

-- How long the check has to wait for another sweeper's, in ms, or nil when it may start.
local function throttled(call)
  local throttle, sweep, interval = call.throttle, call.sweep, call.interval
  local held_since = sweep .. "@" .. call.timestamp -- people are told when a queue was last checked
  local holder = redis.call("GET", throttle)
  if not holder then
    redis.call("SET", throttle, held_since, "PX", interval)
    return nil
  end
  holder = holder:match("^(.*)@%d+$") or holder
  local left = redis.call("PTTL", throttle)
  if left == -1 then
    redis.call("PEXPIRE", throttle, interval)
    left = interval
  end
  if holder == sweep and sweep ~= "" then
    return nil
  end
  local sweeper = sweep:match("^(.*)/")
  if sweeper and holder:match("^(.*)/") == sweeper and left <= math.min(EARLY, interval / 10) then
    redis.call("SET", throttle, held_since, "PX", interval)
    return nil
  end
  return math.max(left, 1)
end
