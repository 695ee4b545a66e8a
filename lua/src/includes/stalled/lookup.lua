-- What is asked about many ids with one command, since a call of a command costs more than
-- what it does. Takes the `call` of stalled/call. Needs:
--- include queue/reserved

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

-- Whether there is a job under the key of each id, which is enough to mark them all.
local function all_are_jobs(call, ids)
  for _, id in ipairs(ids) do
    local key = call.prefix .. id
    local fields = not (call.reserved[key] or is_reserved(id)) and redis.pcall("HLEN", key)
    if type(fields) ~= "number" or fields == 0 then
      return false
    end
  end
  return #ids > 0
end
