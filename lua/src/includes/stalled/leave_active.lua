-- How many jobs leave `active` at once: they become tombstones that one LREM takes away, since
-- an LREM for each of them would make the check quadratic. Needs no other include but takes
-- the `call` of stalled/call.

-- A text that is no job's id. A short one takes the place of an id faster.
local function make_tombstone(prefix)
  local tombstone = "\0"
  while redis.call("EXISTS", prefix .. tombstone, prefix .. tombstone .. ":lock") > 0 do
    tombstone = tombstone .. "\0"
  end
  return tombstone
end

-- Removes ids from their places in a chunk of so many ids, and the marks that they may have.
local function take_out_of_active(call, places, ids, size)
  local queue = call.queue
  if call.offset == 0 and #ids == size then
    redis.call("LTRIM", queue.active, 0, -size - 1)
  else
    local tombstone = make_tombstone(call.prefix)
    for at = 1, #places do
      redis.call("LSET", queue.active, -(call.offset + size - places[at] + 1), tombstone)
    end
    redis.call("LREM", queue.active, -#ids, tombstone)
  end
  if redis.call("EXISTS", queue.stalled) == 1 then
    redis.call("SREM", queue.stalled, unpack(ids))
  end
end
