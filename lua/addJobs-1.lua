-- Built by tools/build-lua from lua/src/commands/addJobs-1.lua: edit that file, not this one.
--[[
Adds jobs to a queue: all of them, or none.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 what `version` of the meta becomes when there is none
      4 1 to look at the types of all keys that may be written, 0 of none: the caller did not long ago;
        2 when the call may have been made before: then the newest events are looked at as well
      5 and on: six for each job:
        id, name, data, opts as a JSON object,
        when it is due in ms, or + and in how many ms, or 0 for now,
        priority, 0 for none, or `first`: fetched before all that wait now

Returns how many were added. Those that are there already are not: the call was sent twice. Nor are those
that an event tells of: they have run meanwhile, and were not kept.

Cost: O(log N) in the jobs delayed or prioritized, for each job.
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

--- includes/queue/add.lua
-- How a new job, whose hash is there, comes into a queue. The queue's meta must have been read. Needs:

-- Makes a new job available now, or when it is due in ms (0 for now). One that `is_first` is
-- fetched before all that wait, as BullMQ's `lifo` says; once delayed, it is one among others. Returns whether
-- it is available, so that a worker is to be woken.
local function add_to_queue(queue, id, name, priority, due, is_first)
  redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", "added", "jobId", id, "name", name)
  if due > 0 then
    rarely().delay(queue, id, due)
    return false
  elseif priority > 0 then
    rarely().make_available(queue, id, priority)
  else
    redis.call(is_first and "RPUSH" or "LPUSH", waiting_list(queue), id)
  end
  redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id)
  return true
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

local rare
rarely = function()
  if not rare then
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

    --- includes/queue/due.lua
    -- When the next delayed job is due. Needs no other include.

    -- When it is due in ms, or nil without one. Delays may be of any length, and then the score may be infinite.
    local function next_due(queue)
      local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
      return score and math.max(math.min(math.floor(tonumber(score) / 4096), 2 ^ 53), 0)
    end

    -- In how many ms a job is due, or -1 for none. Jobs may be due at a time that no integer holds.
    local function how_soon(due, timestamp)
      return due and math.max(math.min(due - timestamp, 2 ^ 31), 0) or -1
    end

    --- includes/queue/mark_due.lua
    -- How idle workers learn when the next delayed job is due. Needs:

    local function mark_next_due(queue)
      local due = next_due(queue)
      if due then
        redis.call("ZADD", queue.marker, digits(due), "1")
      end
    end

    --- includes/queue/delay.lua
    -- How a job comes to wait for a time. Needs:

    local MOST_EXACT = 2 ^ 53 -- beyond it, doubles have no room for places in a ms

    -- A ms has 4,096 places for jobs, which keep their order. When they are taken, the next ms has
    -- more: a job may come a little late, and never before one that came earlier.
    local function place_of(queue, due)
      local lowest, highest = due * 4096, due * 4096 + 4095
      local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
        "WITHSCORES", "LIMIT", 0, 1)[2]
      if not last then
        return lowest
      elseif tonumber(last) < highest or highest >= MOST_EXACT then
        return math.min(tonumber(last) + 1, highest)
      end
      return place_of(queue, due + 1)
    end

    -- Delays a job.
    local function delay(queue, id, due)
      redis.call("ZADD", queue.delayed, digits(place_of(queue, due)), id)
      emit(queue, "delayed", id, "delay", digits(due))
      mark_next_due(queue)
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

    --- includes/queue/newest_events.lua
    -- The newest events of a queue: what jobs whose hashes are gone cannot tell any more. Needs:

    -- Of some 10,000 that there may be: to read all would block Redis for long.
    local NEWEST_EVENTS = 1000

    -- Each is its id and its fields, the newest one first. None where the user may not read them.
    local function newest_events(queue)
      return attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}
    end

    --- includes/queue/told.lua
    -- Which jobs the newest events tell of. Needs:

    -- The ids of those to which this has happened, as keys of a table.
    local function ids_told_of(queue, event)
      local ids = {}
      for _, entry in ipairs(newest_events(queue)) do
        if entry[2][2] == event and entry[2][4] then
          ids[entry[2][4]] = true
        end
      end
      return ids
    end

    rare = {
      add_job_keys = add_job_keys,
      delay = delay,
      ids_told_of = ids_told_of,
      join_lists = join_lists,
      make_available = make_available,
      mistyped = mistyped,
      types_of = types_of,
    }
  end
  return rare
end

--- commands/addJobs-1.lua

local FIRST_JOB, PER_JOB = 5, 6

local prefix, timestamp, looks_at_all = ARGV[1], time_in_ms(ARGV[2]), ARGV[4] ~= "0"
local queue = common_keys(prefix)
if looks_at_all then
  rarely().add_job_keys(queue)
end
local refused = refusal(queue, looks_at_all and rarely().types_of(queue, prefix .. "id", "string"))
if refused then
  return refused
end

local added, wakes, added_before = 0, false, ARGV[4] == "2" and rarely().ids_told_of(queue, "added")
for at = FIRST_JOB, #ARGV, PER_JOB do
  local id, name, data, opts, when, priority = unpack(ARGV, at, at + PER_JOB - 1)
  local key = prefix .. id
  -- One look tells that the job is not there, and that no resume has left jobs in `paused`.
  local is_new = redis.call("EXISTS", key, queue.paused) == 0
  if is_new and not queue.is_paused then
    queue.waiting_list = queue.wait
  end
  if (is_new or redis.call("EXISTS", key) == 0) and not (added_before and added_before[id]) then
    local due, wait, is_first = 0, 0, priority == "first"
    if when ~= "0" then
      due = when:sub(1, 1) == "+" and timestamp + number(when) or number(when)
      wait = due > 0 and digits(due - timestamp) or 0
    end
    redis.call("HSET", key, "name", name, "data", data, "opts", opts, "timestamp", timestamp, "delay", wait,
      "priority", is_first and "0" or priority)
    if not queue.delayed and (when ~= "0" or priority ~= "0") then
      rarely().add_job_keys(queue)
    end
    local level = (is_first or priority == "0") and 0 or tonumber(priority)
    local is_available = add_to_queue(queue, id, name, level, due, is_first)
    wakes, added = wakes or is_available, added + 1
  end
end
if wakes then
  wake(queue)
end
if added > 0 then
  redis.pcall("INCRBY", prefix .. "id", added) -- when it holds no number, that is no matter of these jobs
  if queue.version == "" then
    redis.call("HSET", queue.meta, "version", ARGV[3])
  end
end
return added
