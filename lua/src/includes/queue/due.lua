-- When the next delayed job is due. Needs:
--- include values

local LONGEST_WAIT = 2 ^ 31 -- ms; jobs may be due at a time that no integer holds

-- When the next delayed job is due in ms, or nil.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.floor(tonumber(score) / 4096)
end

-- In how many ms a job is due, or -1 for none.
local function how_soon(due, timestamp)
  return due and math.max(math.min(due - timestamp, LONGEST_WAIT), 0) or -1
end

-- Tells idle workers when the next delayed job is due.
local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end
