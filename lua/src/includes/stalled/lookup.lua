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
local function find_lockless_places(call, ids)
  local prefix, keys, places = call.prefix, {}, {}
  for place = 1, #ids do
    keys[place] = prefix .. ids[place] .. ":lock"
  end
  local number_locked = redis.call("EXISTS", unpack(keys))
  if number_locked == #ids then
    return places
  end
  if number_locked == 0 then
    for place = #ids, 1, -1 do
      places[#ids - place + 1] = place
    end
    return places
  end
  local locks, seen = redis.call("MGET", unpack(keys)), 0
  for place = 1, #ids do
    seen = seen + (locks[place] and 1 or 0)
  end
  for place = #ids, 1, -1 do
    -- MGET does not see a lock that is no string.
    if not locks[place] and (seen == number_locked or redis.call("EXISTS", keys[place]) == 0) then
      places[#places + 1] = place
    end
  end
  return places
end

-- The same, looked up once for the ids of a chunk.
local function lockless_places(call, ids)
  if call.looked_up ~= ids then
    call.looked_up, call.lockless = ids, find_lockless_places(call, ids)
  end
  return call.lockless
end

-- Whether none of these ids can be the name of a key of the queue, as in most queues: a quick
-- answer for all at once.
local function are_plain(ids)
  return not table.concat(ids, "-"):find("[^%x-]")
end

-- Whether there is a job under the key of each id, which is enough to mark them all.
local function all_are_jobs(call, ids, is_plain)
  local prefix, reserved, pcall_redis = call.prefix, call.reserved, redis.pcall
  for at = 1, #ids do
    local id = ids[at]
    local key = prefix .. id
    local fields = not reserved[key] and (is_plain or not is_reserved(id)) and pcall_redis("HLEN", key)
    if not fields or fields == 0 or type(fields) ~= "number" then
      return false
    end
  end
  return #ids > 0
end
