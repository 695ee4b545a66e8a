-- Where a walk through `active`, from its old end, goes on that takes several calls. Needs no other include.

-- How many ids are behind it, although some may have gone since the last call stopped at `offset` with the `anchor` as
-- the last id; nil when that cannot be told.
local function position_of(active, offset, anchor)
  if offset == 0 or redis.call("LINDEX", active, -offset) == anchor then
    return offset
  end
  local position = redis.call("LPOS", active, anchor, "RANK", -1, "MAXLEN", offset)
  return position and redis.call("LLEN", active) - position
end
