-- When the next delayed job is due. Needs no other include.

-- When it is due in ms, or nil without one. Delays may be of any length, and then the score may be infinite.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.max(math.min(math.floor(tonumber(score) / 4096), 2 ^ 53), 0)
end

-- In how many ms a job is due, or -1 for none. Jobs may be due at a time that no integer holds.
local function how_soon(due, timestamp)
  return due and math.max(math.min(due - timestamp, 2 ^ 31), 0) or -1
end
