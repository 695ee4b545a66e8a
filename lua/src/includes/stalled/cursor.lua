-- The way through `active`, from its old end, over as many calls as it takes. Needs no other
-- include but takes the `call` of stalled/call.

local CHUNK = 1000 -- ids looked at together; Lua unpacks no more than 8,000

-- Finds where the last call stopped, although jobs that it looked at may have gone since.
local function resume(call)
  local active, offset, anchor = call.queue.active, call.offset, call.anchor
  if offset > 0 and redis.call("LINDEX", active, -offset) ~= anchor then
    local position = redis.call("LPOS", active, anchor, "RANK", -1, "MAXLEN", offset)
    call.offset = position and redis.call("LLEN", active) - position or math.max(offset - CHUNK, 0)
  end
end

-- Calls `look_at(call, ids)`, which returns how many left `active`, for the ids of this call.
-- Returns true when there are none beyond them.
local function walk(call, look_at)
  local left = call.limit
  while left > 0 do
    local size = math.min(left, CHUNK)
    local ids = redis.call("LRANGE", call.queue.active, -(call.offset + size), -(call.offset + 1))
    if #ids > 0 then
      call.offset = call.offset + #ids - look_at(call, ids)
    end
    if #ids < size then
      return true
    end
    left = left - size
  end
  return false
end
