-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. Needs:
--- include values
--- include queue/wake
--- include finish/event
--- include finish/retention
--- include finish/next_job
--- include finish/stacktrace
--- include finish/metrics
--- include finish/gone
--- include finish/outcome
--- include queue/remove
--- include parents/children
--- include parents/completion
--- include parents/failure

-- What a worker says about the jobs that it finishes, decoded, as a table of what it must be.
local function rules_from(rules)
  return {
    completed = retention(rules.keepCompleted), failed = retention(rules.keepFailed),
    event_bytes = number(rules.maxEventBytes) or math.huge, metrics_points = number(rules.metricsPoints) or 0,
  }
end

-- Writes how a job failed, and tells the others. Returns what could not be told.
local function fail_job(queue, id, job, reason, how)
  local key, trace = queue.prefix .. id, {}
  if how.stacktrace ~= "" then
    trace = { "stacktrace", stacktrace_of(job.opts, job.stacktrace, how.stacktrace) }
  end
  redis.call("HSET", key, "atm", digits(job.attempts), "finishedOn", how.timestamp, "failedReason", reason, unpack(trace))
  if job.deferred_failure then
    redis.call("HDEL", key, "defa")
  end
  emit_failed(queue, id, reason, how.rules.event_bytes, job.attempts)
  return tell_parent_of_failure(job, key, reason, how.timestamp)
end

local function complete_job(queue, id, job, how)
  local key, value = queue.prefix .. id, how.value
  redis.call("HSET", key, "atm", digits(job.attempts), "finishedOn", how.timestamp, "returnvalue", value)
  if job.failed_reason then
    redis.call("HDEL", key, "failedReason")
  end
  emit_completed(queue, id, value, how.rules.event_bytes)
  return tell_parent_of_completion(job, key, value, how.timestamp)
end

-- Finishes the job with an id. `how` is a table of
--   token       of the lock                   timestamp   in ms, as text
--   target      "completed" or "failed"       value       return value as JSON, or the reason
--   stacktrace  a JSON list, or ""            rules       of the worker, from rules_from
--   started     `ats` when it was fetched     stalls      `stc` when it was fetched
--   may_have_children  false when no job of the call has children that keep it from completing
--   to_prune    gets the rule of the worker for each set that is to be pruned by it
-- Returns the outcome as finishAndFetch does, a list of what went wrong, and true when something was
-- written.
local function finish_job(queue, id, how)
  local key, target, timestamp = queue.prefix .. id, how.target, how.timestamp
  local held = attempt("GET", key .. ":lock")
  if held ~= how.token then
    return outcome_without_lock(queue, id, held, how)
  end
  local fields = redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "ats", "stacktrace", "defa",
    "failedReason")
  if not fields[6] and redis.call("EXISTS", key) == 0 then
    local _, fault = end_gone_job(queue, id, timestamp)
    return GONE, { fault }, true
  end
  local job = { opts = object(fields[1]), parent_key = fields[2], parent = object(fields[3]),
    attempts = counter(fields[5]) + 1, stacktrace = fields[7], deferred_failure = fields[8], failed_reason = fields[9] }
  local forbidden = target == "completed" and how.may_have_children and children_forbid(key, id)
  redis.call("DEL", key .. ":lock")
  remove_mark(queue, id)
  redis.call("LREM", queue.active, -1, id)
  local untold, keep
  if target == "failed" or forbidden then
    target, keep = "failed", retention_of_failed(job.opts, how.rules.failed)
    untold = fail_job(queue, id, job, forbidden or how.value, how)
  else
    keep = retention_of_completed(job.opts, how.rules.completed)
    untold = complete_job(queue, id, job, how)
  end
  local faults = { forbidden or nil }
  faults[#faults + 1] = untold
  faults[#faults + 1] = end_deduplication(queue, fields[4], id, timestamp)
  if keep == how.rules[target] and keep.count ~= 0 then
    redis.call("ZADD", queue[target], timestamp, id) -- finish_jobs prunes by this rule, once for all jobs
    how.to_prune[target] = keep
  else
    retain(queue, queue[target], id, keep, timestamp)
  end
  count_finished(queue, target, how.rules.metrics_points, timestamp)
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
