-- Built by tools/build-lua from lua/src/commands/takeJobs-1.lua: edit that file, not this one.
--[[
Fetches the jobs that a worker is to run next, each with a lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 how many jobs to fetch  4 name of the worker  5 lock duration in ms
      6 id of this call; the token of a lock is this, a colon and a number
      7 how many suspects to fetch: jobs that have stalled before
      8 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      9 id of an earlier call whose reply was lost, or empty: its jobs are returned again
      10 how many of the jobs start at once, since a thread is idle for each

Delayed jobs that are due become available first, at most 1,000 of them. Jobs are fetched from
the tail of `wait`, then from `prioritized`. Those that do not start at once carry the field
`unbegun` until their worker starts them. Suspects that are not fetched stay where they were.

Returns the jobs, in how many ms the next delayed job is due (-1 without one), how many suspects
were left, and for how many ms a rate limit keeps all jobs from being fetched (0 without one).
A job is: id, data, and a line of its token, attempts started, stalls, lock duration,
timestamp, whether it has started, and name, which costs clients less than seven values do; and only
if it is to be failed or belongs to a scheduler: the reason, the worker that had it before, and
the scheduler's id.

Cost: O(log N) for each job promoted or fetched.
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

local LONGEST_WAIT = 2 ^ 31 -- ms; jobs may be due at a time that no integer holds

-- When the next delayed job is due in ms, or nil.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.floor(tonumber(score) / 4096)
end

-- In how many ms the next delayed job is due, or -1 without one.
local function due_in(queue, timestamp)
  local due = next_due(queue)
  return due and math.max(math.min(due - timestamp, LONGEST_WAIT), 0) or -1
end

-- Tells idle workers when the next delayed job is due.
local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end

--- includes/queue/time.lua
-- The time that a script goes by. Needs:

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return digits(tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
end

--- includes/queue/lists.lua
-- The lists `wait` and `paused`. BullMQ up to 5 keeps the jobs of a paused queue in `paused`,
-- BullMQ 6 in `wait`, and some runtimes resume a queue without moving any: so each may hold
-- jobs at any time. The queue's meta must have been read. Needs:

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

-- The list in which jobs without a priority wait, with all of them in it.
local function waiting_list(queue)
  if not queue.waiting_list then
    if not queue.is_paused then
      queue.waiting_list = redis.call("EXISTS", queue.paused) == 1 and join_lists(queue, queue.wait) or queue.wait
    elseif redis.call("EXISTS", queue.wait) == 1 then
      queue.waiting_list = join_lists(queue)
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
  local count = counter(redis.call("GET", queue.pc)) + 1
  redis.call("SET", queue.pc, digits(count))
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

--- includes/fetch/promote.lua
-- How delayed jobs that are due become available. The queue's meta must have been read. Needs:

local PROMOTED_AT_ONCE = 1000

local function promote_due_jobs(queue, timestamp)
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", digits((timestamp + 1) * 4096 - 1),
    "LIMIT", 0, PROMOTED_AT_ONCE)
  for _, id in ipairs(due) do
    local key = queue.prefix .. id
    local priority = number(attempt("HGET", key, "priority")) or 0
    redis.call("ZREM", queue.delayed, id)
    make_available(queue, id, priority, "LPUSH")
    if redis.call("EXISTS", key) == 1 then
      attempt("HSET", key, "delay", 0)
    end
    emit(queue, "waiting", id, "prev", "delayed")
  end
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

--- includes/fetch/limit.lua
-- The rate limit of a queue, as BullMQ keeps it: `limiter` counts the jobs that were fetched in
-- a window of `duration` ms, and at `max` of them none is fetched until its TTL ends. The
-- queue's meta must have been read. Needs:

local SET_BY_HAND = 2 ^ 53 - 1 -- what `queue.rateLimit(ms)` of BullMQ writes, whether there is a `max` or not

-- How many jobs may be fetched now, and for how many ms none may if that is 0.
local function room_under_limit(queue)
  local max = queue.rate_limit.duration and queue.rate_limit.max
  local fetched = redis.call("GET", queue.limiter)
  if fetched and not fetched:match("^%d+$") then
    redis.call("DEL", queue.limiter)
    fetched = false
  end
  fetched = tonumber(fetched or 0)
  if fetched >= (max or SET_BY_HAND) then
    local ttl = redis.call("PTTL", queue.limiter)
    if ttl > 0 then
      return 0, ttl
    end
    redis.call("DEL", queue.limiter) -- its window has ended, or it would never end
    fetched = 0
  end
  return max and math.max(max - fetched, 1) or math.huge, 0
end

-- Counts jobs that were fetched. The first ones begin the window.
local function count_under_limit(queue, count)
  if queue.rate_limit.duration and queue.rate_limit.max and count > 0
    and redis.call("INCRBY", queue.limiter, count) == count then
    redis.call("PEXPIRE", queue.limiter, digits(math.max(math.floor(math.abs(queue.rate_limit.duration)), 1)))
  end
end

--- includes/fetch/pop.lua
-- How ids leave the front of a queue, and how those that were skipped go back to their places.
-- Needs no other include.

-- The next id, with its score when it has a priority, or nil. `skipped` are the jobs popped
-- and not fetched: an id, and its score or nil, each.
local function pop(queue, skipped)
  local id = redis.call("RPOP", queue.wait)
  if id then
    return id
  end
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if not first[1] and #skipped == 0 then
    redis.call("DEL", queue.pc)
  end
  return first[1], first[2]
end

local function put_back(queue, skipped)
  for at = #skipped, 1, -1 do
    local id, score = unpack(skipped[at])
    if score then
      redis.call("ZADD", queue.prioritized, score, id)
    else
      redis.call("RPUSH", queue.wait, id)
    end
  end
end

--- includes/fetch/describe.lua
-- What a worker is told of a job that it gets. Takes the `fetch` of fetch/jobs. Needs:

local SHORTEST_LOCK = 250 -- ms; less would keep its worker busy with renewing it

-- The fields of a job, in the order in which the others count on them, or nil for no hash.
local function read_fields(queue, id)
  return attempt("HMGET", queue.prefix .. id, "name", "data", "ats", "stc", "defa", "opts", "pb", "timestamp",
    "unbegun", "rjk")
end

-- A line costs clients less than seven values do.
local function describe(id, token, fields, started, duration)
  local line = table.concat({ token, digits(started), digits(counter(fields[4])), digits(duration),
    digits(counter(fields[8])), fields[9] and 0 or 1, fields[1] or "" }, " ")
  if fields[5] or fields[10] then
    return { id, fields[2] or "", line, fields[5] or "", fields[7] or "", fields[10] or "" }
  end
  return { id, fields[2] or "", line }
end

-- How long the lock of a job lasts in ms, and the policy for jobs of its name.
local function lock_duration_of(fetch, fields)
  local opts, policy = object(fields[6]), fetch.policies[fields[1] or ""] or {}
  local own = number(opts.lockDuration)
  return own and own >= 1 and math.max(math.floor(own), SHORTEST_LOCK) or number(policy.lockDuration) or fetch.lock_duration, policy
end

--- includes/fetch/jobs.lua
-- How a worker fetches jobs. The queue's meta must have been read, and the queue must not be
-- paused. `fetch` is a table of
--   timestamp       in ms, as text             worker         its name
--   wanted          how many jobs to fetch     lock_duration  in ms, of jobs without their own
--   suspects_wanted how many of them may be suspects: jobs that have stalled before
--   id              of this call: the token of a lock is this, a colon and a number
--   idle_threads    how many of the jobs start at once
--   policies        by name of the job its lockDuration and maxStalledCount
--   jobs            what was fetched, described     skipped  the suspects left where they were
--   limited_for     for how many ms a rate limit keeps all jobs from being fetched, or 0
-- Needs:

local MOST_SKIPPED = 100 -- suspects to look past in one call

-- Gives a job to the worker, whose id has left the place where it waited.
local function fetch_job(queue, fetch, id, fields)
  local key, jobs = queue.prefix .. id, fetch.jobs
  local token = fetch.id .. ":" .. #jobs
  local started = counter(fields[3]) + 1
  local duration, policy = lock_duration_of(fetch, fields)
  local own = policy.maxStalledCount and { "actorMaxStalledCount", digits(policy.maxStalledCount) } or {}
  redis.call("LPUSH", queue.active, id)
  redis.call("SET", key .. ":lock", token, "PX", digits(duration))
  redis.call("HSET", key, "processedOn", fetch.timestamp, "pb", fetch.worker, "ats", digits(started), unpack(own))
  if #jobs < fetch.idle_threads then
    redis.call("HDEL", key, "unbegun")
    fields[9] = nil
  else
    redis.call("HSET", key, "unbegun", digits(started))
    fields[9] = digits(started)
  end
  emit(queue, "active", id, "prev", "waiting")
  jobs[#jobs + 1] = describe(id, token, fields, started, duration)
end

-- Fetches as many jobs as are wanted and there. Ids without a job vanish.
local function fetch_jobs(queue, fetch)
  local jobs, skipped, counted = fetch.jobs, fetch.skipped, 0
  local room
  room, fetch.limited_for = room_under_limit(queue)
  waiting_list(queue) -- which brings back what another runtime's resume has left in `paused`
  while #jobs < fetch.wanted and counted < room and #skipped < MOST_SKIPPED and not is_maxed(queue) do
    local id, score = pop(queue, skipped)
    if not id then
      break
    end
    local fields = not is_reserved(id) and read_fields(queue, id)
    local there = fields and (fields[1] or redis.call("EXISTS", queue.prefix .. id) == 1)
    if there and counter(fields[4]) > 0 and fetch.suspects_wanted <= 0 then
      skipped[#skipped + 1] = { id, score }
    elseif there then
      fetch.suspects_wanted = fetch.suspects_wanted - (counter(fields[4]) > 0 and 1 or 0)
      fetch_job(queue, fetch, id, fields)
      counted = counted + (fields[5] and 0 or 1) -- a job that is only failed is not limited
    end
  end
  put_back(queue, skipped)
  count_under_limit(queue, counted)
end

--- includes/fetch/lost_call.lua
-- The jobs of an earlier call whose reply was lost. Takes the `fetch` of fetch/jobs. Needs:

local NEWEST_OF_ACTIVE = 1000 -- ids among which lost jobs are searched

-- Adds the jobs whose locks an earlier call has set, in the order in which it fetched them.
local function find_jobs_of_call(queue, fetch, lost_id)
  local newest = redis.call("LRANGE", queue.active, 0, NEWEST_OF_ACTIVE - 1)
  for at = #newest, 1, -1 do
    local id = newest[at]
    local token = attempt("GET", queue.prefix .. id .. ":lock")
    local fields = token and token:sub(1, #lost_id + 1) == lost_id .. ":" and read_fields(queue, id)
    if fields then
      local duration = lock_duration_of(fetch, fields)
      fetch.jobs[#fetch.jobs + 1] = describe(id, token, fields, counter(fields[3]), duration)
    end
  end
end

--- commands/takeJobs-1.lua

local queue = queue_at(ARGV[1])
local fetch = {
  timestamp = time_in_ms(ARGV[2]), wanted = number(ARGV[3]), worker = ARGV[4], lock_duration = number(ARGV[5]), id = ARGV[6],
  suspects_wanted = number(ARGV[7]), policies = object(ARGV[8]), idle_threads = number(ARGV[10]),
  jobs = {}, skipped = {}, limited_for = 0,
}
local lost_id = ARGV[9]

local fault = refusal(queue, types_of(queue, queue.limiter, "string"))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if lost_id ~= "" then
  find_jobs_of_call(queue, fetch, lost_id)
  return { fetch.jobs, due_in(queue, fetch.timestamp), 0, 0 }
end
trim_events(queue)
promote_due_jobs(queue, fetch.timestamp)
if not queue.is_paused then
  fetch_jobs(queue, fetch)
  if redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
return { fetch.jobs, due_in(queue, fetch.timestamp), #fetch.skipped, fetch.limited_for }
