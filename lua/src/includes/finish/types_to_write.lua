-- What a call that finishes jobs writes without having read it before, but for keys of jobs and parents. Needs no
-- other include.

-- The keys, with their types.
local function types_to_write(queue)
  return {
    queue.active, "list", queue.stalled, "set", queue.completed, "zset", queue.failed, "zset",
    queue.marker, "zset", queue.events, "stream",
  }
end
