-- The rate limit of a queue, as BullMQ keeps it: `limiter` counts the jobs that were fetched in
-- a window of `duration` ms, and at `max` of them none is fetched until its TTL ends. The
-- queue's meta must have been read. Needs no other include.

local SET_BY_HAND = 2 ^ 53 - 1 -- what `queue.rateLimit(ms)` of BullMQ writes, whether there is a `max` or not

-- How many jobs may be fetched now, and for how many ms none may if that is 0.
local function room_under_limit(queue)
  local rule = queue.rate_limit or {}
  local max = rule.duration and rule.max
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
