-- How ids leave the front of a queue, and how those that were skipped go back. Needs:
--- include queue/line

-- The next id, with its score when it has a priority, or nil. `skipped` are the jobs popped
-- and not fetched: an id, and its score or nil, each.
local function pop(queue, skipped)
  local id = redis.call("RPOP", queue.wait)
  if id then
    return id
  end
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if not first[1] and #skipped == 0 then
    redis.call("DEL", queue.pc)
  end
  return first[1], first[2]
end

local function put_back(queue, skipped)
  for at = #skipped, 1, -1 do
    local id, score = unpack(skipped[at])
    if score then
      redis.call("ZADD", queue.prioritized, score, id)
    else
      redis.call("RPUSH", queue.wait, id)
    end
  end
end

-- Puts them behind all others, or all others of their priority.
local function put_last(queue, skipped)
  for _, entry in ipairs(skipped) do
    local id, score = unpack(entry)
    if score then
      redis.call("ZADD", queue.prioritized, priority_score(queue, math.floor(tonumber(score) / 2 ^ 32)), id)
    else
      redis.call("LPUSH", queue.wait, id)
    end
  end
end
