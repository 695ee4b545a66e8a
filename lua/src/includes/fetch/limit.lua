-- The rate limit of a queue, as BullMQ keeps it: `limiter` counts the jobs that were fetched in
-- a window of `duration` ms, and at `max` of them none is fetched until its TTL ends. The
-- queue's meta must have been read. Needs:
--- include values

local SET_BY_HAND = 2 ^ 53 - 1 -- what `queue.rateLimit(ms)` of BullMQ writes, whether there is a `max` or not

-- How many jobs may be fetched now, and for how many ms none may if that is 0.
local function room_under_limit(queue)
  local max = queue.rate_limit.duration and queue.rate_limit.max
  local fetched = redis.call("GET", queue.limiter)
  if fetched and not fetched:match("^%d+$") then
    redis.call("DEL", queue.limiter)
    fetched = false
  end
  fetched = tonumber(fetched or 0)
  if fetched >= (max or SET_BY_HAND) then
    local ttl = redis.call("PTTL", queue.limiter)
    if ttl > 0 then
      return 0, ttl
    end
    redis.call("DEL", queue.limiter) -- its window has ended, or it would never end
    fetched = 0
  end
  return max and math.max(max - fetched, 1) or math.huge, 0
end

-- Counts jobs that were fetched. The first ones start the window.
local function count_under_limit(queue, count)
  if queue.rate_limit.duration and queue.rate_limit.max and count > 0
    and redis.call("INCRBY", queue.limiter, count) == count then
    redis.call("PEXPIRE", queue.limiter, digits(math.max(math.floor(math.abs(queue.rate_limit.duration)), 1)))
  end
end
