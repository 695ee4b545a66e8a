-- When the next delayed job is due. Needs no other include.

-- When it is due in ms, or nil without one.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.floor(tonumber(score) / 4096)
end

-- In how many ms a job is due, or -1 for none. Jobs may be due at a time that no integer holds.
local function how_soon(due, timestamp)
  return due and math.max(math.min(due - timestamp, 2 ^ 31), 0) or -1
end
