-- Built by tools/build-lua from lua/src/commands/listJobs-1.lua: edit that file, not this one.
--[[
Lists jobs of one state of a queue, a page at a time. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 state: wait, paused, active, delayed, prioritized,
        waiting-children, completed or failed
      3 offset  4 how many ids to look at, or fewer when their jobs are large
      5 "newest" for those that came last first, else those that come next, or finished last, first
      6 a text: only the jobs that have it in their id, name, data or failedReason; "" for all
      7 the most bytes of data to return of a job; the rest is left out

Returns a list:
      1 how many ids the state has  2 how many were looked at
      3 for each job: its id, 1 (or 0 without a hash, -1 for another type), TTL of its lock in ms, score or "", size of
        its data, the fields of inspect/row, and for one that waits for a worker since when, in ms, and 1 if that is
        known, 0 if it may be later

Cost: O(1) for each id that is looked at, beyond what it takes to get to the offset.
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
-- key of a queue. Needs:

-- Whether an id is the name of a key that is not a job's hash. Nearly all ids pass at once: names have a
-- colon or are short, and none of these is hexadecimal.
local function is_reserved(id)
  if #id > 16 and not id:find(":", 1, true) or id:find("^%x[%x-]*$") then
    return false
  end
  return rarely().is_name_of_key(id)
end

--- includes/time.lua
-- Times for people. Needs no other include.

-- The ISO 8601 form of seconds since the epoch, without the Z.
local function iso_second(whole)
  local days, second = math.floor(whole / 86400), whole % 86400
  -- Years that begin in March have their leap day at the end; 400 of them are 146,097 days.
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524)
    - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local from_march = math.floor((5 * of_year + 2) / 153)
  local day = of_year - math.floor((153 * from_march + 2) / 5) + 1
  local month = from_march < 10 and from_march + 3 or from_march - 9
  return string.format("%04d-%02d-%02dT%02d:%02d:%02d", year + era * 400 + (month <= 2 and 1 or 0), month, day,
    math.floor(second / 3600), math.floor(second / 60) % 60, second % 60)
end

local DIGITS = { [0] = "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }
local iso_seconds = {} -- since the jobs of a call began, or stalled, at about the same time

-- The ISO 8601 form of ms since the epoch, in parts: up to the second, and each digit of the ms. Whoever joins
-- them puts a "." before the digits and a "Z" after them. To turn a number into text takes longer.
local function iso_parts(ms)
  local rest = ms % 1000
  local whole = (ms - rest) / 1000
  local text = iso_seconds[whole]
  if not text then
    text = iso_second(whole)
    iso_seconds[whole] = text
  end
  local tens, ones = rest % 100, rest % 10
  return text, DIGITS[(rest - tens) / 100], DIGITS[(tens - ones) / 10], DIGITS[ones - ones % 1]
end

-- The ISO 8601 form of ms since the epoch, in UTC: "2023-11-14T22:13:20.000Z".
local function iso_time(ms)
  local second, hundreds, tens, ones = iso_parts(ms)
  return second .. "." .. hundreds .. tens .. ones .. "Z"
end

-- The ms since the epoch of a time in that form.
local function ms_of(iso)
  local year, month, day, hour, minute, second, ms = iso:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)%.?(%d*)Z$")
  if not year then
    return 0
  end
  local from_march, since = (month + 9) % 12, year - (month + 0 <= 2 and 1 or 0)
  local days = since * 365 + math.floor(since / 4) - math.floor(since / 100) + math.floor(since / 400)
    + math.floor((from_march * 153 + 2) / 5) + day - 1 - 719468
  return ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000 + (tonumber(ms) or 0)
end

--- includes/inspect/waiting.lua
-- Since when a job waits for a worker. Writes nothing. Needs:

local EVENTS_AT_ONCE = 100

-- When the last line of its log was written, if it tells that the job came to wait; else 0.
local function noted_at(key)
  local line = (attempt("LRANGE", key .. ":logs", -1, -1) or {})[1] or ""
  local time, verb = line:match("^(%d%d%d%d%-%d%d%-%d%dT[%d:.]+Z) (%l+).* to %l+$")
  local is_ours = verb == "stall" or verb == "retried" or verb == "promoted"
  return is_ours and ms_of(time) or 0
end

-- When the newest event tells that the job came to wait, of so many events and none before a time; else nil.
local function told_at(queue, id, earliest, most)
  local last = "+"
  for _ = 1, most, EVENTS_AT_ONCE do
    local events = attempt("XREVRANGE", queue.events, last, digits(earliest), "COUNT", EVENTS_AT_ONCE) or {}
    for _, event in ipairs(events) do
      local fields = event[2]
      if fields[2] == "waiting" and fields[4] == id then
        return number(event[1]:match("^%d+"))
      end
    end
    if #events < EVENTS_AT_ONCE then
      return nil
    end
    last = "(" .. events[#events][1]
  end
end

-- Since when a job with these fields (see inspect/row) waits, in ms, and whether that is known. If not, it is a
-- moment before which it did not. It is known of jobs that nobody has fetched yet, and of those that a check or a
-- person has brought back. Of others an event may tell: `most_events` says how many to look at.
local function waiting_since(queue, id, fields, now, most_events)
  local key = queue.prefix .. id
  local added, own_delay = number(fields[4]) or 0, 0
  if (fields[3] or ""):find('"delay"', 1, true) then
    own_delay = number(object(fields[3]).delay) or 0
  end
  local is_due = added + own_delay <= now -- else a person has promoted it
  local due = is_due and added + own_delay or added
  local earliest = math.max(added, number(fields[7]) or 0, number(fields[8]) or 0)
  local noted = noted_at(key)
  if noted > 0 and noted >= earliest then
    return noted, true
  end
  local starts = counter(fields[10]) + counter(fields[11]) + counter(fields[12])
  local is_new = is_due and earliest == added and starts == 0
    and redis.call("EXISTS", key .. ":processed", key .. ":failed", key .. ":unsuccessful") == 0
  if is_new then
    return due, true
  end
  local told = most_events > 0 and told_at(queue, id, earliest, most_events)
  return told or math.max(earliest, due), told and true or false
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

-- One text of all fields, since clients take longer for twenty: how long each is, or -1 for one that
-- is not there, and then all of them.
local function pack_fields(fields)
  local sizes, texts = {}, {}
  for at = 1, #ROW_FIELDS do
    sizes[at], texts[at] = fields[at] and #fields[at] or -1, fields[at] or ""
  end
  return struct.pack(">" .. ("i4"):rep(#ROW_FIELDS), unpack(sizes)) .. table.concat(texts)
end

local WAITING = { wait = true, paused = true, prioritized = true }

-- Describes a job: its id, 1 when there is one (0 without a hash, -1 for what is no job), the TTL of its
-- lock in ms (-2 without), its score where it has one, the size of its data, its fields in one text, and
-- for one that waits for a worker since when, in ms, and 1 if that is known, 0 if it may be later. Data
-- beyond `look.most_data` bytes is left out; `look.now` is the time in ms, and `look.events` how many of
-- them may be looked at.
local function describe_row(queue, id, state, score, fields, there, look)
  local size = #(fields[2] or "")
  if size > look.most_data then
    fields[2] = false
  end
  local waits = {}
  if there == 1 and WAITING[state] then
    local since, is_known = waiting_since(queue, id, fields, look.now, look.events)
    waits = { digits(since), is_known and 1 or 0 }
  end
  return { id, there, redis.call("PTTL", queue.prefix .. id .. ":lock"), score or "", size, pack_fields(fields), waits }
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

    rare = {
      is_name_of_key = is_name_of_key,
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/listJobs-1.lua

local MOST_BYTES = 4000000 -- of jobs after which a call looks at no further one: that takes some 5 ms, or 15 to search

local prefix, state, offset, count = ARGV[1], ARGV[2], number(ARGV[3]), number(ARGV[4])
local newest, needle = ARGV[5] == "newest", ARGV[6]:lower()
local queue = queue_at(prefix)

local function matches(id, fields)
  for _, text in ipairs({ id, fields[1] or "", fields[2] or "", fields[13] or "" }) do
    if text:lower():find(needle, 1, true) then
      return true
    end
  end
  return false
end

local function bytes_of(fields)
  local bytes = 0
  for at = 1, #ROW_FIELDS do
    bytes = bytes + (fields[at] and #fields[at] or 0)
  end
  return bytes
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
local look = { now = tonumber(time_in_ms()), most_data = number(ARGV[7]), events = 0 }
local ids, scores = ids_of(queue, state, offset, count, newest)
local rows, looked_at, bytes = {}, 0, 0
for _, id in ipairs(ids) do
  if bytes > MOST_BYTES then
    break
  end
  local fields, there = read_row_fields(queue, id)
  looked_at, bytes = looked_at + 1, bytes + bytes_of(fields)
  if needle == "" or matches(id, fields) then
    rows[#rows + 1] = describe_row(queue, id, state, scores[id], fields, there, look)
  end
end
return { count_of(queue, state), looked_at, rows }
