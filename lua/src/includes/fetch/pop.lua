-- How ids leave the front of a queue. Needs no other include.

-- Moves the next id to the new end of `active`. Returns it, with its score when it has a priority, or
-- nil. `skipped` are the jobs that were moved and are not fetched: an id, and its score or nil, each.
-- When `active` is no list it raises, before anything has left its place.
local function pop(queue, skipped)
  local id = redis.call("LMOVE", queue.wait, queue.active, "RIGHT", "LEFT")
  if id then
    return id
  end
  redis.call("LLEN", queue.active)
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if first[1] then
    redis.call("LPUSH", queue.active, first[1])
  elseif #skipped == 0 then
    redis.call("DEL", queue.pc)
  end
  return first[1], first[2]
end
