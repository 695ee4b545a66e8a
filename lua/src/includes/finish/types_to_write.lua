-- The types of the keys that a call writes without having read them. Needs no other include.

-- What fetching jobs writes.
local function types_to_fetch(queue)
  return { queue.active, "list", queue.marker, "zset", queue.events, "stream" }
end

-- What finishing jobs writes, and fetching others beside. Those of jobs and parents are checked apart.
local function types_to_finish(queue)
  return {
    queue.active, "list", queue.stalled, "set", queue.completed, "zset", queue.failed, "zset",
    queue.marker, "zset", queue.events, "stream",
  }
end
