-- Built by tools/build-lua from lua/src/commands/retryJobs-1.lua: edit that file, not this one.
--[[
Makes failed jobs available again, with no stalls, attempts or failure on record but a line in the log.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 … ids

A flow parent waits for the job again. One whose own children are pending, or have failed and
forbid it, may run again but not complete: finishAndFetch sees to that.

Returns for each id 1, or 0 when no such job is in `failed`. An id without a job is removed from
there, with what may be left of it.

Cost: O(log N) in the failed jobs, for each id.
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

--- includes/queue/history.lua
-- The history of a job: lines in its log, which dashboards show under the job. One that ends in
-- " to " and the name of a list says since when the job waits there. Needs:

-- The name of the list or set in which a job of a priority waits.
local function place_of_waiting(queue, priority)
  return priority > 0 and "prioritized" or waiting_list(queue) == queue.wait and "wait" or "paused"
end

-- How many lines the opts of a job keep (keepLogs, as BullMQ has it); 0 for all.
local function lines_kept(opts)
  return number(opts.kl) or number(opts.keepLogs) or 0
end

-- Appends a line. A log that is no list is left as it is.
local function add_line(key, kept, line)
  local log = key .. ":logs"
  local length = redis.pcall("RPUSH", log, line)
  if kept >= 1 and type(length) == "number" then
    attempt("LTRIM", log, digits(-math.floor(kept)), -1) -- a right that not every user has
  end
end

local function add_to_history(key, opts, ms, text)
  add_line(key, lines_kept(opts), iso_time(ms) .. " " .. text)
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

--- includes/queue/remove.lua
-- How a job is removed. Needs:

-- Removes the hashes of at most 1,000 jobs and what stands beside them, but for ids that are names
-- of keys of the queue. The lock is not among that: a job that is removed when it finishes has none any more.
-- Nor is its id removed from where it stands in the queue.
local function remove_jobs(queue, ids)
  local keys = {}
  for _, id in ipairs(ids) do
    if not is_reserved(id) then
      local key, size = queue.prefix .. id, #keys
      keys[size + 1], keys[size + 2], keys[size + 3] = key, key .. ":logs", key .. ":dependencies"
      keys[size + 4], keys[size + 5], keys[size + 6] = key .. ":processed", key .. ":failed", key .. ":unsuccessful"
    end
  end
  if #keys > 0 then
    redis.call("DEL", unpack(keys))
  end
end

--- includes/parents/parent.lua
-- The flow parent of a job, which may live in another queue. Needs:

-- Where a job's flow parent lives, or nil for a job without one: its key, id and queue. A job
-- is a table of `parent`, its decoded field, and `parent_key`.
local function parent_of(job)
  local data = job.parent
  local key, id, base = job.parent_key, data.id, data.queueKey
  if type(id) == "number" then
    id = digits(id)
  end
  if type(id) == "string" and type(base) == "string" then
    key = key or (base .. ":" .. id)
  elseif key then
    base, id = key:match("^(.*):(.-)$")
  end
  if not key or not base then
    return nil
  end
  return { key = key, id = id, queue = queue_at(base .. ":") }
end

-- What is wrong with the keys of a parent, or nil. They may be out of reach: on another
-- node of a cluster, or for an ACL user that may not touch them.
local function unfit_parent(parent)
  return rarely().mistyped(types_of(parent.queue, parent.key, "hash", parent.key .. ":dependencies", "set",
    parent.key .. ":processed", "hash", parent.key .. ":failed", "hash", parent.key .. ":unsuccessful", "zset"))
end

-- The parent of a job, which is to be told something; nil without one, or with why it cannot be told.
local function parent_to_tell(job)
  local parent = parent_of(job)
  local fault = parent and unfit_parent(parent)
  if fault then
    return nil, "its parent was not told: " .. fault
  end
  return parent, nil
end

--- includes/parents/retry.lua
-- What a flow parent learns of a failed child that is tried again. Needs:

-- Lets the parent wait for the child once more, if the failure had been noted with it. A parent
-- that is out of reach cannot be told: the job is tried again all the same.
local function tell_parent_of_retry(job, child_key)
  local parent = parent_to_tell(job)
  if not parent or redis.call("EXISTS", parent.key) == 0 then
    return
  end
  local was_noted = redis.call("ZREM", parent.key .. ":unsuccessful", child_key)
    + redis.call("HDEL", parent.key .. ":failed", child_key) > 0
  if was_noted then
    redis.call("SADD", parent.key .. ":dependencies", child_key)
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

    rare = {
      is_name_of_key = is_name_of_key,
      join_lists = join_lists,
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/retryJobs-1.lua

local prefix = ARGV[1]
local queue, now = queue_at(prefix), nil

-- The keys of the jobs, with their types.
local function types_of_jobs()
  local types = {}
  for at = 2, #ARGV do
    if not is_reserved(ARGV[at]) then
      types[#types + 1] = prefix .. ARGV[at]
      types[#types + 1] = "hash"
    end
  end
  return unpack(types)
end

local function retry(id)
  local key = prefix .. id
  if redis.call("ZREM", queue.failed, id) == 0 then
    return 0
  end
  local fields = is_reserved(id) and {} or redis.call("HMGET", key, "name", "data", "priority", "parentKey", "parent",
    "opts")
  if not (fields[1] or fields[2]) then
    remove_jobs(queue, { id })
    return 0
  end
  redis.call("HDEL", key, "stc", "suspect", "atm", "defa", "failedReason", "stacktrace", "finishedOn", "processedOn",
    "returnvalue")
  tell_parent_of_retry({ parent_key = fields[4], parent = object(fields[5]) }, key)
  local priority = number(fields[3]) or 0
  add_to_history(key, object(fields[6]), now, "retried, back to " .. place_of_waiting(queue, priority))
  make_available(queue, id, priority, "LPUSH")
  wake(queue)
  emit(queue, "waiting", id, "prev", "failed")
  return 1
end

local refused = refusal(queue, types_of(queue, types_of_jobs()))
if refused then
  return refused
end
now = tonumber(time_in_ms())
local outcomes, retried = {}, false
for at = 2, #ARGV do
  outcomes[at - 1] = retry(ARGV[at])
  retried = retried or outcomes[at - 1] == 1
end
if retried then
  trim_events(queue)
end
return outcomes
