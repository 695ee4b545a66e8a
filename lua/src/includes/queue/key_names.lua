-- Which names the keys of a queue have. Needs no other include.

local NAMES = " wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events "
  .. "id limiter priority repeat waiting-children "

-- The parts before the first colon and after the last one that only keys of a queue have. A
-- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`. Other
-- ids have no colon, or two: so says BullMQ.
local FIRST_PARTS = " de dn echomq stalled-check "
local LAST_PARTS = " lock released logs dependencies processed failed unsuccessful "

local function is_one_of(names, name)
  return name:find("^[a-z-]+$") and names:find(" " .. name .. " ", 1, true) and true or false
end

-- Whether an id is the name of a key that is not a job's hash.
local function is_name_of_key(id)
  local first = id:match("^([^:]*):")
  if not first then
    return id == "" or is_one_of(NAMES, id)
  elseif first == "repeat" then
    return not id:find(":%d+$")
  elseif first == "metrics" then
    return id:find("^metrics:%l+$") ~= nil or id:find("^metrics:%l+:data$") ~= nil
  end
  local _, colons = id:gsub(":", "")
  return is_one_of(FIRST_PARTS, first) or colons ~= 2 and is_one_of(LAST_PARTS, id:match("([^:]*)$"))
end
