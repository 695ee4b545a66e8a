-- Built by tools/build-lua from lua/src/commands/takeJobs-1.lua: edit that file, not this one.
--[[
Fetches the jobs that a worker is to run next, each with a lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 timestamp in ms
      3 how many jobs to fetch  4 name of the worker  5 lock duration in ms
      6 id of this call; the token of a lock is this, a colon and a number
      7 how many suspects to fetch: jobs that have stalled before
      8 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      9 id of an earlier call whose reply was lost, or empty: its jobs are returned again
      10 how many of the jobs start at once, since a thread is idle for each

Delayed jobs that are due become available first, at most 1,000 of them. Jobs are fetched from
the tail of `wait`, then from `prioritized`. Those that do not start at once carry the field
`unbegun` until their worker starts them. Suspects that are not fetched stay where they were.

Returns the jobs, when the next delayed job is due in ms (0 for none), and how many suspects
were left. A job is: id, data, and a line of its token, attempts started, stalls, lock duration,
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
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
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
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version") or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = number(meta[2])
  local max_events = math.floor(number(meta[3]) or 10000)
  queue.max_events = max_events > 0 and digits(max_events) or max_events == 0 and "0" or "10000" -- not "-0"
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

local RESERVED = {}
for name in ([[wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events
    id limiter priority repeat waiting-children workers]]):gmatch("%S+") do
  RESERVED[name] = true
end

-- The parts before the first colon and after the last one that only keys of a queue have. A
-- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`.
local RESERVED_FIRST = { de = true, dn = true, metrics = true, ["stalled-check"] = true, workers = true,
  echomq = true }
local RESERVED_LAST = { lock = true, logs = true, dependencies = true, processed = true, failed = true,
  unsuccessful = true }

-- Whether an id is the name of a key that is not a job's hash.
local function is_reserved(id)
  local first = id:match("^([^:]*):")
  if not first then
    return RESERVED[id] or id == ""
  end
  return RESERVED_FIRST[first] or RESERVED_LAST[id:match("([^:]*)$")]
    or first == "repeat" and not id:find(":%d+$")
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
  return own and own >= 1 and math.floor(own) or number(policy.lockDuration) or fetch.lock_duration, policy
end

--- includes/fetch/jobs.lua
-- How a worker fetches jobs. The queue's meta must have been read, and the queue must not be
-- paused. `fetch` is a table of
--   timestamp       in ms                      worker         its name
--   wanted          how many jobs to fetch     lock_duration  in ms, of jobs without their own
--   suspects_wanted how many of them may be suspects: jobs that have stalled before
--   id              of this call: the token of a lock is this, a colon and a number
--   idle_threads    how many of the jobs start at once
--   policies        by name of the job its lockDuration and maxStalledCount
--   jobs            what was fetched, described     skipped  the suspects left where they were
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
  local jobs, skipped = fetch.jobs, fetch.skipped
  while #jobs < fetch.wanted and #skipped < MOST_SKIPPED and not is_maxed(queue) do
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
    end
  end
  put_back(queue, skipped)
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
  timestamp = ARGV[2], wanted = number(ARGV[3]), worker = ARGV[4], lock_duration = number(ARGV[5]), id = ARGV[6],
  suspects_wanted = number(ARGV[7]), policies = object(ARGV[8]), idle_threads = number(ARGV[10]),
  jobs = {}, skipped = {},
}
local lost_id = ARGV[9]

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if lost_id ~= "" then
  find_jobs_of_call(queue, fetch, lost_id)
  return { fetch.jobs, next_due(queue) or 0, 0 }
end
trim_events(queue)
promote_due_jobs(queue, fetch.timestamp)
if not queue.is_paused then
  fetch_jobs(queue, fetch)
  if redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
return { fetch.jobs, next_due(queue) or 0, #fetch.skipped }
