-- The keys that scripts need which run for each message, for whom each key costs something. Needs no other include.

-- Those keys of the queue with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    delayed = prefix .. "delayed", prioritized = prefix .. "prioritized", completed = prefix .. "completed",
    failed = prefix .. "failed", stalled = prefix .. "stalled", meta = prefix .. "meta", marker = prefix .. "marker",
    events = prefix .. "events", limiter = prefix .. "limiter",
  }
end
