-- How a job is removed. Needs no other include.

-- Removes the hash of a job and what stands beside it. The lock is not among that: a job that
-- is removed when it finishes has none any more. Nor is its id removed from where it stands
-- in the queue.
local function remove_job(queue, id)
  local key = queue.prefix .. id
  redis.call("DEL", key, key .. ":logs", key .. ":dependencies", key .. ":processed", key .. ":failed",
    key .. ":unsuccessful")
end
