-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs no other include.

local RESERVED = {}
for name in ([[wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events
    id limiter priority repeat waiting-children workers]]):gmatch("%S+") do
  RESERVED[name] = true
end

-- The parts before the first colon and after the last one that only keys of a queue have. A
-- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`.
local RESERVED_FIRST = { de = true, dn = true, metrics = true, ["stalled-check"] = true, workers = true,
  echomq = true }
local RESERVED_LAST = { lock = true, logs = true, dependencies = true, processed = true, failed = true,
  unsuccessful = true }

-- Whether an id is the name of a key that is not a job's hash.
local function is_reserved(id)
  local first = id:match("^([^:]*):")
  if not first then
    return RESERVED[id] or id == ""
  end
  return RESERVED_FIRST[first] or RESERVED_LAST[id:match("([^:]*)$")]
    or first == "repeat" and not id:find(":%d+$")
end
