-- Built by tools/build-lua from lua/src/commands/repairJobs-1.lua: edit that file, not this one.
--[[
Repairs what is wrong with jobs of a queue, if it still is so, without losing one.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 time in ms; 0 or none for the server's
      3 what is wrong:
        "no-job"   the id is in the queue, the job is gone: the id goes
        "nowhere"  the job is there, its id is not in the queue: it becomes available again, or one
                   of the finished jobs if it has finished
        "twice"    the id is in the queue more than once: the place stays that its fields speak for
        "lock"     a lock without a TTL on a job that is not active: the lock goes
        "mark"     a mark on a job that is not active: the mark goes
      4 … ids

Returns for each id "done", or "changed" when that was not so any more.

Cost: O(N) in the ids of `wait`, `paused` and `active`, for each id.
--]]

local rarely -- returns what few calls need

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if value and type(value) == "string" and value:find("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  if number > -2 ^ 31 and number < 2 ^ 31 and number % 1 == 0 then
    return string.format("%d", number) -- which costs half
  end
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    return nil
  end
  value = tonumber(value)
  if value and value > -2 ^ 53 and value < 2 ^ 53 then -- which NaN is not
    return value
  end
  return nil
end

-- The table of a JSON object. A field that is absent is an empty one; for text that is
-- no JSON object the second value is false.
local function object(text)
  if not text or text == "" or text == "{}" then
    return {}, true
  end
  local decoded, value = pcall(cjson.decode, text)
  if decoded and type(value) == "table" and value[1] == nil then
    return value, true
  end
  return {}, false
end

-- The reply of a command, or nil when the command failed.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    return nil
  end
  return reply
end

--- includes/queue/common_keys.lua
-- The keys of a queue that scripts need which run for each message. Each costs something in each call. Needs no
-- other include.

-- Those that all of them need, with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    is_paused = false, concurrency = nil, max_events = "", version = "", -- queue/meta: room for these costs least here
  }
end

--- includes/queue/job_keys.lua
-- The other keys of a queue in which jobs stand, or that say something about them. Needs no other include.

-- Adds these keys to those that are common. What only jobs need that are delayed or have a priority costs the others
-- nothing so.
local function add_job_keys(queue)
  local prefix = queue.prefix
  queue.delayed, queue.prioritized = prefix .. "delayed", prefix .. "prioritized"
  queue.completed, queue.failed, queue.stalled = prefix .. "completed", prefix .. "failed", prefix .. "stalled"
  queue.limiter = prefix .. "limiter"
end

--- includes/queue/keys.lua
-- The keys of a queue, in one table that the other includes take as `queue`; queue/meta adds what the meta says to
-- the same table. Needs:

-- All keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  local queue = common_keys(prefix)
  add_job_keys(queue)
  queue.pc, queue["repeat"] = prefix .. "pc", prefix .. "repeat"
  queue["waiting-children"] = prefix .. "waiting-children"
  queue.untold, queue["untold-jobs"] = prefix .. "stalled-check:untold", prefix .. "stalled-check:untold:jobs"
  return queue
end

--- includes/queue/types.lua
-- The types of a queue's keys, for what looks at them before it writes. Needs no other include.

-- All keys of a queue with their types.
local function types_of(queue, ...)
  local prefix = queue.prefix
  return {
    queue.wait, "list", queue.paused, "list", queue.active, "list", queue.delayed, "zset",
    queue.prioritized, "zset", prefix .. "pc", "string", queue.completed, "zset", queue.failed, "zset",
    queue.stalled, "set", queue.meta, "hash", queue.marker, "zset", queue.events, "stream",
    prefix .. "waiting-children", "zset", prefix .. "repeat", "zset", ...,
  }
end

--- includes/queue/meta.lua
-- What the meta of a queue says, and why a script may refuse the queue. Needs:

-- Reads what the queue's meta says, once for a script. Returns false when it is no hash.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version", "max", "duration")
  local is_hash = meta ~= nil
  meta = meta or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = meta[2] and number(meta[2]) or nil
  local most = meta[3] and meta[3] ~= "10000" and number(meta[3]) -- which BullMQ writes into most queues
  queue.max_events = most and most >= 0 and digits(math.floor(most)) or "10000"
  queue.version = meta[4] or ""
  if meta[5] and meta[6] then
    queue.rate_limit = { max = number(meta[5]), duration = number(meta[6]) }
  end
  return is_hash
end

-- The error that a script returns which may do nothing to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types, or nil.
local function refusal(queue, types)
  local fault = types and rarely().mistyped(types) or not read_meta(queue) and rarely().mistyped({ queue.meta, "hash" })
  if fault then
    return redis.error_reply("ECHOMQ refuses the queue: " .. fault
      .. ". Nothing was written. Repair or remove that key.")
  end
  if queue.version ~= "" and queue.version:sub(1, 8) == "echomq:2" then
    return redis.error_reply("ECHOMQ refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use.")
  end
  return nil
end

--- includes/queue/reserved.lua
-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs:

-- Whether an id is the name of a key that is not a job's hash. Nearly all ids pass at once: names have a
-- colon or are short, and none of these is hexadecimal.
local function is_reserved(id)
  if #id > 16 and not id:find(":", 1, true) or id:find("^%x[%x-]*$") then
    return false
  end
  return rarely().is_name_of_key(id)
end

--- includes/queue/time.lua
-- The time that a script goes by. Needs:

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and given ~= "0" and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return time[1] .. ("00000" .. time[2]):sub(-6, -4) -- seconds, and microseconds in as many digits as they need
end

--- includes/queue/wake.lua
-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs no other include.

-- Wakes an idle worker, unless none may fetch a job now: the queue is paused, or as many jobs are active as its global
-- concurrency allows.
local function wake(queue)
  local is_maxed = queue.concurrency and redis.call("LLEN", queue.active) >= queue.concurrency
  if not queue.is_paused and not is_maxed then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

--- includes/queue/wake_for_waiting.lua
-- How an idle worker is woken where it is not known whether any job waits. The queue's meta must have been read. Needs:

-- Wakes one if jobs wait. Those in `paused` count as well, where a resume has left them: no worker of a paused queue is
-- woken.
local function wake_for_waiting(queue)
  if redis.call("EXISTS", queue.wait, queue.paused, queue.prioritized) > 0 then
    wake(queue)
  end
end

--- includes/inspect/page.lua
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

--- includes/queue/events.lua
-- The stream of events, which is kept near its greatest length. A script that emits many
-- events trims it once, before them. Needs no other include; the queue's meta must have been read.

local function trim_events(queue)
  if not queue.is_trimmed then
    redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
    queue.is_trimmed = true
  end
end

local function emit(queue, event, id, ...)
  redis.call("XADD", queue.events, "*", "event", event, "jobId", id, ...)
end

--- includes/queue/lists.lua
-- The lists `wait` and `paused`. BullMQ up to 5 keeps the jobs of a paused queue in `paused`,
-- BullMQ 6 in `wait`, and some runtimes resume a queue without moving any: so each may hold
-- jobs at any time. The queue's meta must have been read. Needs:

-- The list in which jobs without a priority wait, with all of them in it.
local function waiting_list(queue)
  if not queue.waiting_list then
    if not queue.is_paused then
      queue.waiting_list = redis.call("EXISTS", queue.paused) == 1 and rarely().join_lists(queue, queue.wait) or queue.wait
    elseif redis.call("EXISTS", queue.wait) == 1 then
      queue.waiting_list = rarely().join_lists(queue)
    else
      queue.waiting_list = queue.paused
    end
  end
  return queue.waiting_list
end

--- includes/queue/line.lua
-- How a job comes to wait for a worker: in `wait`, in `paused`, or in `prioritized`. The
-- queue's meta must have been read. Needs:

-- Jobs of one priority are fetched in the order in which they came.
local function priority_score(queue, priority)
  local key = queue.prefix .. "pc"
  local count = counter(redis.call("GET", key)) + 1
  redis.call("SET", key, digits(count))
  return digits(priority * 2 ^ 32 + count % 2 ^ 32)
end

-- Makes a job available. With LPUSH it is fetched after those in the list, with RPUSH before them.
local function make_available(queue, id, priority, push)
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, priority_score(queue, priority), id)
  else
    redis.call(push, waiting_list(queue), id)
  end
end

--- includes/inspect/places.lua
-- How a job comes to have one place in its queue, and the right one. The queue's meta must have been
-- read. Needs:

-- Takes an id out of all its places but one. Its mark goes with its place in `active`.
local function leave_in(queue, id, places, kept)
  local seen = false
  for at = #places, 1, -1 do
    local place = places[at]
    if place == kept and not seen then
      seen = true
    elseif READ_FROM[place] == "list" then
      redis.call("LREM", queue[place], 1, id)
    else
      redis.call("ZREM", queue[place], id)
    end
  end
  if kept ~= "active" then
    redis.call("SREM", queue.stalled, id)
  end
end

local function holds(places, wanted)
  for _, place in ipairs(places) do
    if place == wanted then
      return true
    end
  end
  return false
end

-- The place that a job should have: where it runs, where it has finished, or where it waits to run.
local function right_place(places, fields, is_locked)
  local order = { "wait", "paused", "prioritized", "delayed", "waiting-children", "active", "failed", "completed" }
  if is_locked then
    order = { "active", unpack(order) }
  elseif fields[3] then
    order = { "completed", "failed", unpack(order) }
  end
  for _, place in ipairs(order) do
    if holds(places, place) then
      return place
    end
  end
end

-- Gives a job a place that has none: among the finished ones, or where it waits. `fields` are its
-- name, data, finishedOn, failedReason and priority.
local function give_place(queue, id, fields, timestamp)
  if fields[3] then
    redis.call("ZADD", fields[4] and queue.failed or queue.completed, digits(number(fields[3]) or 0), id)
  elseif (attempt("SCARD", queue.prefix .. id .. ":dependencies") or 0) > 0 then
    redis.call("ZADD", queue["waiting-children"], timestamp, id)
  else
    make_available(queue, id, number(fields[5]) or 0, "LPUSH")
    wake(queue)
    emit(queue, "waiting", id)
  end
end

local rare
rarely = function()
  if not rare then
    --- includes/types.lua
    -- Whether keys have the types that they should have. Needs:

    -- What answers with a number if and only if a key has the type, or is not there. That costs
    -- half of what TYPE costs.
    local SIZE = { list = "LLEN", zset = "ZCARD", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN" }

    -- What is wrong with the first key that holds something else than it should, or nil.
    -- `types` is a list of a key, its type, a key, its type …
    local function mistyped(types)
      for at = 1, #types, 2 do
        local key, should_be = types[at], types[at + 1]
        local size = redis.pcall(SIZE[should_be], key)
        if type(size) ~= "number" then
          if not size.err:find("WRONGTYPE", 1, true) then
            return key .. " may not be used by this user, or not from here"
          end
          local found = attempt("TYPE", key)
          return key .. " is " .. (found and "a " .. found.ok or "something else") .. " and should be a " .. should_be
        end
      end
      return nil
    end

    --- includes/queue/key_names.lua
    -- Which names the keys of a queue have. Needs no other include.

    local NAMES = " wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events "
      .. "id limiter priority repeat waiting-children "

    -- The parts before the first colon and after the last one that only keys of a queue have. A
    -- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`. Other
    -- ids have no colon, or two: so says BullMQ.
    local FIRST_PARTS = " de dn echomq stalled-check "
    local LAST_PARTS = " lock released logs dependencies processed failed unsuccessful "

    local function is_one_of(names, name)
      return name:find("^[a-z-]+$") and names:find(" " .. name .. " ", 1, true) and true or false
    end

    -- Whether an id is the name of a key that is not a job's hash.
    local function is_name_of_key(id)
      local first = id:match("^([^:]*):")
      if not first then
        return id == "" or is_one_of(NAMES, id)
      elseif first == "repeat" then
        return not id:find(":%d+$")
      elseif first == "metrics" then
        return id:find("^metrics:%l+$") ~= nil or id:find("^metrics:%l+:data$") ~= nil
      end
      local _, colons = id:gsub(":", "")
      return is_one_of(FIRST_PARTS, first) or colons ~= 2 and is_one_of(LAST_PARTS, id:match("([^:]*)$"))
    end

    --- includes/queue/join.lua
    -- How the lists `wait` and `paused` become one. Needs:

    local MOVED_TOGETHER = 1000 -- ids in one command; Lua unpacks no more than 8,000

    -- When the job was added that a list lets go first, in ms.
    local function age_of_next(queue, list)
      return number(attempt("HGET", queue.prefix .. redis.call("LINDEX", list, -1), "timestamp")) or 0
    end

    -- Moves all ids of one list to another, before those that are there or after them.
    local function move_ids(from, to, goes_first)
      local pop, push = goes_first and "LPOP" or "RPOP", goes_first and "RPUSH" or "LPUSH"
      local ids = redis.call(pop, from, MOVED_TOGETHER)
      while ids and #ids > 0 do
        redis.call(push, to, unpack(ids))
        ids = redis.call(pop, from, MOVED_TOGETHER)
      end
    end

    -- Joins both lists into `target`, by default the longer one, and returns its key. The list whose
    -- next job is older goes first, and the shorter one moves.
    local function join_lists(queue, target)
      local waiting, paused = redis.call("LLEN", queue.wait), redis.call("LLEN", queue.paused)
      local longer, shorter = queue.wait, queue.paused
      if paused > waiting then
        longer, shorter = queue.paused, queue.wait
      end
      if waiting > 0 and paused > 0 then
        local ages = { age_of_next(queue, queue.wait), age_of_next(queue, queue.paused) }
        local first = (ages[1] < ages[2] or ages[1] == ages[2] and target ~= queue.wait) and queue.wait or queue.paused
        move_ids(shorter, longer, shorter == first)
      end
      if target and target ~= longer and waiting + paused > 0 then
        redis.call("RENAME", longer, target)
      end
      return target or longer
    end

    rare = {
      is_name_of_key = is_name_of_key,
      join_lists = join_lists,
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/repairJobs-1.lua

local prefix, timestamp, fault = ARGV[1], time_in_ms(ARGV[2]), ARGV[3]
local queue = queue_at(prefix)

local function read(id)
  local fields = not is_reserved(id) and attempt("HMGET", prefix .. id, "name", "data", "finishedOn", "failedReason",
    "priority")
  return fields and (fields[1] or fields[2]) and fields or nil
end

local repairs = {
  ["no-job"] = function(id, places)
    local is_there = is_reserved(id) or redis.call("EXISTS", prefix .. id, prefix .. id .. ":lock") > 0
    if #places == 0 or is_there then
      return false
    end
    leave_in(queue, id, places, nil)
    return true
  end,
  nowhere = function(id, places)
    local fields = read(id)
    if #places > 0 or not fields or redis.call("EXISTS", prefix .. id .. ":lock") == 1 then
      return false
    end
    give_place(queue, id, fields, timestamp)
    return true
  end,
  twice = function(id, places)
    local fields = read(id)
    if #places < 2 or not fields then
      return false
    end
    leave_in(queue, id, places, right_place(places, fields, redis.call("EXISTS", prefix .. id .. ":lock") == 1))
    return true
  end,
  lock = function(id, places)
    local key = prefix .. id .. ":lock"
    return not holds(places, "active") and redis.call("PTTL", key) == -1 and redis.call("DEL", key) == 1
  end,
  mark = function(id, places)
    return not holds(places, "active") and redis.call("SREM", queue.stalled, id) == 1
  end,
}

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
local outcomes, has_repaired = {}, false
for at = 4, #ARGV do
  outcomes[at - 3] = repairs[fault](ARGV[at], places_of(queue, ARGV[at])) and "done" or "changed"
  has_repaired = has_repaired or outcomes[at - 3] == "done"
end
if has_repaired and queue.concurrency then -- one of them may have had a place in `active`
  wake_for_waiting(queue)
end
return outcomes
