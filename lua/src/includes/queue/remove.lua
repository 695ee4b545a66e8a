-- How a job is removed. Needs:
--- include queue/reserved

-- Removes the hash of a job and what stands beside it, unless its id is the name of a key of the
-- queue. The lock is not among that: a job that is removed when it finishes has none any more.
-- Nor is its id removed from where it stands in the queue.
local function remove_job(queue, id)
  if is_reserved(id) then
    return
  end
  local key = queue.prefix .. id
  redis.call("DEL", key, key .. ":logs", key .. ":dependencies", key .. ":processed", key .. ":failed",
    key .. ":unsuccessful")
end

-- Takes a job out of `active` whose hash is gone: somebody removed it while it ran. Its hash is
-- not written again. Returns whether it was there.
local function drop_from_active(queue, id)
  redis.call("DEL", queue.prefix .. id .. ":lock")
  redis.call("SREM", queue.stalled, id)
  return redis.call("LREM", queue.active, -1, id) > 0
end
