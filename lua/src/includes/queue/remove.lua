-- How a job is removed. Needs:
--- include queue/reserved

-- Removes the hashes of at most 1,000 jobs and what stands beside them, but for ids that are names
-- of keys of the queue. The lock is not among that: a job that is removed when it finishes has none any more.
-- Nor is its id removed from where it stands in the queue.
local function remove_jobs(queue, ids)
  local keys = {}
  for _, id in ipairs(ids) do
    if not is_reserved(id) then
      local key, size = queue.prefix .. id, #keys
      keys[size + 1], keys[size + 2], keys[size + 3] = key, key .. ":logs", key .. ":dependencies"
      keys[size + 4], keys[size + 5], keys[size + 6] = key .. ":processed", key .. ":failed", key .. ":unsuccessful"
    end
  end
  if #keys > 0 then
    redis.call("DEL", unpack(keys))
  end
end

local function remove_job(queue, id)
  remove_jobs(queue, { id })
end

-- Removes the mark of a job. Hardly ever is any job marked: that is looked at once in a script.
local function remove_mark(queue, id)
  if queue.has_marks == nil then
    queue.has_marks = redis.call("SCARD", queue.stalled) > 0
  end
  if queue.has_marks then
    redis.call("SREM", queue.stalled, id)
  end
end

-- Takes a job out of `active` whose hash is gone: somebody removed it while it ran. Its hash is
-- not written again. Returns whether it was there.
local function drop_from_active(queue, id)
  redis.call("DEL", queue.prefix .. id .. ":lock")
  remove_mark(queue, id)
  return redis.call("LREM", queue.active, -1, id) > 0
end
