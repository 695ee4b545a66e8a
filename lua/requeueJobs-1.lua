-- Built by tools/build-lua from lua/src/commands/requeueJobs-1.lua: edit that file, not this one.
--[[
Requeues jobs that their worker holds and does not run, as if it had never fetched them.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon
      2 and on: id and token of each job, in the order in which they are to be fetched again

They are the next ones to be fetched. Returns the ids that the worker did not hold any more;
nothing is written for those, but that an id whose job is gone leaves `active`, and the job that
waits for its end is added. A call that is sent twice finds its jobs requeued.

Cost: for each job O(N) in `active` from its new end to the job, O(log N) in those prioritized.
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

--- includes/queue/drop.lua
-- How a job leaves `active` whose hash is gone. Needs no other include.

-- Removes the mark of a job. Hardly ever is any job marked: that is looked at once in a script.
local function remove_mark(queue, id)
  if queue.has_marks == nil then
    queue.has_marks = redis.call("SCARD", queue.stalled) > 0
  end
  if queue.has_marks then
    redis.call("SREM", queue.stalled, id)
  end
end

-- Takes a job out of `active` whose hash is gone: somebody removed it while it ran. Its hash is
-- not written again. Returns whether it was there.
local function drop_from_active(queue, id)
  redis.call("DEL", queue.prefix .. id .. ":lock")
  remove_mark(queue, id)
  return redis.call("LREM", queue.active, -1, id) > 0
end

--- includes/queue/newest_events.lua
-- The newest events of a queue: what jobs whose hashes are gone cannot tell any more. Needs:

-- Of some 10,000 that there may be: to read all would block Redis for long.
local NEWEST_EVENTS = 1000

-- Each is its id and its fields, the newest one first. None where the user may not read them.
local function newest_events(queue)
  return attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}
end

--- includes/finish/gone.lua
-- What the end of a job whose hash is gone means: somebody removed it while it ran, or Redis has evicted it. Needs:

-- The value that follows a name in the fields of an event, or nil.
local function value_in(fields, name)
  for at = 1, #fields, 2 do
    if fields[at] == name then
      return fields[at + 1]
    end
  end
  return nil
end

-- The deduplication ids of the jobs for whose end others wait, by the ids of these jobs: the events of
-- those that came meanwhile name both.
local function deduplication_ids(queue)
  local found = {}
  for _, entry in ipairs(newest_events(queue)) do
    local fields = entry[2]
    if fields[2] == "deduplicated" and fields[4] and not found[fields[4]] then
      found[fields[4]] = value_in(fields, "deduplicationId")
    end
  end
  return found
end

-- Adds the job that waits for the end of one that is gone. Returns what went wrong, if anything did.
local function follow_gone_job(queue, id, deduplication_id, timestamp)
  if deduplication_id and attempt("GET", queue.prefix .. "de:" .. deduplication_id) == id then
    return rarely().end_deduplication(queue, deduplication_id, id, timestamp)
  end
  return nil
end

-- Takes a job that is gone out of `active`, and adds the one that waits for its end. Returns whether
-- it was there, and what went wrong, if anything did.
local function end_gone_job(queue, id, timestamp)
  return drop_from_active(queue, id), follow_gone_job(queue, id, deduplication_ids(queue)[id], timestamp)
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
      return is_name_of_key(id)
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

    --- includes/queue/add.lua
    -- How a new job, whose hash is there, comes into a queue. The queue's meta must have been read. Needs:

    -- Makes a new job available now, or when it is due in ms (0 for now). One that `is_first` is
    -- fetched before all that wait, as BullMQ's `lifo` says; once delayed, it is one among others. Returns whether
    -- it is available, so that a worker is to be woken.
    local function add_to_queue(queue, id, name, priority, due, is_first)
      redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", "added", "jobId", id, "name", name)
      if due > 0 then
        delay(queue, id, due)
        return false
      elseif priority > 0 then
        make_available(queue, id, priority)
      else
        redis.call(is_first and "RPUSH" or "LPUSH", waiting_list(queue), id)
      end
      redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id)
      return true
    end

    --- includes/finish/deduplication.lua
    -- The key that keeps a second job of a deduplication id away until the first has ended. Needs:

    -- A deduplication key with a TTL ends by itself; one that names another job is that job's.
    local function release_deduplication(queue, deduplication_id, id)
      local key = queue.prefix .. "de:" .. deduplication_id
      if attempt("GET", key) == id and redis.call("PTTL", key) == -1 then
        redis.call("DEL", key)
      end
    end

    --- includes/finish/next_job.lua
    -- What the end of a job means to its deduplication id: the key that keeps a second job away is
    -- released, and the job that came meanwhile (keepLastIfActive) is added. Needs:

    local function is_free(queue, id)
      return not is_reserved(id) and redis.call("EXISTS", queue.prefix .. id) == 0
    end

    -- The id that the job was given when it came, unless a job has it by now: then one that is free.
    local function id_of_next(queue, id)
      local count, step = counter(redis.call("GET", queue.prefix .. "id")) + 1, 1
      redis.call("SET", queue.prefix .. "id", digits(count))
      if id and is_free(queue, id) then
        return id
      end
      while not is_free(queue, digits(count)) do -- the counter was lost: find the end of the ids soon
        count, step = count + step, step * 2
      end
      redis.call("SET", queue.prefix .. "id", digits(count))
      return digits(count)
    end

    -- The job that is stored under a key: its fields, opts, delay and priority, and what names it to others.
    local function read_stored(stored)
      local found = redis.call("HMGET", stored, "name", "data", "opts", "pk", "pd", "pdk", "rjk", "jid")
      local opts = object(found[3])
      return {
        name = found[1] or "", data = found[2] or "{}", opts_text = found[3] or "{}", opts = opts,
        parent_key = found[4], parent = found[5], dependencies = found[6], scheduler = found[7], own_id = found[8],
        delay = math.max(number(opts.delay) or 0, 0), priority = math.max(number(opts.priority) or 0, 0),
      }
    end

    -- Writes the hash of a job.
    local function write_next(key, job, deduplication_id, timestamp)
      redis.call("HSET", key, "name", job.name, "data", job.data, "opts", job.opts_text, "timestamp", timestamp,
        "delay", digits(job.delay), "priority", digits(job.priority), "deid", deduplication_id)
      for name, value in pairs({ parentKey = job.parent_key, parent = job.parent, rjk = job.scheduler }) do
        if value then
          redis.call("HSET", key, name, value)
        end
      end
    end

    -- Lets a job keep others away in its turn.
    local function hold_deduplication(queue, deduplication_id, id, opts)
      local key, rule = queue.prefix .. "de:" .. deduplication_id, type(opts.de) == "table" and opts.de or {}
      local ttl = rule.keepLastIfActive ~= true and number(rule.ttl) or 0
      if ttl >= 1 then
        redis.call("SET", key, id, "PX", digits(math.floor(ttl)))
      else
        redis.call("SET", key, id)
      end
    end

    -- Adds the job that waits under `dn:<deduplication id>`, if there is one. Returns why it
    -- stays there when it cannot be added.
    local function add_next_job(queue, deduplication_id, timestamp)
      local stored = queue.prefix .. "dn:" .. deduplication_id
      if redis.call("EXISTS", stored) == 0 then
        return nil
      end
      local fault = mistyped(types_of(queue, stored, "hash", queue.prefix .. "id", "string"))
      if fault then
        return "the job that waits for its end was not added: " .. fault
      end
      local job = read_stored(stored)
      local id = id_of_next(queue, job.own_id)
      local key, due = queue.prefix .. id, job.delay > 0 and timestamp + job.delay or 0
      hold_deduplication(queue, deduplication_id, id, job.opts)
      write_next(key, job, deduplication_id, timestamp)
      if add_to_queue(queue, id, job.name, job.priority, due, job.opts.lifo == true) then
        wake(queue)
      end
      if job.dependencies and job.parent_key and attempt("EXISTS", job.parent_key) == 1 then
        attempt("SADD", job.dependencies, key)
      end
      redis.call("DEL", stored)
      return nil
    end

    -- To be called when a job with a deduplication id has ended, in whichever way. Returns what went
    -- wrong, if anything did.
    local function end_deduplication(queue, deduplication_id, id, timestamp)
      if not deduplication_id then
        return nil
      end
      release_deduplication(queue, deduplication_id, id)
      return add_next_job(queue, deduplication_id, timestamp)
    end

    rare = {
      add_to_queue = add_to_queue,
      delay = delay,
      end_deduplication = end_deduplication,
      is_name_of_key = is_name_of_key,
      join_lists = join_lists,
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/requeueJobs-1.lua

local prefix = ARGV[1]
local queue, timestamp = queue_at(prefix), time_in_ms()
local lost, has_freed = {}, false

-- The score that goes before all others of a priority. It may be lower than any that `pc`
-- gives out.
local function first_score(priority)
  local lowest, highest = priority * 2 ^ 32 - 2 ^ 31, priority * 2 ^ 32 + 2 ^ 31 - 1
  local first = redis.call("ZRANGEBYSCORE", queue.prioritized, digits(lowest), digits(highest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  return first and digits(math.max(tonumber(first) - 1, lowest)) or priority_score(queue, priority)
end

local function requeue_job(id)
  local key = prefix .. id
  local fields = redis.call("HMGET", key, "priority", "ats")
  local priority = number(fields[1]) or 0
  redis.call("DEL", key .. ":lock")
  redis.call("SREM", queue.stalled, id)
  redis.call("LREM", queue.active, 1, id) -- from its new end: jobs that were not started are not old
  redis.call("HSET", key, "ats", digits(math.max(counter(fields[2]) - 1, 0)))
  redis.call("HDEL", key, "processedOn", "pb")
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, first_score(priority), id)
  else
    redis.call("RPUSH", waiting_list(queue), id)
  end
  emit(queue, "waiting", id, "prev", "active")
  has_freed = true
end

-- What to do with a job whose lock is not the worker's. Only one that was requeued by this
-- very call has no lock and no worker.
local function look_for(id, lock)
  if redis.call("EXISTS", prefix .. id) == 0 then
    has_freed = (not lock and end_gone_job(queue, id, timestamp)) or has_freed
  elseif not lock and not attempt("HGET", prefix .. id, "pb") then
    return
  end
  lost[#lost + 1] = id
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
trim_events(queue)
for at = #ARGV - 1, 2, -2 do
  local id, token = ARGV[at], ARGV[at + 1]
  local lock = attempt("GET", prefix .. id .. ":lock")
  if lock == token and redis.call("TYPE", prefix .. id).ok == "hash" then
    requeue_job(id)
  else
    look_for(id, lock ~= token and lock)
  end
end
if has_freed then
  wake(queue)
end
return lost
