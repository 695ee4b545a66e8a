-- Built by tools/build-lua from lua/src/commands/describeJob-1.lua: edit that file, not this one.
--[[
Says all there is to say about one job of a queue. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 how many of the last lines of its log to return

Returns a list: 1 the states it is in, which should be one; a list that has it twice is named twice
2 the job, as listJobs describes it  3 whether a check has marked it  4 the last lines of its log
5 how many children it still waits for  6 the worker that holds its lock: -1 when it is not registered, 0 when its
connection is there, else since when that is missing, in ms.

Cost: O(N) in the ids of `wait`, `paused` and `active`, and in the workers that are registered.
--]]

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if type(value) == "string" and value:match("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  if type(value) ~= "number" and type(value) ~= "string" then
    return nil
  end
  value = tonumber(value)
  if value and value == value and math.abs(value) < 2 ^ 53 then
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

--- includes/queue/keys.lua
-- The keys of a queue, in one table that the other includes take as `queue`. Needs no other
-- include; queue/meta adds what the meta says to the same table.

-- The keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    delayed = prefix .. "delayed", prioritized = prefix .. "prioritized", pc = prefix .. "pc",
    completed = prefix .. "completed", failed = prefix .. "failed", stalled = prefix .. "stalled",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events", limiter = prefix .. "limiter",
    ["waiting-children"] = prefix .. "waiting-children", ["repeat"] = prefix .. "repeat",
    untold = prefix .. "stalled-check:untold", ["untold-jobs"] = prefix .. "stalled-check:untold:jobs",
  }
end

-- All keys of a queue with their types.
local function types_of(queue, ...)
  return {
    queue.wait, "list", queue.paused, "list", queue.active, "list", queue.delayed, "zset",
    queue.prioritized, "zset", queue.pc, "string", queue.completed, "zset", queue.failed, "zset",
    queue.stalled, "set", queue.meta, "hash", queue.marker, "zset", queue.events, "stream",
    queue["waiting-children"], "zset", queue["repeat"], "zset", ...,
  }
end

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
      return string.format("%s is %s and should be a %s", key, found and "a " .. found.ok or "something else", should_be)
    end
  end
  return nil
end

--- includes/queue/meta.lua
-- What the meta of a queue says, and why a script may refuse the queue. Needs:

-- Reads what the queue's meta says, once for a script.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version", "max", "duration") or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = number(meta[2])
  local max_events = math.floor(number(meta[3]) or 10000)
  queue.max_events = max_events > 0 and digits(max_events) or max_events == 0 and "0" or "10000" -- not "-0"
  queue.version = meta[4] or ""
  queue.rate_limit = { max = number(meta[5]), duration = number(meta[6]) }
end

-- Why nothing may be done to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types.
local function refusal(queue, types)
  local fault = mistyped(types)
  if fault then
    return "refuses the queue: " .. fault .. ". Nothing was written. Repair or remove that key."
  end
  read_meta(queue)
  if queue.version:sub(1, 8) == "echomq:2" then
    return "refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use."
  end
  return nil
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

--- includes/queue/reserved.lua
-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs no other include.

-- Texts and not tables: a script makes those anew in each call, for a check that most ids pass
-- at once.
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
local function is_reserved(id)
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

--- includes/inspect/row.lua
-- A job as the scripts that look at jobs describe it. Writes nothing. Needs:

-- The order is that of FIELDS in protocol/job_info.py.
local ROW_FIELDS = { "name", "data", "opts", "timestamp", "delay", "priority", "processedOn", "finishedOn", "pb",
  "ats", "atm", "stc", "failedReason", "returnvalue", "stacktrace", "parentKey", "rjk", "deid", "defa", "progress" }

-- Reads the fields of a job. Returns them, and 1 for a job, 0 without a hash, -1 for a key that
-- is no job.
local function read_row_fields(queue, id)
  local key = queue.prefix .. id
  local fields = is_reserved(id) and {} or redis.pcall("HMGET", key, unpack(ROW_FIELDS))
  if is_reserved(id) or fields.err then
    return {}, -1
  end
  if fields[1] or fields[2] or fields[4] then
    return fields, 1
  end
  return fields, redis.call("EXISTS", key) == 1 and -1 or 0
end

-- Describes a job: its id, 1 when there is one (0 without a hash, -1 for what is no job), the TTL of its lock in ms (-2 without), its score
-- where it has one, the size of its data, and its fields. Data beyond `most_data` bytes is left out.
local function describe_row(queue, id, score, most_data, fields, there)
  local size = #(fields[2] or "")
  if size > most_data then
    fields[2] = false
  end
  return { id, there, redis.call("PTTL", queue.prefix .. id .. ":lock"), score or "", size, fields }
end

--- commands/describeJob-1.lua

local prefix, id, lines = ARGV[1], ARGV[2], number(ARGV[3])
local queue = queue_at(prefix)

local function holder_of(lock)
  local token = attempt("GET", lock)
  local worker = token and token:match("^([^:]+):")
  local registered = worker and attempt("ZRANGE", prefix .. "echomq:workers", 0, -1, "WITHSCORES") or {}
  for at = 1, #registered, 2 do
    if registered[at]:sub(1, #worker + 1) == worker .. " " then
      return digits(math.max(-(number(registered[at + 1]) or 0), 0))
    end
  end
  return -1
end

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local fields, there = read_row_fields(queue, id)
local key = prefix .. id
return {
  places_of(queue, id), describe_row(queue, id, redis.call("ZSCORE", queue.delayed, id), math.huge, fields, there), redis.call("SISMEMBER", queue.stalled, id),
  attempt("LRANGE", key .. ":logs", -lines, -1) or {}, attempt("SCARD", key .. ":dependencies") or 0,
  holder_of(key .. ":lock"),
}
