-- The keys of a queue that scripts need which run for each message. Each costs something in each call. Needs no
-- other include.

-- Those that all of them need, with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    is_paused = false, concurrency = nil, max_events = "", version = "", -- queue/meta: room for these costs least here
  }
end
