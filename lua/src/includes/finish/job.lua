-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. Needs:
--- include values
--- include rarely finish/outcome
--- include finish/retention
--- include rarely finish/retain
--- include rarely finish/failed
--- include rarely finish/next_job
--- include rarely finish/count
--- include rarely finish/faults
--- include rarely parents/children
--- include rarely parents/completion

local NO_OPTS = {}

-- Writes how a job completed. Returns what could not be told to others.
local function complete_job(queue, id, key, attempts, fields, how)
  local value, parent_key, parent = how.value, fields[2], fields[3]
  redis.call("HSET", key, "atm", attempts, "finishedOn", how.timestamp, "returnvalue", value)
  if fields[6] then
    redis.call("HDEL", key, "failedReason")
  end
  if #value <= how.event_bytes then
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", value, "prev", "active")
  else -- the stream holds some 10,000 events, and listeners of BullMQ need JSON: the result is in the job's hash
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", "null",
      "returnvalueBytes", #value, "prev", "active")
  end
  return (parent_key or parent) and tell_parent_of_completion(
    { parent_key = parent_key, parent = object(parent) }, key, value, how.timestamp)
end

-- Finishes the job with an id. `how` is a table of
--   at          the place of its arguments     held        what its lock holds, or false
--   timestamp   in ms, as text
--   target      "completed" or "failed"        value       return value as JSON, or the reason
--   keep        by target the retention where the job does not say it
--   event_bytes, metrics_points  as the worker says
--   may_have_children  false when no job of the call has children that keep it from completing
--   locks       gets the lock, to be deleted   ended       gets the id, by target, for a set of finished jobs
-- that is pruned by the rule of the worker: what one command can do for all jobs of a call.
-- Returns the outcome as finishAndFetch does, and a list of what went wrong, if anything did; `how.has_written`
-- becomes true when something was written.
local function finish_job(queue, id, how)
  local key, target, timestamp = queue.prefix .. id, how.target, how.timestamp
  local fields = how.held == ARGV[how.at + 1]
    and redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "failedReason")
  if not fields or not fields[1] and redis.call("EXISTS", key) == 0 then
    return outcome_without_job(queue, id, how)
  end
  local forbidden = how.may_have_children and target == "completed" and children_forbid(key, id)
  if forbidden then
    target = "failed"
  end
  local opts, keep = NO_OPTS, how.keep[target]
  if fields[1] and fields[1] ~= "{}" then
    opts = object(fields[1])
    keep = retention_of(target, opts, how.keep)
  end
  local is_kept_by_rule = keep == how.keep[target] and keep.count ~= 0
  if is_kept_by_rule then
    local ended = how.ended[target] -- before the id leaves `active`: an error must not lose it
    ended[#ended + 1], ended[#ended + 2] = timestamp, id
  end
  how.locks[#how.locks + 1] = key .. ":lock"
  if queue.has_marks then
    redis.call("SREM", queue.stalled, id)
  end
  redis.call("LREM", queue.active, -1, id)
  how.has_written = true
  local attempts = fields[5] and digits(counter(fields[5]) + 1) or "1"
  local untold
  if target == "completed" then
    untold = complete_job(queue, id, key, attempts, fields, how)
  else
    untold = fail_job(queue, id, key, attempts, fields, opts, forbidden or how.value, how)
  end
  local not_followed = fields[4] and end_deduplication(queue, fields[4], id, timestamp)
  if not is_kept_by_rule then
    how.sizes[target] = nil -- of the set: it becomes another
    retain(queue, queue[target], id, keep, timestamp)
  end
  if how.metrics_points >= 1 then
    count_finished(queue, target, how.metrics_points, timestamp)
  end
  if forbidden or untold or not_followed then
    return forbidden and 2 or 1, faults_of(forbidden, untold, not_followed)
  end
  return "1"
end
