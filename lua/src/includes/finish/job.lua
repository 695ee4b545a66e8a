-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. Needs:
--- include values
--- include queue/events
--- include queue/wake
--- include finish/retention
--- include finish/deduplication
--- include parents/completion
--- include parents/failure

-- The keys, with their types, that finishing a job writes; those of a parent are checked apart.
local function types_to_finish(queue, id, target)
  return {
    queue.meta, "hash", queue.active, "list", queue.stalled, "set", queue[target], "zset", queue.marker, "zset",
    queue.events, "stream", queue.prefix .. id, "hash",
  }
end

-- The job's own rule, else the worker's. Its `count` or `age` alone leaves no other bound.
local function keep_for(opts, target, keep)
  local own = target == "failed" and retention_of_failed(opts) or retention_of_completed(opts)
  return (own.count or own.age) and own or keep
end

-- What finishing a job comes to when its worker does not hold it: -1 when the job is gone, 1
-- when the call was sent twice and the job has finished at the same timestamp, else 0.
local function outcome_without_lock(queue, id, held, target, timestamp)
  local key = queue.prefix .. id
  if redis.call("EXISTS", key) == 0 then
    return -1
  end
  local finished = not held and redis.call("ZSCORE", queue[target], id)
  return finished and redis.call("HGET", key, "finishedOn") == timestamp and 1 or 0
end

-- Finishes the job with an id. `how` is a table of
--   token       of the lock                   timestamp   in ms, as text
--   target      "completed" or "failed"       value       return value as JSON, or the reason
--   stacktrace  a JSON list, or ""            keep        what the worker keeps: count, age
-- Returns 1, 0 or -1 as finishJob does, and true when something was written.
local function finish_job(queue, id, how)
  local key, target, value, timestamp = queue.prefix .. id, how.target, how.value, how.timestamp
  local failing = target == "failed"
  local held = attempt("GET", key .. ":lock")
  if held ~= how.token then
    return outcome_without_lock(queue, id, held, target, timestamp), false
  end
  local fields = redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "unbegun",
    failing and "defa" or "failedReason")
  local job = { opts = object(fields[1]), parent_key = fields[2], parent = object(fields[3]) }
  redis.call("DEL", key .. ":lock")
  redis.call("SREM", queue.stalled, id)
  redis.call("LREM", queue.active, -1, id)
  redis.call("HSET", key, "atm", digits(counter(fields[5]) + 1), "finishedOn", timestamp,
    failing and "failedReason" or "returnvalue", value)
  if fields[6] or fields[7] then
    redis.call("HDEL", key, "unbegun", failing and "defa" or "failedReason")
  end
  if failing then
    if how.stacktrace ~= "" then
      redis.call("HSET", key, "stacktrace", how.stacktrace)
    end
    emit_last(queue, "failed", id, "failedReason", value, "prev", "active")
    tell_parent_of_failure(job, key, value, timestamp)
  else
    emit_last(queue, "completed", id, "returnvalue", value, "prev", "active")
    tell_parent_of_completion(job, key, value, timestamp)
  end
  release_deduplication(queue, fields[4], id)
  retain(queue, queue[target], id, keep_for(job.opts, target, how.keep), timestamp)
  return 1, true
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
