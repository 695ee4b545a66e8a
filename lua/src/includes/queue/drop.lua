-- How a job leaves `active` whose hash is gone. Needs no other include.

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
