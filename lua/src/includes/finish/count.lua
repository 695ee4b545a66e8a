-- BullMQ's own counts of finished jobs, a point for each minute, of which dashboards draw charts.
-- Needs:
--- include values

local PUSHED_AT_ONCE = 5000 -- Lua unpacks no more than 8,000

-- Adds the point of a minute, and one for each minute after it. The newest is at the head.
local function add_points(key, first, minutes, most)
  local new = { digits(first) }
  for minute = 2, minutes do
    new[minute] = 0
  end
  for at = 1, #new, PUSHED_AT_ONCE do
    attempt("LPUSH", key, unpack(new, at, math.min(at + PUSHED_AT_ONCE - 1, #new)))
  end
  attempt("LTRIM", key, 0, most - 1)
end

-- Counts one job that has finished. `points` is how many are kept. Minutes in which no job finished
-- become zeros when the next one does.
local function count_finished(queue, target, points, timestamp)
  local key = queue.prefix .. "metrics:" .. target
  local fields = attempt("HMGET", key, "count", "prevTS", "prevCount")
  if not fields then
    return
  end
  local count, previous, counted = counter(fields[1]), fields[2], counter(fields[3])
  local minutes = previous and math.min(math.floor(timestamp / 60000) - math.floor(counter(previous) / 60000), points)
  if not previous then
    redis.call("HSET", key, "count", digits(count + 1), "prevTS", timestamp, "prevCount", 0)
  elseif minutes < 1 then
    redis.call("HSET", key, "count", digits(count + 1))
  else
    redis.call("HSET", key, "count", digits(count + 1), "prevTS", timestamp, "prevCount", digits(count))
    add_points(key .. ":data", count - counted, minutes, points)
  end
end
