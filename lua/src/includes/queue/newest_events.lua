-- The newest events of a queue: what jobs whose hashes are gone cannot tell any more. Needs:
--- include values

-- Of some 10,000 that there may be: to read all would block Redis for long.
local NEWEST_EVENTS = 1000

-- Each is its id and its fields, the newest one first. None where the user may not read them.
local function newest_events(queue)
  return attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}
end
