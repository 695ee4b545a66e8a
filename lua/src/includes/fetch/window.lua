-- The window of a rate limit, of which fetch/limit tells. Needs:
--- include values

-- Counts jobs that were fetched. The first ones start the window.
local function count_under_limit(queue, count)
  local max, duration = queue.rate_limit.max, queue.rate_limit.duration
  if duration and max and count > 0 and redis.call("INCRBY", queue.limiter, count) == count then
    redis.call("PEXPIRE", queue.limiter, digits(math.max(math.floor(math.abs(duration)), 1)))
  end
end
