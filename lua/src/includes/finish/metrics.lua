-- BullMQ's own counts of finished jobs, a point for each minute, of which dashboards draw charts.
-- Needs:
--- include values

local PUSHED_AT_ONCE = 5000 -- Lua unpacks no more than 8,000

-- Counts one job that has finished. `points` is how many are kept; 0 counts nothing. Minutes in
-- which no job finished become zeros when the next one does.
local function count_finished(queue, target, points, timestamp)
  local key = queue.prefix .. "metrics:" .. target
  if points < 1 or not attempt("HINCRBY", key, "count", 1) then
    return
  end
  local count, previous, counted = unpack(redis.call("HMGET", key, "count", "prevTS", "prevCount"))
  if not previous then
    redis.call("HSET", key, "prevTS", timestamp, "prevCount", 0)
    return
  end
  local minutes = math.min(math.floor(timestamp / 60000) - math.floor(counter(previous) / 60000), points)
  if minutes < 1 then
    return
  end
  local new = { digits(counter(count) - 1 - counter(counted)) }
  for minute = 2, minutes do
    new[minute] = 0
  end
  for at = 1, #new, PUSHED_AT_ONCE do
    attempt("LPUSH", key .. ":data", unpack(new, at, math.min(at + PUSHED_AT_ONCE - 1, #new)))
  end
  attempt("LTRIM", key .. ":data", 0, points - 1)
  redis.call("HSET", key, "prevCount", digits(counter(count) - 1), "prevTS", timestamp)
end

-- Counts a job that no worker has finished, where workers count: the next of them makes the point.
local function add_to_metrics(queue, target)
  local key = queue.prefix .. "metrics:" .. target
  if attempt("HEXISTS", key, "count") == 1 then
    redis.call("HINCRBY", key, "count", 1)
  end
end
