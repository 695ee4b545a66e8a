-- The way through `active`, from its old end, over as many calls as it takes. Needs:
--- include queue/position

local CHUNK = 250 -- ids looked at together

-- Calls `look_at(ids)` for at most so many ids. Where it cannot tell where the last call stopped, it starts anew: to
-- look at a job twice does no harm. Returns where to go on: an offset, which is -1 at the end, and an anchor.
local function walk_active(active, limit, offset, anchor, look_at)
  offset = position_of(active, offset, anchor) or 0
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
