-- How the lists `wait` and `paused` become one. Needs:
--- include values

local MOVED_TOGETHER = 1000 -- ids in one command; Lua unpacks no more than 8,000

-- When the job was added that a list lets go first, in ms.
local function age_of_next(queue, list)
  return number(attempt("HGET", queue.prefix .. redis.call("LINDEX", list, -1), "timestamp")) or 0
end

-- Moves all ids of one list to another, before those that are there or after them.
local function move_ids(from, to, goes_first)
  local pop, push = goes_first and "LPOP" or "RPOP", goes_first and "RPUSH" or "LPUSH"
  local ids = redis.call(pop, from, MOVED_TOGETHER)
  while ids and #ids > 0 do
    redis.call(push, to, unpack(ids))
    ids = redis.call(pop, from, MOVED_TOGETHER)
  end
end

-- Joins both lists into `target`, by default the longer one, and returns its key. The list whose
-- next job is older goes first, and the shorter one moves.
local function join_lists(queue, target)
  local waiting, paused = redis.call("LLEN", queue.wait), redis.call("LLEN", queue.paused)
  local longer, shorter = queue.wait, queue.paused
  if paused > waiting then
    longer, shorter = queue.paused, queue.wait
  end
  if waiting > 0 and paused > 0 then
    local ages = { age_of_next(queue, queue.wait), age_of_next(queue, queue.paused) }
    local first = (ages[1] < ages[2] or ages[1] == ages[2] and target ~= queue.wait) and queue.wait or queue.paused
    move_ids(shorter, longer, shorter == first)
  end
  if target and target ~= longer and waiting + paused > 0 then
    redis.call("RENAME", longer, target)
  end
  return target or longer
end
