-- The keys of a queue, in one table that the other includes take as `queue`. Needs no other
-- include; queue/meta adds what the meta says to the same table.

-- The keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    delayed = prefix .. "delayed", prioritized = prefix .. "prioritized", pc = prefix .. "pc",
    completed = prefix .. "completed", failed = prefix .. "failed", stalled = prefix .. "stalled",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events", limiter = prefix .. "limiter",
    ["waiting-children"] = prefix .. "waiting-children", ["repeat"] = prefix .. "repeat",
    untold = prefix .. "stalled-check:untold", ["untold-jobs"] = prefix .. "stalled-check:untold:jobs",
  }
end
