-- Ids of one state of a queue, by their place. Writes nothing. Needs no other include.

-- "list" for a state whose ids are in a LIST, where the tail is fetched first; "first" for a ZSET
-- that is read from its lowest score, "last" from its highest.
local READ_FROM = {
  wait = "list", paused = "list", active = "list", delayed = "first", prioritized = "first",
  ["waiting-children"] = "first", completed = "last", failed = "last",
}

-- How many ids a state has.
local function count_of(queue, state)
  return redis.call(READ_FROM[state] == "list" and "LLEN" or "ZCARD", queue[state])
end

-- The ids of a state from `offset` on, and their scores by id. The first is the one that comes
-- next, or that finished last; with `newest` always the one that came last, so that those who leave
-- the state meanwhile move none out of the reader's way.
local function ids_of(queue, state, offset, count, newest)
  local key, from, ids, scores = queue[state], READ_FROM[state], {}, {}
  if from == "list" then
    if newest then
      return redis.call("LRANGE", key, offset, offset + count - 1), scores
    end
    local found = redis.call("LRANGE", key, -(offset + count), -(offset + 1))
    for at = #found, 1, -1 do
      ids[#ids + 1] = found[at]
    end
    return ids, scores
  end
  local command = (newest or from == "last") and "ZREVRANGE" or "ZRANGE"
  local found = redis.call(command, key, offset, offset + count - 1, "WITHSCORES")
  for at = 1, #found, 2 do
    ids[#ids + 1] = found[at]
    scores[found[at]] = found[at + 1]
  end
  return ids, scores
end

-- The names of the states that an id is in, in alphabetical order. There should be one; a list that
-- has the id twice is named twice.
local function places_of(queue, id)
  local places = {}
  for state, from in pairs(READ_FROM) do
    local times = from == "list" and #redis.call("LPOS", queue[state], id, "COUNT", 0)
      or from ~= "list" and redis.call("ZSCORE", queue[state], id) and 1 or 0
    for _ = 1, times do
      places[#places + 1] = state
    end
  end
  table.sort(places)
  return places
end
