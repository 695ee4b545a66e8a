-- The way through `active`, from its old end, over as many calls as it takes. Needs no other include.

local CHUNK = 250 -- ids looked at together

-- Where the last call stopped, although jobs that it looked at may have gone since. When that
-- cannot be told, it starts anew: to look at a job twice does no harm.
local function position_of(active, offset, anchor)
  if offset == 0 or redis.call("LINDEX", active, -offset) == anchor then
    return offset
  end
  local position = redis.call("LPOS", active, anchor, "RANK", -1, "MAXLEN", offset)
  return position and redis.call("LLEN", active) - position or 0
end

-- Calls `look_at(ids)` for at most so many ids. Returns where to go on: an offset, which is -1 at
-- the end, and an anchor.
local function walk_active(active, limit, offset, anchor, look_at)
  offset = position_of(active, offset, anchor)
  while limit > 0 do
    local size = math.min(limit, CHUNK)
    local ids = redis.call("LRANGE", active, -(offset + size), -(offset + 1))
    if #ids > 0 then
      look_at(ids)
    end
    if #ids < size then
      return -1, ""
    end
    offset, limit = offset + size, limit - size
  end
  return offset, redis.call("LINDEX", active, -offset) or ""
end
