-- What is asked about many ids with one command, since a call of a command costs more than
-- what it does. Needs no other include but takes the `call` of stalled/call.

-- The reply of a command about some members of a key; empty when the key is not there.
local function membership(command, key, ids)
  if #ids == 0 or redis.call("EXISTS", key) == 0 then
    return {}
  end
  return redis.call(command, key, unpack(ids))
end

-- The places of the ids without a lock, oldest first.
local function lockless_places(call, ids)
  local prefix, keys, places = call.prefix, {}, {}
  for place, id in ipairs(ids) do
    keys[place] = prefix .. id .. ":lock"
  end
  local number_locked = redis.call("EXISTS", unpack(keys))
  if number_locked == #ids then
    return places
  end
  local locks, seen = {}, 0
  if number_locked > 0 then
    locks = redis.call("MGET", unpack(keys))
    for place = 1, #ids do
      seen = seen + (locks[place] and 1 or 0)
    end
  end
  for place = #ids, 1, -1 do
    -- MGET does not see a lock that is no string.
    if not locks[place] and (seen == number_locked or redis.call("EXISTS", keys[place]) == 0) then
      places[#places + 1] = place
    end
  end
  return places
end

-- Whether there is something under the key of every job, which is enough to mark them all.
local function all_exist(call, ids)
  local keys = {}
  for at, id in ipairs(ids) do
    keys[at] = call.prefix .. id
    if call.reserved[keys[at]] then
      return false
    end
  end
  return #keys > 0 and redis.call("EXISTS", unpack(keys)) == #keys
end
