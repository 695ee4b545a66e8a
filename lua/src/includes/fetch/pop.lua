-- How the next id leaves `prioritized` when none waits without a priority. Needs no other include.

-- Moves it to the new end of `active`. Returns it with its score, or nil. `skipped` are the jobs that were moved and
-- are not fetched. When `active` is no list it raises, before anything has left its place.
local function pop_prioritized(queue, skipped)
  redis.call("LLEN", queue.active)
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if first[1] then
    redis.call("LPUSH", queue.active, first[1])
  elseif #skipped == 0 then
    redis.call("DEL", queue.prefix .. "pc")
  end
  return first[1], first[2]
end
