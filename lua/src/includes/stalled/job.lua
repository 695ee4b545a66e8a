-- What is read of a job before it is judged. Takes the `call` of stalled/call. Needs:
--- include values
--- include queue/history
--- include queue/reserved
--- include stalled/call

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
