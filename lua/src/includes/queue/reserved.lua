-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs no other include.

local RESERVED = { [""] = true }
for name in ([[wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events
    id limiter priority repeat waiting-children metrics:completed metrics:completed:data metrics:failed
    metrics:failed:data]]):gmatch("%S+") do
  RESERVED[name] = true
end

-- The parts before the first colon and after the last one that only keys of a queue have. A
-- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`. Other
-- ids have no colon, or two: so says BullMQ.
local RESERVED_FIRST = { de = true, dn = true, echomq = true, ["stalled-check"] = true }
local RESERVED_LAST = { lock = true, logs = true, dependencies = true, processed = true, failed = true,
  unsuccessful = true }

-- Whether an id is the name of a key that is not a job's hash.
local function is_reserved(id)
  local first = id:match("^([^:]*):")
  if RESERVED[id] or not first then
    return RESERVED[id] or false
  elseif first == "repeat" then
    return not id:find(":%d+$")
  end
  local _, colons = id:gsub(":", "")
  return RESERVED_FIRST[first] or colons ~= 2 and RESERVED_LAST[id:match("([^:]*)$")] or false
end
