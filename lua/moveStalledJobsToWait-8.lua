-- Built by tools/build-lua from lua/src/commands/moveStalledJobsToWait-8.lua: edit that file, not this one.
--[[
Finds the jobs of dead workers in a queue: marks them, and brings back or fails those that
an earlier check has marked. See "Stalled recovery" in the EchoMQ protocol.

KEYS  1 stalled  2 wait  3 active  4 failed  5 stalled-check  6 meta  7 paused  8 marker
ARGV  1 key prefix of the queue, with or without its last colon
      2 max_stalled_count: how many stalls a job survives; `maxStalledCount` of its opts goes first
      3 timestamp in ms

With these three it does one whole check, at once and unthrottled. The rest is optional:

      4 interval in ms: skip the check when another sweeper made one less than that ago
      5 id of the sweep, "<sweeper>/<number>": makes a call that is sent twice count once,
        and ties the calls of a sweep together
      6 how many ids to look at in this call; the reply says where the next one goes on
      7 number of this call in its sweep, from 0
      8 and 9 where the last call stopped: its offset and its anchor
      10 "report": write nothing and say what a check would do

Returns a list:
      1 recovered  2 failed  3 ms until the throttle ends, or -1 when the check was made
      4 marked  5 dropped  6 ids recovered
      7 jobs failed: id, reason, stalls, worker, name and data each; the data only of a job that was removed
      8 oddities: id and what is odd about it
      9 offset of the next call, or -1 after the last one  10 anchor of the next call
      11 in a report, for each id: id, name, worker, TTL of the lock in ms (-2 without), marked,
         stalls, attempts, verdict, and the verdict once it is marked

Cost: O(1) for each id in `active`, and O(log N) in the jobs finished or prioritized for each
that is stalled. A call of a command costs more than what it does, so most are made once for
many ids. Stalled ids become tombstones that one LREM takes away, since an LREM for each of
them would make the check quadratic.

The marks of earlier checks are set aside while a sweep runs: that tells them from its own
marks, and those left over at the end name ids that are no longer in `active`.
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
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    ["waiting-children"] = prefix .. "waiting-children", ["repeat"] = prefix .. "repeat",
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
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version") or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = number(meta[2])
  local max_events = number(meta[3])
  queue.max_events = max_events and max_events >= 0 and digits(math.floor(max_events)) or "10000"
  queue.version = meta[4] or ""
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

--- includes/queue/events.lua
-- The stream of events, which is kept near its greatest length. A script that emits many
-- events trims it once, before them. Needs no other include; the queue's meta must have been read.

local function trim_events(queue)
  redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
end

local function emit(queue, event, id, ...)
  redis.call("XADD", queue.events, "*", "event", event, "jobId", id, ...)
end

-- Emits the last event of a script that emits few, and trims the stream with it.
local function emit_last(queue, event, id, ...)
  redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", event, "jobId", id, ...)
end

--- includes/queue/wake.lua
-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs:

-- Whether as many jobs are active as the queue's global concurrency allows.
local function is_maxed(queue)
  return queue.concurrency ~= nil and redis.call("LLEN", queue.active) >= queue.concurrency
end

-- Wakes an idle worker, unless none may fetch a job now.
local function wake(queue)
  if not queue.is_paused and not is_maxed(queue) then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

-- When the next delayed job is due in ms, or nil.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.floor(tonumber(score) / 4096)
end

-- Tells idle workers when the next delayed job is due.
local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end

--- includes/queue/line.lua
-- How a job comes to wait for a worker: in `wait`, in `paused`, or in `prioritized`. The
-- queue's meta must have been read. Needs:

-- Jobs of one priority are fetched in the order in which they came.
local function priority_score(queue, priority)
  local count = counter(redis.call("GET", queue.pc)) + 1
  redis.call("SET", queue.pc, digits(count))
  return digits(priority * 2 ^ 32 + count % 2 ^ 32)
end

-- The list whose jobs wait without a priority.
local function waiting_list(queue)
  return queue.is_paused and queue.paused or queue.wait
end

-- Makes a job available. With LPUSH it is fetched after those in the list, with RPUSH before them.
local function make_available(queue, id, priority, push)
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, priority_score(queue, priority), id)
  else
    redis.call(push, waiting_list(queue), id)
  end
end

--- includes/queue/remove.lua
-- How a job is removed. Needs no other include.

-- Removes the hash of a job and what stands beside it. The lock is not among that: a job that
-- is removed when it finishes has none.
local function remove_job(queue, id)
  local key = queue.prefix .. id
  redis.call("DEL", key, key .. ":logs", key .. ":dependencies", key .. ":processed", key .. ":failed",
    key .. ":unsuccessful")
end

--- includes/finish/retention.lua
-- Which finished jobs are kept, and for how long. Needs:

-- The most finished jobs that one more finished job removes.
local PRUNED_AT_ONCE = 1000

-- How many finished jobs to keep, from removeOnComplete or removeOnFail: a table that may
-- have `count` and `age` (seconds), empty for all.
local function retention(value)
  if value == true then
    return { count = 0 }
  elseif type(value) == "table" then
    return { count = number(value.count), age = number(value.age) }
  end
  return { count = number(value) }
end

-- What the opts of a job say about it, under the names that the runtimes write.
local function retention_of_completed(opts)
  return retention(opts.removeOnComplete or opts.roc or opts.remove_on_complete)
end

local function retention_of_failed(opts)
  return retention(opts.removeOnFail or opts.rof or opts.remove_on_fail)
end

-- Removes what a finished set holds beyond `keep`.
local function prune(queue, finished, keep, timestamp)
  local surplus = {}
  if keep.age then
    surplus = redis.call("ZRANGEBYSCORE", finished, "-inf", digits(timestamp - keep.age * 1000),
      "LIMIT", 0, PRUNED_AT_ONCE)
  end
  for _, id in ipairs(surplus) do
    remove_job(queue, id)
    redis.call("ZREM", finished, id)
  end
  if keep.count and keep.count >= 0 then
    local excess = math.min(redis.call("ZCARD", finished) - math.floor(keep.count), PRUNED_AT_ONCE)
    local popped = excess > 0 and redis.call("ZPOPMIN", finished, excess) or {}
    for at = 1, #popped, 2 do
      remove_job(queue, popped[at])
    end
  end
end

-- Puts a job among the finished ones, or removes it when none are kept.
local function retain(queue, finished, id, keep, timestamp)
  if keep.count == 0 then
    redis.call("ZREM", finished, id)
    remove_job(queue, id)
  else
    redis.call("ZADD", finished, timestamp, id)
    prune(queue, finished, keep, tonumber(timestamp))
  end
end

--- includes/finish/deduplication.lua
-- The key that keeps a second job of a deduplication id away until the first has ended. Needs:

-- A deduplication key with a TTL ends by itself; one that names another job is that job's.
local function release_deduplication(queue, deduplication_id, id)
  if not deduplication_id then
    return
  end
  local key = queue.prefix .. "de:" .. deduplication_id
  if attempt("GET", key) == id and redis.call("PTTL", key) == -1 then
    redis.call("DEL", key)
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

--- includes/queue/delay.lua
-- How a job comes to wait for a time. Needs:

-- Delays a job. Jobs that are due in the same ms keep their order, up to 4,096 of them.
local function delay(queue, id, due)
  local lowest, highest = due * 4096, due * 4096 + 4095
  local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  local score = last and math.min(tonumber(last) + 1, highest) or lowest
  redis.call("ZADD", queue.delayed, digits(score), id)
  emit(queue, "delayed", id, "delay", digits(due))
  mark_next_due(queue)
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
  local parent = parent_of(job)
  if not parent then
    return nil
  end
  local fault = unfit_parent(parent)
  if fault then
    return "its parent was not told: " .. fault
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

--- commands/moveStalledJobsToWait-8.lua

local CHUNK = 1000 -- ids looked at together; Lua unpacks no more than 8,000
local KEPT_FOR = 600000 -- ms that the state of a sweep outlives a dead sweeper
local RETAKE_EARLY = 1000 -- most ms by which a sweeper may come early to its own throttle
local STALL_LIMIT = "job stalled more than allowable limit"
local NO_ATTEMPTS = "job stalled with no attempts left"
local JUST_A_JOB, NO_PARENT = {}, {}
local last_opts = {} -- decoded, since most jobs have the same

local prefix = ARGV[1]:sub(-1) == ":" and ARGV[1] or ARGV[1] .. ":"
local max_stalled_count = number(ARGV[2])
local timestamp = ARGV[3]
local interval = number(ARGV[4])
local sweep = ARGV[5] or ""
local limit = number(ARGV[6]) or math.huge
local step = number(ARGV[7]) or 0
local offset = number(ARGV[8]) or 0
local anchor = ARGV[9] or ""
local report = ARGV[10] == "report"

local queue = queue_at(prefix)
queue.stalled, queue.wait, queue.active, queue.failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
queue.meta, queue.paused, queue.marker = KEYS[6], KEYS[7], KEYS[8]
local throttle = KEYS[5]
local record = throttle .. ":" .. sweep
local marks = report and queue.stalled or record .. ":marks"
local done = record .. ":done"

local reserved = {} -- keys of the queue that an odd id could name
for _, key in pairs(queue) do
  reserved[key] = true
end

local counts = { recovered = 0, failed = 0, marked = 0, dropped = 0 }
local recovered_ids, failed_jobs, oddities, verdicts = {}, {}, {}, {}
local handled = {} -- by id, how often a job recovered or failed in this call had been picked up

local function note(id, oddity)
  oddities[#oddities + 1] = id
  oddities[#oddities + 1] = oddity
end

-- How long the check has to wait for another sweeper's, in ms, or nil when it may begin.
local function throttled()
  local holder = redis.call("GET", throttle)
  if not holder then
    redis.call("SET", throttle, sweep, "PX", interval)
    return nil
  end
  local left = redis.call("PTTL", throttle)
  if left == -1 then
    redis.call("PEXPIRE", throttle, interval)
    left = interval
  end
  if holder == sweep and sweep ~= "" then
    return nil
  end
  local sweeper = sweep:match("^(.*)/")
  if sweeper and holder:match("^(.*)/") == sweeper and left <= math.min(RETAKE_EARLY, interval / 10) then
    redis.call("SET", throttle, sweep, "PX", interval)
    return nil
  end
  return math.max(left, 1)
end

-- Where the last call stopped, although jobs that it looked at may have gone since.
local function resume()
  if offset > 0 and redis.call("LINDEX", queue.active, -offset) ~= anchor then
    local position = redis.call("LPOS", queue.active, anchor, "RANK", -1, "MAXLEN", offset)
    offset = position and redis.call("LLEN", queue.active) - position or math.max(offset - CHUNK, 0)
  end
end

local function set_marks_aside()
  if step == 0 and redis.call("EXISTS", queue.stalled) == 1 and redis.call("EXISTS", marks) == 0 then
    redis.call("RENAME", queue.stalled, marks)
    redis.call("PEXPIRE", marks, KEPT_FOR)
  end
end

-- The job with an id, or nil without a hash. `odd` says why a job cannot be judged.
local function read_job(id)
  local key = prefix .. id
  if reserved[key] then
    return { odd = "its id is the name of a key of the queue; it stays in active" }
  end
  local fields = redis.pcall("HMGET", key, "opts", "stc", "atm", "ats", "priority", "parent", "unbegun",
    "actorMaxStalledCount")
  if fields.err then
    return { odd = key .. " is no hash; it stays in active" }
  end
  if not fields[1] and redis.call("EXISTS", key) == 0 then
    return nil
  end
  if fields[1] ~= last_opts.text then
    last_opts.text, last_opts.value, last_opts.fine = fields[1], object(fields[1])
  end
  local opts, opts_fine = last_opts.value, last_opts.fine
  local parent, parent_fine = NO_PARENT, true
  if fields[6] then
    parent, parent_fine = object(fields[6])
  end
  if not opts_fine then
    note(id, "its opts are no JSON object and count as empty")
  end
  if not parent_fine then
    note(id, "its parent is no JSON object and counts as empty")
  end
  return {
    key = key, opts = opts, parent = parent, stalls = counter(fields[2]), attempts = counter(fields[3]),
    pickups = fields[4] or "", priority = number(fields[5]) or 0, unbegun = fields[7] and fields[7] == fields[4],
    allowed = fields[8] and number(fields[8]),
  }
end

-- Adds what matters for few jobs only.
local function read_more(job)
  local fields = redis.call("HMGET", job.key, "name", "pb", "deid", "parentKey")
  job.name, job.worker, job.deduplication_id, job.parent_key = fields[1], fields[2], fields[3], fields[4]
  return job
end

local function has_live_scheduler(job)
  local scheduler = redis.call("HGET", job.key, "rjk")
  if not scheduler then
    return false
  end
  return redis.call("EXISTS", prefix .. "repeat:" .. scheduler) == 1
    or redis.call("ZSCORE", queue["repeat"], scheduler) and true
end

-- What becomes of a job that is found stalled a second time. A job that its worker had
-- fetched and not begun did not kill it, and pays nothing.
local function outcome(job)
  if job.unbegun then
    return "requeue"
  end
  local allowed = number(job.opts.maxStalledCount) or job.allowed or max_stalled_count
  if job.stalls + 1 > allowed and not has_live_scheduler(job) then
    return "fail", STALL_LIMIT
  end
  local attempts = number(job.opts.attempts) or number(job.opts.at) or 0
  if attempts >= 1 and job.attempts + 1 >= attempts then
    return "fail", NO_ATTEMPTS
  end
  return "requeue"
end

local function requeue(id, job, returning)
  if job.unbegun then
    redis.call("HDEL", job.key, "unbegun")
  else
    redis.call("HSET", job.key, "stc", job.stalls + 1, "atm", job.attempts + 1)
  end
  if job.priority > 0 then
    make_available(queue, id, job.priority, "LPUSH")
  else
    returning[#returning + 1] = id
  end
  redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id, "prev", "active")
  if not job.unbegun then
    redis.call("XADD", queue.events, "*", "event", "stalled", "jobId", id)
  end
  counts.recovered = counts.recovered + 1
  recovered_ids[#recovered_ids + 1] = id
  handled[id] = job.pickups
end

local function fail(id, job, reason)
  read_more(job)
  redis.call("HSET", job.key, "stc", digits(job.stalls + 1), "atm", digits(job.attempts + 1),
    "failedReason", reason, "finishedOn", timestamp)
  redis.call("HDEL", job.key, "defa", "unbegun")
  emit(queue, "stalled", id)
  emit(queue, "failed", id, "prev", "active", "failedReason", reason)
  release_deduplication(queue, job.deduplication_id, id)
  local fault = tell_parent_of_failure(job, job.key, reason, timestamp)
  if fault then
    note(id, fault)
  end
  local keep = retention_of_failed(job.opts)
  local data = keep.count == 0 and redis.call("HGET", job.key, "data") or ""
  retain(queue, queue.failed, id, keep, timestamp)
  counts.failed = counts.failed + 1
  handled[id] = job.pickups
  failed_jobs[#failed_jobs + 1] = { id, reason, digits(job.stalls + 1), job.worker or "", job.name or "", data }
end

local function membership(command, key, ids)
  if #ids == 0 or redis.call("EXISTS", key) == 0 then
    return {}
  end
  return redis.call(command, key, unpack(ids))
end

-- The places of the ids without a lock, oldest first.
local function lockless_places(ids)
  local keys, places = {}, {}
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

-- Whether a worker has taken a job after this sweep handled it. If not, what is left of it
-- in `active` is a copy.
local function picked_up_since(id, pickups)
  local now = attempt("HGET", prefix .. id, "ats")
  return now and now ~= pickups
end

-- Whether there is something under the key of every job, which is enough to mark them all.
local function all_exist(ids)
  local keys = {}
  for at, id in ipairs(ids) do
    keys[at] = prefix .. id
    if reserved[keys[at]] then
      return false
    end
  end
  return #keys > 0 and redis.call("EXISTS", unpack(keys)) == #keys
end

-- Calls `use(place, id, verdict, job, marked, reason)` for each id without a lock.
local function judge(ids, use)
  local places, lockless = lockless_places(ids), {}
  for at, place in ipairs(places) do
    lockless[at] = ids[place]
  end
  local marked = membership("SMISMEMBER", marks, lockless)
  local completed = membership("ZMSCORE", queue.completed, lockless)
  local failed = membership("ZMSCORE", queue.failed, lockless)
  local earlier = report and {} or membership("HMGET", done, lockless)
  local new = {}
  for at, id in ipairs(lockless) do
    if marked[at] ~= 1 or earlier[at] then
      new[#new + 1] = id
    end
  end
  local none_is_odd = not report and all_exist(new)
  for at, place in ipairs(places) do
    local id = lockless[at]
    if handled[id] or earlier[at] and not picked_up_since(id, earlier[at]) then
      use(place, id, "copy")
    else
      local to_be_marked = marked[at] ~= 1 or earlier[at]
      local job = to_be_marked and none_is_odd and JUST_A_JOB or read_job(id)
      local verdict, reason
      if job and job.odd then
        verdict = "odd"
      elseif not job or completed[at] or failed[at] then
        verdict = "drop"
      elseif to_be_marked then
        verdict = "mark"
      else
        verdict, reason = outcome(job)
      end
      use(place, id, verdict, job, marked[at] == 1, reason)
    end
  end
end

-- A text that is no job's id. A short one takes the place of an id faster.
local function make_tombstone()
  local tombstone = "\0"
  while redis.call("EXISTS", prefix .. tombstone, prefix .. tombstone .. ":lock") > 0 do
    tombstone = tombstone .. "\0"
  end
  return tombstone
end

local function take_out_of_active(places, ids)
  local gone = {}
  for at, place in ipairs(places) do
    gone[at] = ids[place]
  end
  if offset == 0 and #places == #ids then
    redis.call("LTRIM", queue.active, 0, -#ids - 1)
  else
    local tombstone = make_tombstone()
    for _, place in ipairs(places) do
      redis.call("LSET", queue.active, -(offset + #ids - place + 1), tombstone)
    end
    redis.call("LREM", queue.active, -#places, tombstone)
  end
  if redis.call("EXISTS", queue.stalled) == 1 then
    redis.call("SREM", queue.stalled, unpack(gone))
  end
end

-- Does to each id what its verdict says, and returns how many left `active`.
local function act_on(ids)
  local new_marks, leaving, returning, moved = {}, {}, {}, {}
  judge(ids, function(place, id, verdict, job, _, reason)
    if verdict == "odd" then
      note(id, job.odd)
      return
    elseif verdict == "mark" then
      new_marks[#new_marks + 1] = id
      return
    elseif verdict == "drop" then
      counts.dropped = counts.dropped + 1
    elseif verdict == "fail" then
      fail(id, job, reason)
    elseif verdict == "requeue" then
      requeue(id, job, returning)
    end
    if handled[id] then
      moved[#moved + 1] = id
      moved[#moved + 1] = handled[id]
    end
    leaving[#leaving + 1] = place
  end)
  if #returning > 0 then
    redis.call("LPUSH", waiting_list(queue), unpack(returning))
  end
  if #leaving > 0 then
    take_out_of_active(leaving, ids)
  end
  if #moved > 0 and limit < math.huge then
    redis.call("HSET", done, unpack(moved))
  end
  if #new_marks > 0 then
    counts.marked = counts.marked + redis.call("SADD", queue.stalled, unpack(new_marks))
  end
  return #leaving
end

local function report_on(ids)
  local found = {}
  judge(ids, function(place, id, verdict, job, marked)
    if verdict == "requeue" or verdict == "fail" then
      handled[id] = job.pickups
    end
    found[place] = { verdict = verdict, job = job, marked = marked }
  end)
  for place = #ids, 1, -1 do
    local id = ids[place]
    local this = found[place] or { verdict = "healthy", job = read_job(id) }
    local job = this.job and this.job.key and read_more(this.job) or {}
    verdicts[#verdicts + 1] = {
      id, job.name or "", job.worker or "", redis.call("PTTL", prefix .. id .. ":lock"),
      (this.marked or redis.call("SISMEMBER", marks, id) == 1) and 1 or 0, digits(job.stalls or 0),
      digits(job.attempts or 0), this.verdict, this.verdict == "mark" and outcome(job) or this.verdict,
    }
  end
  return 0
end

-- Looks at the ids of this call; true when there are none beyond them.
local function walk(look_at)
  local left = limit
  while left > 0 do
    local size = math.min(left, CHUNK)
    local ids = redis.call("LRANGE", queue.active, -(offset + size), -(offset + 1))
    if #ids > 0 then
      offset = offset + #ids - look_at(ids)
    end
    if #ids < size then
      return true
    end
    left = left - size
  end
  return false
end

local function reply(waits, ended)
  local next_offset = ended and -1 or offset
  local next_anchor = next_offset > 0 and redis.call("LINDEX", queue.active, -offset) or ""
  return {
    counts.recovered, counts.failed, waits, counts.marked, counts.dropped, recovered_ids, failed_jobs, oddities,
    next_offset, next_anchor, verdicts,
  }
end

local function check()
  set_marks_aside()
  trim_events(queue)
  resume()
  local ended = walk(act_on)
  if counts.recovered > 0 then
    wake(queue)
  end
  if ended then
    redis.call("UNLINK", marks, done)
  else
    redis.call("PEXPIRE", done, KEPT_FOR)
  end
  local answer = reply(-1, ended)
  if sweep ~= "" and counts.recovered + counts.failed + counts.marked + counts.dropped > 0 then
    redis.call("SET", record, cmsgpack.pack({ step, answer }), "PX", KEPT_FOR)
  end
  return answer
end

if not max_stalled_count or not number(timestamp) then
  return redis.error_reply("ECHOMQ refuses the call: max_stalled_count (ARGV 2) and timestamp (ARGV 3) must be numbers")
end
local fault = refusal(queue, types_of(queue, throttle, "string"))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if report then
  resume()
  return reply(-1, walk(report_on))
end
local recorded = sweep ~= "" and redis.call("GET", record)
if recorded then
  local made = cmsgpack.unpack(recorded)
  if made[1] == step then
    return made[2]
  end
end
local waits = interval and step == 0 and throttled()
if waits then
  return reply(waits, true)
end
return check()
