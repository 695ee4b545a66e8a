-- Built by tools/build-lua from lua/src/commands/moveStalledJobsToWait-8.lua: edit that file, not this one.
--[[
Finds the jobs of dead workers in a queue: marks them, and requeues or fails those that
an earlier check has marked. See "Stalled recovery" in the EchoMQ protocol.

KEYS  1 stalled  2 wait  3 active  4 failed  5 stalled-check  6 meta  7 paused  8 marker
ARGV  1 key prefix of the queue, with or without its last colon
      2 max_stalled_count: how many stalls a job survives; `maxStalledCount` of its opts goes first
      3 the time in ms, or 0 for the server's

With these three it does one whole check, at once and unthrottled. The rest is optional:

      4 interval in ms: skip the check when another sweeper made one less than that ago
      5 id of the sweep, "<sweeper>/<number>": makes a call that is sent twice count once,
        and ties the calls of a sweep together
      6 how many ids to look at in this call; the reply says where the next one goes on
      7 number of this call in its sweep, from 0
      8 and 9 where the last call stopped: its offset and its anchor
      10 write nothing, and for "report" describe each job and what a check would do to it; for "verdicts" say
         what it would do to each job without a lock
      11 how many ms failed jobs are kept whose opts do not say so: the last call removes up to 1,000. Empty for all
      12 how many ids are still to be looked at, as the last reply said
      13 the share of the active jobs, up to 1, that may be recovered at once: a check that would
         recover more is held, and the next sweep goes through. Empty for all
      14 how many ms there are between two sweeps
      15 in a report, the only id to look at. Empty for all

Returns a list:
      1 recovered  2 failed  3 ms until the throttle ends, or -1 when the check was made
      4 marked  5 dropped  6 the ids recovered, one right after the other
      7 jobs failed: id, reason, stalls, worker, name and data each; the data only of a job that was removed
      8 oddities: id and what is odd about it
      9 offset of the next call, or -1 after the last one  10 anchor of the next call
      11 in a report, texts about some ids each, which protocol/active_jobs.py reads
      12 how many ids are still to be looked at, once the sweep has moved some; else empty
      13 for each id recovered, as big-endian numbers: its length as an I4, and as an i8 the ms since a worker
         fetched it, or -1 where no `processedOn` says so
      14 of a check that was held: how many it would have recovered, how many are active, 1 if it is the first

Cost: O(1) for each id in `active`, and O(log N) in the jobs finished or prioritized for each
that is stalled. A call of a command costs more than what it does, so most are made once for
many ids. Stalled ids become tombstones that one LREM takes away, since an LREM for each of
them would make the check quadratic. With a limit (ARGV 6) a call ends after about 5 ms. In a
long list whose old end is healthy, ids that were looked at move to the new end, where they
do not stand between that end and the stalled ones.

The marks of earlier checks are set aside while a sweep runs: that tells them from its own
marks, and those left over at the end name ids that are no longer in `active`.
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

--- includes/queue/full.lua
-- What scripts can do while Redis is at its `maxmemory` and may evict nothing. Needs no other
-- include.

-- Redis then refuses a command that may take more memory, but only until the script has written
-- something: it stops none in the middle. A script whose purpose is to finish, give back, recover
-- or hold up jobs goes on when the first command that writes may not take more, as this one, which
-- changes nothing, whatever `meta` is. A script that adds jobs must not start so.
local function write_although_full(queue)
  local reply = redis.pcall("HDEL", queue.meta, "")
  if type(reply) == "table" and not reply.err:find("WRONGTYPE", 1, true) then
    redis.call("HDEL", queue.meta, "") -- on a replica, say: the script ends with its error
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

--- includes/finish/prune.lua
-- How finished jobs go that are kept no longer. Needs:

-- Removes what a finished set holds beyond `keep`, a table as finish/retention makes it. `size` is how many
-- jobs the set holds, or nil where that is not known.
local function prune(queue, finished, keep, timestamp, size)
  local most = 1000 -- jobs that go for one more finished job
  if keep.age then
    local surplus = redis.call("ZRANGEBYSCORE", finished, "-inf", digits(timestamp - keep.age * 1000),
      "LIMIT", 0, most)
    if #surplus > 0 then
      size = nil
      remove_jobs(queue, surplus)
      redis.call("ZREM", finished, unpack(surplus))
    end
  end
  local excess = keep.count and keep.count >= 0 and (size or redis.call("ZCARD", finished)) - keep.count or 0
  if excess > 0 then
    local popped, ids = redis.call("ZPOPMIN", finished, math.min(excess, most)), {}
    for at = 1, #popped, 2 do
      ids[(at + 1) / 2] = popped[at]
    end
    remove_jobs(queue, ids)
  end
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

--- includes/stalled/call.lua
-- What one call of moveStalledJobsToWait is to do, and what it has found: the table that the
-- other includes of stalled/ take as `call`. Needs:

-- A check calls them six times for each job that comes back.
local redis_call, redis_pcall = redis.call, redis.pcall

-- Reads KEYS and ARGV, as the header of the script lists them.
local function read_call()
  local prefix = ARGV[1]:sub(-1) == ":" and ARGV[1] or ARGV[1] .. ":"
  local queue = queue_at(prefix)
  queue.stalled, queue.wait, queue.active, queue.failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  queue.meta, queue.paused, queue.marker = KEYS[6], KEYS[7], KEYS[8]
  local reserved = {} -- keys of the queue that an odd id could name
  for _, key in pairs(queue) do
    reserved[key] = true
  end
  local throttle, sweep, mode = KEYS[5], ARGV[5] or "", ARGV[10] or ""
  local is_report = mode == "report" or mode == "verdicts"
  local record, timestamp = throttle .. ":" .. sweep, time_in_ms(ARGV[3])
  return {
    queue = queue, prefix = prefix, reserved = reserved,
    max_stalled_count = number(ARGV[2]), timestamp = timestamp, now = tonumber(timestamp),
    interval = number(ARGV[4]), sweep = sweep,
    limit = number(ARGV[6]) or math.huge, step = number(ARGV[7]) or 0,
    offset = number(ARGV[8]) or 0, anchor = ARGV[9] or "",
    mode = mode, is_report = is_report, only_id = ARGV[15] or "",
    keep_failed = { age = number(ARGV[11]) and number(ARGV[11]) / 1000 },
    remaining = number(ARGV[12]), -- once ids were rotated: how many are still to be looked at

    throttle = throttle,
    record = record, -- the reply, in case this call is sent twice
    marks = is_report and queue.stalled or record .. ":marks", -- ids that an earlier check has marked
    max_share = number(ARGV[13]), -- of the active jobs, that may be recovered at once
    hold_interval = number(ARGV[14]) or 30000, -- for about how many ms a check is held that would recover more
    hold = throttle .. ":hold", -- the sweep that began to hold, and when
    done = record .. ":done", -- by id, the `ats` of the jobs that this sweep has recovered or failed

    counts = { recovered = 0, failed = 0, marked = 0, dropped = 0 },
    recovered_ids = {}, recovered_since = {}, failed_jobs = {}, oddities = {}, reports = {},
    handled = {}, -- by id, the `ats` of the jobs that this call has recovered or failed
  }
end

local function note(call, id, oddity)
  call.oddities[#call.oddities + 1] = id
  call.oddities[#call.oddities + 1] = oddity
end

--- includes/stalled/throttle.lua
-- The throttle: of many sweepers one makes a check per interval. Needs no other include but
-- takes the `call` of stalled/call.

local EARLY = 1000 -- most ms by which a sweeper may come early to its own throttle

local KNOWN_FOR = 3600000 -- ms for which it is known when a check was made that no throttle tells of

-- Notes when a check was made that took no throttle: after a crash, or by hand.
local function note_unthrottled(call)
  if call.sweep ~= "" and not call.interval and redis.call("EXISTS", call.queue.meta) == 1 then
    redis.call("SET", call.throttle .. ":last", call.timestamp, "PX", KNOWN_FOR)
  end
end

-- How long the check has to wait for another sweeper's, in ms, or nil when it may start.
local function throttled(call)
  local throttle, sweep, interval = call.throttle, call.sweep, call.interval
  local held_since = sweep .. "@" .. call.timestamp -- people are told when a queue was last checked
  local holder = redis.call("GET", throttle)
  if not holder then
    redis.call("SET", throttle, held_since, "PX", interval)
    return nil
  end
  holder = holder:match("^(.*)@%d+$") or holder
  local left = redis.call("PTTL", throttle)
  if left == -1 then
    redis.call("PEXPIRE", throttle, interval)
    left = interval
  end
  if holder == sweep and sweep ~= "" then
    return nil
  end
  local sweeper = sweep:match("^(.*)/")
  if sweeper and holder:match("^(.*)/") == sweeper and left <= math.min(EARLY, interval / 10) then
    redis.call("SET", throttle, held_since, "PX", interval)
    return nil
  end
  return math.max(left, 1)
end

--- includes/stalled/lookup.lua
-- What is asked about many ids with one command, since a call of a command costs more than
-- what it does. Takes the `call` of stalled/call. Needs:

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

--- includes/queue/position.lua
-- Where a walk through `active`, from its old end, goes on that takes several calls. Needs no other include.

-- How many ids are behind it, although some may have gone since the last call stopped at `offset` with the `anchor` as
-- the last id; nil when that cannot be told.
local function position_of(active, offset, anchor)
  if offset == 0 or redis.call("LINDEX", active, -offset) == anchor then
    return offset
  end
  local position = redis.call("LPOS", active, anchor, "RANK", -1, "MAXLEN", offset)
  return position and redis.call("LLEN", active) - position
end

--- includes/stalled/cursor.lua
-- The way through `active`, from its old end, over as many calls as it takes. Takes the `call`
-- of stalled/call. Needs:

local CHUNK = 250 -- most ids looked at together; they take about 3 ms if all are stalled
local FIRST_CHUNK = 50 -- of a call, which tells how many more there is time for: three times less while Redis rehashes
local LEAST_CHUNK = 25 -- for fewer, a call is not prolonged
local CHUNK_OF_JOBS = 50 -- ids described together, whose data may be large
local BUDGET = 3.5 -- ms after which a call takes no further chunk; with all that is around it, it takes about 4.5
local DEEP = 4000 -- ids from the old end, beyond which a list is slow to change
local ROTATED_AT_ONCE = 1000 -- ids moved together; Lua unpacks no more than 8,000

-- A clock in ms. Inside a script TIME stands still from Redis 7.2 on, and before that there is no os.clock.
local function make_clock()
  local there, cpu_time = pcall(function() return os.clock end)
  if there and cpu_time then
    return function() return cpu_time() * 1000 end
  end
  return function()
    local now = redis.call("TIME")
    return now[1] * 1000 + now[2] / 1000
  end
end

-- Finds where the last call stopped.
local function resume(call)
  call.offset = position_of(call.queue.active, call.offset, call.anchor) or math.max(call.offset - CHUNK, 0)
end

-- Moves ids that were looked at from the old end of `active` to its new end, so that what comes
-- next is near an end. What a call takes out from deep within the list costs as much as the
-- list is long, for each call.
local function rotate(call)
  local active = call.queue.active
  call.remaining = call.remaining or redis.call("LLEN", active) - call.offset
  local ids = redis.call("LRANGE", active, -math.min(call.offset, ROTATED_AT_ONCE), -1)
  local oldest_first = {}
  for at = #ids, 1, -1 do
    oldest_first[#oldest_first + 1] = ids[at]
  end
  redis.call("LPUSH", active, unpack(oldest_first))
  redis.call("LTRIM", active, 0, -#ids - 1)
  call.offset = call.offset - #ids
  call.has_rotated = true
end

-- Calls `look_at(call, ids)`, which returns how many left `active`, for the ids of this call.
-- Returns true when there are none beyond them.
local function walk(call, look_at)
  local left, clock = call.limit, make_clock()
  local most = call.mode == "report" and CHUNK_OF_JOBS or CHUNK
  local chunk = math.min(most, FIRST_CHUNK)
  local looked_at = clock()
  local ends_at = looked_at + BUDGET
  repeat
    local size = math.min(left, chunk, call.remaining or chunk)
    local ids = redis.call("LRANGE", call.queue.active, -(call.offset + size), -(call.offset + 1))
    if call.offset > DEEP and not call.is_report and #ids > 0 and #lockless_places(call, ids) > 0 then
      rotate(call)
    else
      if #ids > 0 then
        call.offset = call.offset + #ids - look_at(call, ids)
        call.remaining = call.remaining and call.remaining - #ids
      end
      if #ids < size or call.remaining == 0 then
        return true
      end
      left = left - size
    end
    if call.limit < math.huge then
      local before = looked_at
      looked_at = clock()
      local fitting = math.floor(size * (ends_at - looked_at) / (looked_at - before + 0.001))
      if fitting < LEAST_CHUNK then
        return false
      end
      chunk = math.min(most, fitting)
    end
  until left <= 0
  return false
end

--- includes/stalled/marks.lua
-- The marks of earlier checks and the jobs that a sweep has handled, while it runs. Needs no
-- other include but takes the `call` of stalled/call.

local STATE_TTL = 600000 -- ms that the state of a sweep outlives a dead sweeper

local function set_marks_aside(call)
  local queue, marks = call.queue, call.marks
  if call.step == 0 and redis.call("EXISTS", queue.stalled) == 1 and redis.call("EXISTS", marks) == 0 then
    redis.call("RENAME", queue.stalled, marks)
    redis.call("PEXPIRE", marks, STATE_TTL)
  end
end

local PAIRS_AT_ONCE = 1000 -- Lua unpacks no more than 8,000 values

-- Records the jobs that this call has handled. A long value, which is then overwritten, makes the hash a table
-- at once. Redis keeps short ones as lists, and searches those from end to end for each id.
local function remember_handled(call)
  local done, fields = call.done, {}
  local function write()
    if redis.call("EXISTS", done) == 0 then
      redis.call("HSET", done, fields[1], ("-"):rep(65))
    end
    redis.call("HSET", done, unpack(fields))
    fields = {}
  end
  for id, attempts_started in pairs(call.handled) do
    fields[#fields + 1], fields[#fields + 2] = id, attempts_started
    if #fields == 2 * PAIRS_AT_ONCE then
      write()
    end
  end
  if #fields > 0 then
    write()
  end
  redis.call("PEXPIRE", done, STATE_TTL)
end

-- Ends the sweep, or leaves what its next call is to know. Marks left over at its end name ids that are no
-- longer in `active`.
local function release_marks(call, ended)
  if ended then
    redis.call("UNLINK", call.marks, call.done)
  else
    remember_handled(call)
  end
end

--- includes/stalled/reply.lua
-- The reply of a call, and how a call that is sent twice gets the same one. Takes the `call` of
-- stalled/call. Needs (for STATE_TTL):

local FACTS_AT_ONCE = 2000 -- Lua unpacks no more than 8,000

-- What is told of the jobs recovered beside their ids, as one text: one for each would cost clients far more.
local function facts_of_recovered(call)
  local ids, since, now, facts, parts = call.recovered_ids, call.recovered_since, call.now, {}, {}
  for number = 1, #ids do
    local started_at = since[number]
    facts[2 * number - 1] = #ids[number]
    facts[2 * number] = not started_at and -1 or started_at < now and now - started_at or 0
  end
  for first = 1, #facts, FACTS_AT_ONCE do
    local last = math.min(first + FACTS_AT_ONCE - 1, #facts)
    parts[#parts + 1] = struct.pack(">" .. ("I4i8"):rep((last - first + 1) / 2), unpack(facts, first, last))
  end
  return table.concat(parts)
end

local function reply(call, waits, ended)
  local counts = call.counts
  local next_offset = ended and -1 or call.offset
  local next_anchor = next_offset > 0 and redis.call("LINDEX", call.queue.active, -call.offset) or ""
  return {
    counts.recovered, counts.failed, waits, counts.marked, counts.dropped, table.concat(call.recovered_ids),
    call.failed_jobs, call.oddities, next_offset, next_anchor, call.reports, call.remaining or "",
    facts_of_recovered(call), call.held or {},
  }
end

-- The reply of this very call when it has been made before, or nil.
local function recorded_reply(call)
  local recorded = call.sweep ~= "" and redis.call("GET", call.record)
  local step = call.step .. ":"
  if recorded and recorded:sub(1, #step) == step then
    return cmsgpack.unpack(recorded:sub(#step + 1))
  end
  return nil
end

-- Records a reply and returns it. A call that changed nothing may as well be made again.
local function recorded(call, answer)
  local counts = call.counts
  local has_changed = counts.recovered + counts.failed + counts.marked + counts.dropped > 0 or call.has_rotated
  if call.sweep ~= "" and has_changed then
    redis.call("SET", call.record, call.step .. ":" .. cmsgpack.pack(answer), "PX", STATE_TTL)
  end
  return answer
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

--- includes/stalled/job.lua
-- What is read of a job before it is judged. Takes the `call` of stalled/call. Needs:

local NO_PARENT = {}
local judged = {} -- the job that was read last; in a report, each is a table of its own
local last_policy = {} -- since most jobs have the same opts

-- What the opts of a job say of a stall. `is_fine` is false when they are no JSON object.
local function policy_of(text)
  local opts, is_fine = object(text)
  last_policy = {
    text = text, opts = opts, is_fine = is_fine, allowed_stalls = number(opts.maxStalledCount),
    attempts = number(opts.attempts) or number(opts.at) or 0, lines_kept = lines_kept(opts),
  }
  return last_policy
end

-- Whether a job that has stalled before ran beside others of that kind.
local function ran_beside(key, attempts_started)
  return redis.call("HGET", key, "suspect") == "beside:" .. attempts_started
end

-- The job with an id, or nil without a hash. `odd` says why a job cannot be judged. Ids that
-- `are_plain` (see stalled/lookup) name no other key.
local function read_job(call, id, is_plain)
  local key = call.prefix .. id
  if call.reserved[key] or not is_plain and is_reserved(id) then
    return { odd = "its id is the name of a key of the queue; it stays in active" }
  end
  local fields = redis_pcall("HMGET", key, "opts", "stc", "atm", "ats", "priority", "parent", "actorMaxStalledCount",
    "pb", "processedOn")
  if fields.err then
    return { odd = key .. " is no hash; it stays in active" }
  end
  if not fields[1] and redis.call("EXISTS", key) == 0 then
    return nil
  end
  local policy = fields[1] == last_policy.text and last_policy or policy_of(fields[1])
  local parent, parent_fine = NO_PARENT, true
  if fields[6] then
    parent, parent_fine = object(fields[6])
  end
  if not policy.is_fine then
    note(call, id, "its opts are no JSON object and count as empty")
  end
  if not parent_fine then
    note(call, id, "its parent is no JSON object and counts as empty")
  end
  local stalls, attempts_started, priority, started_at = fields[2], fields[4] or "", fields[5], fields[9]
  stalls = stalls and counter(stalls) or 0
  local job = call.is_report and {} or judged
  job.key, job.policy, job.opts, job.parent, job.stalls = key, policy, policy.opts, parent, stalls
  job.attempts, job.attempts_started = fields[3] and counter(fields[3]) or 0, attempts_started
  job.priority = priority and priority ~= "0" and number(priority) or 0
  job.allowed_stalls = policy.allowed_stalls or fields[7] and number(fields[7]) or call.max_stalled_count
  job.stalled_beside = stalls > 0 and ran_beside(key, attempts_started)
  job.worker, job.started_at = fields[8], started_at and number(started_at)
  return job
end

-- Adds what matters for few jobs only.
local function read_more(job)
  local fields = redis.call("HMGET", job.key, "name", "deid", "parentKey")
  job.name, job.deduplication_id, job.parent_key = fields[1], fields[2], fields[3]
  return job
end

local function has_live_scheduler(call, job)
  local scheduler = redis.call("HGET", job.key, "rjk")
  if not scheduler then
    return false
  end
  return redis.call("EXISTS", call.prefix .. "repeat:" .. scheduler) == 1
    or redis.call("ZSCORE", call.queue["repeat"], scheduler) and true
end

--- includes/stalled/verdict.lua
-- What is to become of the jobs in `active`. Writes nothing. Takes the `call` of stalled/call.
-- Needs:

-- The reasons to fail a stalled job. All start with "job stalled": brokers that are to tell of the
-- failure, and inspectors, know such jobs by it (STALLED in protocol/records.py).
local STALL_LIMIT = "job stalled more than allowable limit"
local NO_ATTEMPTS = "job stalled with no attempts left"
local JUST_A_JOB = {}

-- What becomes of a job that is found stalled a second time, and why. One that ran beside other
-- suspects pays nothing: it runs alone the next time.
local function verdict_when_stalled(call, job)
  if job.stalled_beside then
    return "requeue"
  end
  if job.stalls + 1 > job.allowed_stalls and not has_live_scheduler(call, job) then
    return "fail", STALL_LIMIT
  end
  local attempts = job.policy.attempts
  if attempts >= 1 and job.attempts + 1 >= attempts then
    return "fail", NO_ATTEMPTS
  end
  return "requeue"
end

-- Whether a worker has fetched a job after this sweep handled it. If not, what is left of it
-- in `active` is a copy.
local function was_fetched_since(call, id, attempts_started)
  local now = attempt("HGET", call.prefix .. id, "ats")
  return now and now ~= attempts_started
end

-- Calls `use(place, id, verdict, job, reason)` for the ids at the places without a lock.
local function judge(call, ids, places, use)
  local queue, handled, lockless = call.queue, call.handled, {}
  for at = 1, #places do
    lockless[at] = ids[places[at]]
  end
  local marked = membership("SMISMEMBER", call.marks, lockless)
  local completed = membership("ZMSCORE", queue.completed, lockless)
  local failed = membership("ZMSCORE", queue.failed, lockless)
  local earlier = call.is_report and {} or membership("HMGET", call.done, lockless)
  local new = #marked == 0 and lockless or {}
  for at = 1, #marked do
    if marked[at] ~= 1 or earlier[at] then
      new[#new + 1] = lockless[at]
    end
  end
  local is_plain = are_plain(lockless)
  local all_new_are_jobs = not call.is_report and all_are_jobs(call, new, is_plain)
  for at = 1, #lockless do
    local place, id, handled_with = places[at], lockless[at], earlier[at]
    if handled[id] or handled_with and not was_fetched_since(call, id, handled_with) then
      use(place, id, "copy")
    else
      local is_new = handled_with or marked[at] ~= 1
      local job = is_new and all_new_are_jobs and JUST_A_JOB or read_job(call, id, is_plain)
      if job and job.odd then
        use(place, id, "odd", job)
      elseif not job or completed[at] or failed[at] then
        use(place, id, "drop", job)
      elseif is_new then
        use(place, id, "mark", job)
      else
        local verdict, reason = verdict_when_stalled(call, job)
        use(place, id, verdict, job, reason)
      end
    end
  end
end

--- includes/stalled/history.lua
-- What a stall leaves in the history of its job. Takes the `call` of stalled/call. Needs:

local heads = {} -- how the lines begin, by how many stalls there are and may be: most jobs have the same

local function head_of(call, stalls, allowed)
  local head = heads[stalls] and heads[stalls][allowed]
  if not head then
    head = iso_time(call.now) .. " stall " .. digits(stalls) .. " of at most " .. digits(allowed) .. ": held by "
    heads[stalls] = heads[stalls] or {}
    heads[stalls][allowed] = head
  end
  return head
end

-- Appends what a stall came to, "back to wait" or the like.
local function record_stall(call, job, stalls, outcome)
  local head = head_of(call, stalls, job.allowed_stalls)
  local worker, started_at, line = job.worker or "a worker without a name", job.started_at, nil
  if started_at then
    local second, hundreds, tens, ones = iso_parts(started_at)
    line = head .. worker .. " since " .. second .. "." .. hundreds .. tens .. ones .. "Z, " .. outcome
  else
    line = head .. worker .. ", " .. outcome
  end
  add_line(job.key, job.policy.lines_kept, line)
end

--- includes/stalled/requeue.lua
-- How a stalled job comes back. Takes the `call` of stalled/call. Needs:

-- What the history of a job says that comes back.
local function way_back(call, priority)
  local outcome = "back to " .. place_of_waiting(call.queue, priority)
  if priority == 0 then
    call.way_back = outcome
  end
  return outcome
end

-- Records the stall, unless the job ran beside other suspects. A job without a priority is added to
-- `returning`, since one LPUSH takes them all.
local function requeue_stalled_job(call, id, job, returning)
  local events, key, priority, stalled_beside = call.queue.events, job.key, job.priority, job.stalled_beside
  if stalled_beside then
    redis_call("HSET", key, "suspect", "alone")
  else
    local stalls = job.stalls + 1
    redis_call("HSET", key, "stc", stalls, "atm", job.attempts + 1)
    record_stall(call, job, stalls, priority == 0 and call.way_back or way_back(call, priority))
  end
  if priority > 0 then
    make_available(call.queue, id, priority, "LPUSH")
  else
    returning[#returning + 1] = id
  end
  redis_call("XADD", events, "*", "event", "waiting", "jobId", id, "prev", "active")
  if not stalled_beside then
    redis_call("XADD", events, "*", "event", "stalled", "jobId", id)
  end
  local recovered_ids = call.recovered_ids
  local number = #recovered_ids + 1
  recovered_ids[number], call.recovered_since[number] = id, job.started_at or false
  call.handled[id] = job.attempts_started
end

--- includes/stalled/leave_active.lua
-- How many jobs leave `active` at once: they become tombstones that one LREM takes away, since
-- an LREM for each of them would make the check quadratic. Needs no other include but takes
-- the `call` of stalled/call.

-- A text that is no job's id. A short one takes the place of an id faster.
local function make_tombstone(prefix)
  local tombstone = "\0"
  while redis.call("EXISTS", prefix .. tombstone, prefix .. tombstone .. ":lock") > 0 do
    tombstone = tombstone .. "\0"
  end
  return tombstone
end

-- Removes ids from their places in a chunk of so many ids, and the marks that they may have.
local function take_out_of_active(call, places, ids, size)
  local queue = call.queue
  if call.offset == 0 and #ids == size then
    redis.call("LTRIM", queue.active, 0, -size - 1)
  else
    local tombstone = make_tombstone(call.prefix)
    for at = 1, #places do
      redis.call("LSET", queue.active, -(call.offset + size - places[at] + 1), tombstone)
    end
    redis.call("LREM", queue.active, -#ids, tombstone)
  end
  if redis.call("EXISTS", queue.stalled) == 1 then
    redis.call("SREM", queue.stalled, unpack(ids))
  end
end

--- includes/stalled/apply.lua
-- Does what the verdicts say. Takes the `call` of stalled/call. Needs:

-- Does to each id what its verdict says, and returns how many left `active`.
local function apply_verdicts(call, ids)
  local queue, counts = call.queue, call.counts
  local new_marks, places, leaving, returning, gone = {}, {}, {}, {}, {}
  judge(call, ids, lockless_places(call, ids), function(place, id, verdict, job, reason)
    if verdict == "requeue" then
      requeue_stalled_job(call, id, job, returning)
    elseif verdict == "mark" then
      new_marks[#new_marks + 1] = id
      return
    elseif verdict == "odd" then
      note(call, id, job.odd)
      return
    elseif verdict == "fail" then
      rarely().fail_stalled_job(call, id, job, reason)
    elseif verdict == "drop" then
      counts.dropped = counts.dropped + 1
      gone[#gone + 1] = not job and id or nil
    end
    local number = #leaving + 1
    places[number], leaving[number] = place, id
  end)
  counts.recovered = #call.recovered_ids
  if #returning > 0 then
    redis.call("LPUSH", waiting_list(queue), unpack(returning))
  end
  if #leaving > 0 then
    take_out_of_active(call, places, leaving, #ids)
  end
  if #gone > 0 then
    rarely().follow_gone_jobs(call, gone)
  end
  if #new_marks > 0 then
    counts.marked = counts.marked + redis.call("SADD", queue.stalled, unpack(new_marks))
  end
  return #leaving
end

-- Wakes an idle worker for jobs that came back, and for places that jobs which left `active`
-- have freed in a queue with a global concurrency.
local function wake_for_what_changed(call)
  local queue, counts = call.queue, call.counts
  if counts.recovered > 0 then
    wake(queue)
  elseif queue.concurrency and counts.failed + counts.dropped > 0 then
    rarely().wake_for_waiting(queue)
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

    --- includes/stalled/hold.lua
    -- Protection from mass stalls: a sweep that would recover too many of the active jobs at once
    -- does nothing for one round. It costs little: at most 1,000 ids are looked at. Takes the `call`
    -- of stalled/call. Needs:

    local SAMPLE, PARTS = 1000, 20 -- how many ids are looked at, and in how many parts of a long list

    -- The ids of the active jobs, or of a long list as many as the sample has from all over it.
    local function sample_of(active, length)
      if length <= SAMPLE then
        return { redis.call("LRANGE", active, 0, -1) }, length
      end
      local parts, size = {}, SAMPLE / PARTS
      for part = 0, PARTS - 1 do
        local first = math.floor(part * (length - size) / (PARTS - 1))
        parts[#parts + 1] = redis.call("LRANGE", active, first, first + size - 1)
      end
      return parts, SAMPLE
    end

    -- How many of these ids would be recovered or failed: marked, without a lock, and not finished.
    -- Those that were released since their worker was killed are no riddle, and do not count.
    local function count_stalled(call, ids)
      local lockless, releases = {}, {}
      for at, place in ipairs(lockless_places(call, ids)) do
        lockless[at] = ids[place]
      end
      local marked = membership("SMISMEMBER", call.queue.stalled, lockless)
      local completed = membership("ZMSCORE", call.queue.completed, lockless)
      local failed = membership("ZMSCORE", call.queue.failed, lockless)
      for at, id in ipairs(lockless) do
        if marked[at] == 1 and not completed[at] and not failed[at] then
          releases[#releases + 1] = call.prefix .. id .. ":released"
        end
      end
      return #releases > 0 and #releases - redis.call("EXISTS", unpack(releases)) or 0
    end

    -- More than the share, whatever is lost in the arithmetic.
    local function is_too_many(call, count, active)
      return count > call.max_share * active + 1e-6
    end

    -- How many jobs the check would recover, and of how many: exact up to the size of the sample.
    local function would_recover(call)
      local queue = call.queue
      local active = redis.call("LLEN", queue.active)
      if not is_too_many(call, redis.call("SCARD", queue.stalled), active) then
        return 0, active
      end
      local parts, looked_at = sample_of(queue.active, active)
      local count = 0
      for _, ids in ipairs(parts) do
        count = count + count_stalled(call, ids)
      end
      return math.floor(count * active / looked_at + 0.5), active
    end

    -- Whether the hold that is on record has lasted for a round, and this is a sweep that may end it.
    local function is_over(call, holder, since)
      return call.interval and holder ~= call.sweep and tonumber(call.timestamp) - since >= call.hold_interval / 2
    end

    -- Whether the check is held; then `held` of the call says how many jobs it would have recovered,
    -- how many are active, and 1 when the hold begins with it. All sweepers know of a hold.
    local function is_held(call)
      local count, active = would_recover(call)
      local holder, since = (attempt("GET", call.hold) or ""):match("^(.*)@(%d+)$")
      if not is_too_many(call, count, active) or holder and is_over(call, holder, tonumber(since)) then
        redis.call("DEL", call.hold)
        return false
      end
      if not holder then
        holder = call.sweep
        redis.call("SET", call.hold, holder .. "@" .. call.timestamp, "PX", math.ceil(call.hold_interval * 3))
      end
      call.held = { count, active, holder == call.sweep and 1 or 0 }
      return true
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
        return end_deduplication(queue, deduplication_id, id, timestamp)
      end
      return nil
    end

    -- Takes a job that is gone out of `active`, and adds the one that waits for its end. Returns whether
    -- it was there, and what went wrong, if anything did.
    local function end_gone_job(queue, id, timestamp)
      return drop_from_active(queue, id), follow_gone_job(queue, id, deduplication_ids(queue)[id], timestamp)
    end

    --- includes/stalled/gone.lua
    -- What the check does about jobs whose hashes are gone. Takes the `call` of stalled/call. Needs:

    -- Adds the jobs that wait for the end of others whose hashes are gone. The events are read once a call.
    local function follow_gone_jobs(call, ids)
      call.waited_for = call.waited_for or deduplication_ids(call.queue)
      for _, id in ipairs(ids) do
        local fault = follow_gone_job(call.queue, id, call.waited_for[id], call.timestamp)
        if fault then
          note(call, id, fault)
        end
      end
    end

    --- includes/finish/own_retention.lua
    -- Which finished jobs are kept, and for how long, where a job says it itself. Needs:

    -- How many finished jobs to keep, from removeOnComplete or removeOnFail: a table that may
    -- have `count` and `age` (seconds), or `keep` when neither is said. The job's own `count` or `age` alone leaves no
    -- other bound.
    local function own_retention(value, keep)
      if value == true then
        return { count = 0 }
      end
      local rule = type(value) == "table" and value or { count = value }
      local count, age = number(rule.count), number(rule.age)
      return (count or age) and { count = count and math.floor(count), age = age } or keep
    end

    --- includes/finish/retention.lua
    -- Which finished jobs are kept, and for how long. Needs:

    -- What the opts of a job say about it, under the names that the runtimes write; else what `rules` say of the target,
    -- "completed" or "failed".
    local function retention_of(target, opts, rules)
      local own
      if target == "failed" then
        own = opts.removeOnFail or opts.rof or opts.remove_on_fail
      else
        own = opts.removeOnComplete or opts.roc or opts.remove_on_complete
      end
      return own and own_retention(own, rules[target]) or rules[target]
    end

    --- includes/finish/retain.lua
    -- Whether a job stays among the finished ones. Needs:

    -- Puts a job among the finished ones, or removes it when none are kept.
    local function retain(queue, finished, id, keep, timestamp)
      if keep.count == 0 then
        redis.call("ZREM", finished, id)
        remove_jobs(queue, { id })
      else
        redis.call("ZADD", finished, timestamp, id)
        prune(queue, finished, keep, tonumber(timestamp))
      end
    end

    --- includes/finish/metrics.lua
    -- BullMQ's own count of failed jobs, where workers count. Needs:

    -- Counts a job that no worker has finished, where workers count: the next of them makes the point.
    local function add_to_metrics(queue, target)
      local key = queue.prefix .. "metrics:" .. target
      local count = attempt("HGET", key, "count")
      if count then
        redis.call("HSET", key, "count", digits(counter(count) + 1))
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
      return mistyped(types_of(parent.queue, parent.key, "hash", parent.key .. ":dependencies", "set",
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

    --- includes/parents/release.lua
    -- How a flow parent that has waited for its children becomes available. Needs:

    -- Moves a parent out of the set in which it waits to the front of its queue; a delay of
    -- its own comes first.
    local function release_parent(parent, from, timestamp)
      local queue = parent.queue
      if redis.call("EXISTS", parent.key) == 0 or redis.call("ZREM", from, parent.id) == 0 then
        return
      end
      read_meta(queue)
      local attributes = redis.call("HMGET", parent.key, "priority", "delay")
      local own_delay = number(attributes[2]) or 0
      if own_delay > 0 then
        delay(queue, parent.id, tonumber(timestamp) + own_delay)
      else
        make_available(queue, parent.id, number(attributes[1]) or 0, "RPUSH")
        wake(queue)
        emit(queue, "waiting", parent.id, "prev", "waiting-children")
      end
    end

    --- includes/parents/failure.lua
    -- What a flow parent learns of a child that failed. Needs:

    local function fail_parent(parent, child_key, timestamp)
      local queue = parent.queue
      redis.call("ZADD", parent.key .. ":unsuccessful", timestamp, child_key)
      if redis.call("EXISTS", parent.key) == 0 then
        return
      end
      local from = redis.call("ZSCORE", queue["waiting-children"], parent.id) and queue["waiting-children"]
        or redis.call("ZSCORE", queue.delayed, parent.id) and queue.delayed
      if from then
        redis.call("HSET", parent.key, "defa", "child " .. child_key .. " failed", "delay", 0)
        release_parent(parent, from, timestamp)
      end
    end

    -- Tells the parent of a failed child, as the first of these flags says: fpof fails the
    -- parent, cpof lets it go on at once, idof and rdof no longer wait for the child. Returns
    -- what is wrong with the parent, if anything is.
    local function tell_parent_of_failure(job, child_key, reason, timestamp)
      local parent, fault = parent_to_tell(job)
      if not parent then
        return fault
      end
      local flag
      for _, flags in ipairs({ job.parent, job.opts }) do
        for _, name in ipairs({ "fpof", "cpof", "idof", "rdof" }) do
          flag = flag or (flags[name] and flags[name] ~= cjson.null and name)
        end
      end
      local dependencies = parent.key .. ":dependencies"
      if not flag or redis.call("SREM", dependencies, child_key) == 0 then
        return nil
      end
      if flag == "fpof" then
        fail_parent(parent, child_key, timestamp)
        return nil
      end
      if flag ~= "rdof" then
        redis.call("HSET", parent.key .. ":failed", child_key, reason)
      end
      if flag == "cpof" or redis.call("SCARD", dependencies) == 0 then
        release_parent(parent, parent.queue["waiting-children"], timestamp)
      end
      return nil
    end

    --- includes/stalled/untold.lua
    -- The failures that the middleware of Dramatiq is still to be told of. Whoever made the check
    -- tells it; should that process die before it does, the next one to look at the queue does.
    -- Takes the `call` of stalled/call. Needs:

    local UNTOLD_KEPT = 10000 -- of a queue; the oldest go first
    local UNTOLD_TTL = 604800000 -- ms without a failure after which all go, when nobody tells them: 7 days

    -- Whether data may be a message of Dramatiq's. JSON that names no actor is a job of another
    -- runtime; what is no JSON was made by an encoder of the application.
    local function is_message(data)
      if data:find('^%s*[%[{"%d-]') then
        return data:find('"actor_name"', 1, true) ~= nil
      end
      return data ~= "" and data ~= "true" and data ~= "false" and data ~= "null"
    end

    -- Adds a failed job. Its data goes along when others may remove the job before it is told.
    local function add_untold(call, id, job, reason, stalls, data, may_go)
      local queue = call.queue
      if not data or not is_message(data) or not attempt("ZADD", queue.untold, call.timestamp, id) then
        return
      end
      local failure = { reason, stalls, job.worker or "", job.name or "", may_go and data or "" }
      attempt("HSET", queue["untold-jobs"], id, cmsgpack.pack(failure))
      local excess = redis.call("ZCARD", queue.untold) - UNTOLD_KEPT
      local popped = excess > 0 and redis.call("ZPOPMIN", queue.untold, excess) or {}
      for at = 1, #popped, 2 do
        attempt("HDEL", queue["untold-jobs"], popped[at])
      end
      redis.call("PEXPIRE", queue.untold, UNTOLD_TTL)
      redis.call("PEXPIRE", queue["untold-jobs"], UNTOLD_TTL)
    end

    --- includes/stalled/fail.lua
    -- How a job fails that has stalled too often. Takes the `call` of stalled/call. Needs:

    local function note_all(call, id, ...)
      for at = 1, select("#", ...) do
        local oddity = select(at, ...)
        if oddity then
          note(call, id, oddity)
        end
      end
    end

    local function fail_stalled_job(call, id, job, reason)
      local queue, stalls = call.queue, digits(job.stalls + 1)
      read_more(job)
      redis.call("HSET", job.key, "stc", stalls, "atm", digits(job.attempts + 1), "failedReason", reason,
        "finishedOn", call.timestamp)
      redis.call("HDEL", job.key, "defa", "suspect")
      record_stall(call, job, job.stalls + 1, "failed: " .. reason)
      emit(queue, "stalled", id)
      emit(queue, "failed", id, "prev", "active", "failedReason", reason)
      note_all(call, id, tell_parent_of_failure(job, job.key, reason, call.timestamp),
        end_deduplication(queue, job.deduplication_id, id, call.timestamp))
      -- With the job its data may go at once, and then nobody else could tell whose failure it was.
      local keep = retention_of("failed", job.opts, { failed = call.keep_failed })
      local data = redis.call("HGET", job.key, "data")
      retain(queue, queue.failed, id, keep, call.timestamp)
      local is_gone = redis.call("EXISTS", job.key) == 0
      add_untold(call, id, job, reason, stalls, data, is_gone or keep.count)
      data = is_gone and data or ""
      add_to_metrics(queue, "failed")
      call.counts.failed = call.counts.failed + 1
      call.handled[id] = job.attempts_started
      call.failed_jobs[#call.failed_jobs + 1] = { id, reason, stalls, job.worker or "", job.name or "", data }
    end

    --- includes/stalled/report.lua
    -- Says what a check would do, and writes nothing. Takes the `call` of stalled/call. Needs:

    local MOST_DATA = 65536 -- bytes of the data of a job that a report returns
    local NOT_KNOWN = -1

    -- In the order of VERDICTS in protocol/active_jobs.py.
    local CODES = { healthy = 0, mark = 1, requeue = 2, fail = 3, drop = 4, copy = 5, odd = 6 }

    -- Calls `use(place, verdict, later, job)` for the ids at the places without a lock: `later` is the
    -- verdict once a check has marked the job.
    local function foresee(call, ids, places, use)
      judge(call, ids, places, function(place, id, verdict, job)
        if verdict == "requeue" or verdict == "fail" then
          call.handled[id] = job.attempts_started
        end
        use(place, CODES[verdict], verdict == "mark" and CODES[verdict_when_stalled(call, job)] or CODES[verdict], job)
      end)
    end

    -- Adds a text about those of these ids that have no lock.
    local function report_verdicts(call, ids)
      local parts = {}
      foresee(call, ids, lockless_places(call, ids), function(place, verdict, later)
        local at = #parts
        parts[at + 1], parts[at + 2] = struct.pack(">I4BB", #ids[place], verdict, later), ids[place]
      end)
      call.reports[#call.reports + 1] = table.concat(parts)
      return 0
    end

    -- The places of the ids without a lock, oldest first, and for all the TTL of their locks.
    local function lockless_places_and_ttls(call, ids)
      local places, ttls = {}, {}
      for place = #ids, 1, -1 do
        ttls[place] = redis.call("PTTL", call.prefix .. ids[place] .. ":lock")
        if ttls[place] == -2 then
          places[#places + 1] = place
        end
      end
      return places, ttls
    end

    -- The same fields of a job that was read before it was judged, and of one that was not.
    local function fields_of(call, id, job)
      if job and job.key then
        local fields = redis.call("HMGET", job.key, "name", "data")
        return fields[1], fields[2], job.worker, job.stalls, job.attempts, job.started_at
      end
      local fields = attempt("HMGET", call.prefix .. id, "name", "data", "pb", "stc", "atm", "processedOn") or {}
      return fields[1], fields[2], fields[3], counter(fields[4]), counter(fields[5]), fields[6]
    end

    -- Adds a text about all these ids, since one for each would cost clients far more. The order is
    -- that of JOB in protocol/active_jobs.py.
    local function report_jobs(call, ids)
      local timestamp, parts, verdicts, laters, jobs = tonumber(call.timestamp), {}, {}, {}, {}
      local places, ttls = lockless_places_and_ttls(call, ids)
      foresee(call, ids, places, function(place, verdict, later, job)
        verdicts[place], laters[place], jobs[place] = verdict, later, job
      end)
      local marked = membership("SMISMEMBER", call.marks, ids)
      for place = #ids, 1, -1 do
        local id = ids[place]
        local name, data, worker, stalls, attempts, started_at = fields_of(call, id, jobs[place])
        name, data, worker, started_at = name or "", data or "", worker or "", number(started_at)
        local is_large = #data > MOST_DATA
        data = is_large and "" or data
        local at = #parts
        parts[at + 1] = struct.pack(">I4I4I4I4i8i8i8i8i8BBBB", #id, #name, #worker, #data, math.min(ttls[place], 2 ^ 53),
          stalls, attempts, started_at and math.max(started_at, NOT_KNOWN) or NOT_KNOWN,
          started_at and math.max(timestamp - started_at, 0) or NOT_KNOWN, marked[place] or 0,
          verdicts[place] or CODES.healthy, laters[place] or CODES.healthy, is_large and 1 or 0)
        parts[at + 2], parts[at + 3], parts[at + 4], parts[at + 5] = id, name, worker, data
      end
      call.reports[#call.reports + 1] = table.concat(parts)
      return 0
    end

    -- Makes the report that the call asks for. Returns true when there are no ids beyond it.
    local function report(call)
      if call.only_id ~= "" then
        report_jobs(call, redis.call("LPOS", call.queue.active, call.only_id) and { call.only_id } or {})
        return true
      end
      resume(call)
      return walk(call, call.mode == "report" and report_jobs or report_verdicts)
    end

    rare = {
      add_to_queue = add_to_queue,
      delay = delay,
      end_deduplication = end_deduplication,
      fail_stalled_job = fail_stalled_job,
      follow_gone_jobs = follow_gone_jobs,
      is_held = is_held,
      is_name_of_key = is_name_of_key,
      join_lists = join_lists,
      mistyped = mistyped,
      own_retention = own_retention,
      release_parent = release_parent,
      report = report,
      wake_for_waiting = wake_for_waiting,
    }
  end
  return rare
end

--- commands/moveStalledJobsToWait-8.lua

local call = read_call()
local queue = call.queue

local function check()
  trim_events(queue)
  set_marks_aside(call)
  resume(call)
  local left_in_paused = not queue.is_paused and redis.call("EXISTS", queue.paused) == 1
  waiting_list(queue) -- which brings back what another runtime's resume has left in `paused`
  local ended = walk(call, apply_verdicts)
  if left_in_paused then
    wake(queue)
  end
  wake_for_what_changed(call)
  release_marks(call, ended)
  if ended then
    prune(queue, queue.failed, call.keep_failed, call.timestamp)
    note_unthrottled(call)
  end
  return recorded(call, reply(call, -1, ended))
end

if not call.max_stalled_count or not number(call.timestamp) then
  return redis.error_reply("ECHOMQ refuses the call: max_stalled_count (ARGV 2) and timestamp (ARGV 3) must be numbers")
end
local refused = refusal(queue, types_of(queue, call.throttle, "string"))
if refused then
  return refused
end
if call.is_report then
  return reply(call, -1, rarely().report(call))
end
local answer = recorded_reply(call)
if answer then
  return answer
end
write_although_full(queue)
local waits = call.interval and call.step == 0 and throttled(call)
if waits then
  return reply(call, waits, true)
end
if call.max_share and call.step == 0 and rarely().is_held(call) then
  return reply(call, -1, true)
end
return check()
