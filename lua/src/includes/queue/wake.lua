-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs no other include.

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
