-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs:
--- include values

-- Whether as many jobs are active as the queue's global concurrency allows.
local function is_maxed(queue)
  return queue.concurrency ~= nil and redis.call("LLEN", queue.active) >= queue.concurrency
end

-- Wakes an idle worker, unless none may fetch a job now.
local function wake(queue)
  if not queue.is_paused and not is_maxed(queue) then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

local LONGEST_WAIT = 2 ^ 31 -- ms; jobs may be due at a time that no integer holds

-- When the next delayed job is due in ms, or nil.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.floor(tonumber(score) / 4096)
end

-- In how many ms the next delayed job is due, or -1 without one.
local function due_in(queue, timestamp)
  local due = next_due(queue)
  return due and math.max(math.min(due - timestamp, LONGEST_WAIT), 0) or -1
end

-- Tells idle workers when the next delayed job is due.
local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end
