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
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/line
--- include finish/retention
--- include finish/deduplication
--- include parents/failure

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
