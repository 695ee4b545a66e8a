-- How a job comes to wait for a time. Needs:
--- include values
--- include queue/events
--- include queue/mark_due

local MOST_EXACT = 2 ^ 53 -- beyond it, doubles have no room for places in a ms

-- A ms has 4,096 places for jobs, which keep their order. When they are taken, the next ms has
-- more: a job may come a little late, and never before one that came earlier.
local function place_of(queue, due)
  local lowest, highest = due * 4096, due * 4096 + 4095
  local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  if not last then
    return lowest
  elseif tonumber(last) < highest or highest >= MOST_EXACT then
    return math.min(tonumber(last) + 1, highest)
  end
  return place_of(queue, due + 1)
end

-- Delays a job.
local function delay(queue, id, due)
  redis.call("ZADD", queue.delayed, digits(place_of(queue, due)), id)
  emit(queue, "delayed", id, "delay", digits(due))
  mark_next_due(queue)
end
