-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. Needs:
--- include values
--- include queue/wake
--- include queue/remove
--- include finish/event
--- include finish/retention
--- include rarely finish/failed
--- include rarely finish/next_job
--- include rarely finish/count
--- include rarely finish/gone
--- include rarely finish/outcome
--- include rarely parents/children
--- include rarely parents/completion

local GONE, FINISHED, FAILED_INSTEAD = -1, 1, 2

-- What a worker says about the jobs that it finishes, decoded, as a table of what it must be.
local function rules_from(rules)
  return {
    completed = retention(rules.keepCompleted), failed = retention(rules.keepFailed),
    event_bytes = number(rules.maxEventBytes) or math.huge, metrics_points = number(rules.metricsPoints) or 0,
  }
end

local function complete_job(queue, id, job, value, how)
  local key = queue.prefix .. id
  redis.call("HSET", key, "atm", job.attempts, "finishedOn", how.timestamp, "returnvalue", value)
  if job.failed_reason then
    redis.call("HDEL", key, "failedReason")
  end
  emit_completed(queue, id, value, how.rules.event_bytes)
  return (job.parent_key or job.has_parent) and tell_parent_of_completion(job, key, value, how.timestamp)
end

-- What went wrong, of what may have.
local function faults_of(...)
  local faults = {}
  for at = 1, select("#", ...) do
    faults[#faults + 1] = select(at, ...) or nil
  end
  return faults
end

-- Finishes the job with an id. `how` is a table of
--   token       of the lock                   held        what the lock holds, or false
--   timestamp   in ms, as text
--   target      "completed" or "failed"       value       return value as JSON, or the reason
--   stacktrace  a JSON list, or ""            rules       of the worker, from rules_from
--   started     `ats` when it was fetched     stalls      `stc` when it was fetched
--   may_have_children  false when no job of the call has children that keep it from completing
--   locks       gets the lock, to be deleted   ended       gets the id, by target, for a set of finished jobs
-- that is pruned by the rule of the worker: what one command can do for all jobs of a call.
-- Returns the outcome as finishAndFetch does, a list of what went wrong, and true when something was
-- written.
local function finish_job(queue, id, how)
  local key, target, timestamp = queue.prefix .. id, how.target, how.timestamp
  if how.held ~= how.token then
    return outcome_without_lock(queue, id, how.held, how)
  end
  local fields = redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "ats", "stacktrace", "defa",
    "failedReason")
  if not fields[6] and redis.call("EXISTS", key) == 0 then
    local _, fault = end_gone_job(queue, id, timestamp)
    return GONE, { fault }, true
  end
  local job = { opts = object(fields[1]), parent_key = fields[2], has_parent = fields[3], parent = object(fields[3]),
    attempts = counter(fields[5]) + 1, stacktrace = fields[7], deferred_failure = fields[8], failed_reason = fields[9] }
  local forbidden = target == "completed" and how.may_have_children and children_forbid(key, id)
  if forbidden then
    target = "failed"
  end
  local keep = retention_of(target, job.opts, how.rules)
  local is_kept_by_rule = keep == how.rules[target] and keep.count ~= 0
  if is_kept_by_rule then
    local ended = how.ended[target] -- before the id leaves `active`: an error must not lose it
    ended[#ended + 1], ended[#ended + 2] = timestamp, id
  end
  how.locks[#how.locks + 1] = key .. ":lock"
  remove_mark(queue, id)
  redis.call("LREM", queue.active, -1, id)
  local end_job = target == "failed" and fail_job or complete_job
  local untold = end_job(queue, id, job, forbidden or how.value, how)
  local not_followed = fields[4] and end_deduplication(queue, fields[4], id, timestamp)
  if not is_kept_by_rule then
    retain(queue, queue[target], id, keep, timestamp)
  end
  if how.rules.metrics_points >= 1 then
    count_finished(queue, target, how.rules.metrics_points, timestamp)
  end
  local faults = (forbidden or untold or not_followed) and faults_of(forbidden, untold, not_followed)
  return forbidden and FAILED_INSTEAD or FINISHED, faults, true
end

-- Tells the others, once after the jobs of a call: that the queue is empty, or that its global
-- concurrency has a place again.
local function tell_what_is_left(queue)
  if redis.call("EXISTS", queue.wait, queue.active, queue.prioritized) == 0 then
    redis.call("XADD", queue.events, "*", "event", "drained")
  elseif queue.concurrency and redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
