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

-- Removes the ids at some places of a chunk, and the marks that they may have.
local function take_out_of_active(call, places, ids)
  local queue = call.queue
  if call.offset == 0 and #places == #ids then
    redis.call("LTRIM", queue.active, 0, -#ids - 1)
  else
    local tombstone = make_tombstone(call.prefix)
    for _, place in ipairs(places) do
      redis.call("LSET", queue.active, -(call.offset + #ids - place + 1), tombstone)
    end
    redis.call("LREM", queue.active, -#places, tombstone)
  end
  if redis.call("EXISTS", queue.stalled) == 1 then
    local gone = {}
    for at, place in ipairs(places) do
      gone[at] = ids[place]
    end
    redis.call("SREM", queue.stalled, unpack(gone))
  end
end
