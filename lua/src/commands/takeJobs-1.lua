--[[
Gives a worker the jobs that it is to run next, each with a lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 timestamp in ms
      3 how many jobs to take  4 name of the worker  5 lock duration in ms
      6 id of this call; the token of a lock is this, a colon and a number
      7 how many suspects to take: jobs that have stalled before
      8 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      9 id of an earlier call whose reply was lost, or empty: its jobs are given again
      10 how many of the jobs begin at once, since a thread is idle for each

Delayed jobs that are due become available first, at most 1,000 of them. Jobs are taken from
the tail of `wait`, then from `prioritized`. Those that do not begin at once carry the field
`unbegun` until their worker begins them. Suspects that are not taken stay where they were.

Returns the jobs, when the next delayed job is due in ms (0 for none), and how many suspects
were left. A job is: id, data, and a line of its token, attempts started, stalls, lock duration,
timestamp, whether it has begun, and name, which costs clients less than seven values do; and only
if it is to be failed or belongs to a scheduler: the reason, the worker that had it before, and
the scheduler's id.

Cost: O(log N) for each job promoted or taken.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/line

local PROMOTED_AT_ONCE = 1000
local SUSPECTS_PASSED = 100 -- most suspects to look past in one call
local SEARCHED_FOR_LOST = 1000 -- newest ids of `active` among which lost jobs are searched

local prefix, timestamp, worker = ARGV[1], ARGV[2], ARGV[4]
local wanted, lock_duration, suspects_wanted = number(ARGV[3]), number(ARGV[5]), number(ARGV[7])
local call, policies, lost, idle_threads = ARGV[6], object(ARGV[8]), ARGV[9], number(ARGV[10])
local queue = queue_at(prefix)
local jobs, passed = {}, {}

local function promote_due_jobs()
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", digits((timestamp + 1) * 4096 - 1),
    "LIMIT", 0, PROMOTED_AT_ONCE)
  for _, id in ipairs(due) do
    local priority = number(attempt("HGET", prefix .. id, "priority")) or 0
    redis.call("ZREM", queue.delayed, id)
    make_available(queue, id, priority, "LPUSH")
    if redis.call("EXISTS", prefix .. id) == 1 then
      attempt("HSET", prefix .. id, "delay", 0)
    end
    emit(queue, "waiting", id, "prev", "delayed")
  end
end

local function pop()
  local id = redis.call("RPOP", queue.wait)
  if id then
    return id
  end
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if not first[1] and #passed == 0 then
    redis.call("DEL", queue.pc)
  end
  return first[1], first[2]
end

local function read_job(id)
  return attempt("HMGET", prefix .. id, "name", "data", "ats", "stc", "defa", "opts", "pb", "timestamp", "unbegun",
    "rjk")
end

local function describe(id, token, fields, started, duration)
  local line = table.concat({ token, digits(started), digits(counter(fields[4])), digits(duration),
    digits(counter(fields[8])), fields[9] and 0 or 1, fields[1] or "" }, " ")
  if fields[5] or fields[10] then
    return { id, fields[2] or "", line, fields[5] or "", fields[7] or "", fields[10] or "" }
  end
  return { id, fields[2] or "", line }
end

local function duration_of(fields)
  local opts, policy = object(fields[6]), policies[fields[1] or ""] or {}
  local own = number(opts.lockDuration)
  return own and own >= 1 and math.floor(own) or number(policy.lockDuration) or lock_duration, policy
end

local function take(id, fields)
  local token = call .. ":" .. #jobs
  local started = counter(fields[3]) + 1
  local duration, policy = duration_of(fields)
  local own = policy.maxStalledCount and { "actorMaxStalledCount", digits(policy.maxStalledCount) } or {}
  redis.call("LPUSH", queue.active, id)
  redis.call("SET", prefix .. id .. ":lock", token, "PX", digits(duration))
  redis.call("HSET", prefix .. id, "processedOn", timestamp, "pb", worker, "ats", digits(started), unpack(own))
  if #jobs < idle_threads then
    redis.call("HDEL", prefix .. id, "unbegun")
    fields[9] = nil
  else
    redis.call("HSET", prefix .. id, "unbegun", digits(started))
    fields[9] = digits(started)
  end
  emit(queue, "active", id, "prev", "waiting")
  jobs[#jobs + 1] = describe(id, token, fields, started, duration)
end

-- Gives back, in their old places, the suspects that were not wanted.
local function put_back_passed()
  for at = #passed, 1, -1 do
    local id, score = unpack(passed[at])
    if score then
      redis.call("ZADD", queue.prioritized, score, id)
    else
      redis.call("RPUSH", queue.wait, id)
    end
  end
end

local function take_jobs()
  while #jobs < wanted and #passed < SUSPECTS_PASSED and not is_maxed(queue) do
    local id, score = pop()
    if not id then
      break
    end
    local fields = read_job(id)
    local there = fields and (fields[1] or redis.call("EXISTS", prefix .. id) == 1)
    if there and counter(fields[4]) > 0 and suspects_wanted <= 0 then
      passed[#passed + 1] = { id, score }
    elseif there then
      suspects_wanted = suspects_wanted - (counter(fields[4]) > 0 and 1 or 0)
      take(id, fields)
    end
  end
  put_back_passed()
end

local function find_lost_jobs()
  local newest = redis.call("LRANGE", queue.active, 0, SEARCHED_FOR_LOST - 1)
  for at = #newest, 1, -1 do
    local id = newest[at]
    local token = attempt("GET", prefix .. id .. ":lock")
    local fields = token and token:sub(1, #lost + 1) == lost .. ":" and read_job(id)
    if fields then
      jobs[#jobs + 1] = describe(id, token, fields, counter(fields[3]), (duration_of(fields)))
    end
  end
end

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if lost ~= "" then
  find_lost_jobs()
  return { jobs, next_due(queue) or 0, 0 }
end
trim_events(queue)
promote_due_jobs()
if not queue.is_paused then
  take_jobs()
  if redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
return { jobs, next_due(queue) or 0, #passed }
