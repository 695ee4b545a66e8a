-- The types of the keys that finishing jobs writes. Needs no other include.

-- Those of jobs and parents are checked apart.
local function types_to_finish(queue)
  return {
    queue.meta, "hash", queue.active, "list", queue.stalled, "set", queue.completed, "zset", queue.failed, "zset",
    queue.marker, "zset", queue.events, "stream",
  }
end
