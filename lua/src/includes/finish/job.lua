-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. `job` is a table of
--   at                    the place of its arguments: see the header of finishAndFetch
--   id, token, target, value         the first four of these
--   held                  what its lock holds, or false
--   key                   of its hash
-- and `how` one of what is the same for all jobs of a call:
--   timestamp             in ms, as text
--   keep                  by target the retention where a job does not say it
--   event_bytes, metrics_points      as the worker says
--   may_have_children     false when no job of the call has children that keep it from completing
--   sizes                 by target how many jobs the finished set holds, where that is known
--   locks                 gets the locks, to be deleted together
--   ended                 by target gets scores and ids, for a set of finished jobs that is pruned by the worker's rule
--   has_written           becomes true when something was written
-- Needs:
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

-- Writes how a job completed.
local function complete_job(queue, job, attempts, has_failed_before, how)
  local key, id, value = job.key, job.id, job.value
  redis.call("HSET", key, "atm", attempts, "finishedOn", how.timestamp, "returnvalue", value)
  if has_failed_before then
    redis.call("HDEL", key, "failedReason")
  end
  if #value <= how.event_bytes then
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", value, "prev", "active")
  else -- the stream holds some 10,000 events, and listeners of BullMQ need JSON: the result is in the job's hash
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", "null",
      "returnvalueBytes", #value, "prev", "active")
  end
end

-- Returns the outcome as finishAndFetch does, and a list of what went wrong, if anything did.
local function finish_job(queue, job, how)
  local id, key, target, timestamp = job.id, job.key, job.target, how.timestamp
  local fields = job.held == job.token
    and redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "failedReason")
  if not fields or not fields[1] and redis.call("EXISTS", key) == 0 then
    return outcome_without_job(queue, job, how)
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

  local attempts, has_parent, untold = fields[5] and digits(counter(fields[5]) + 1) or "1", fields[2] or fields[3], nil
  if target == "failed" then
    local child = { opts = opts, parent_key = fields[2], parent = object(fields[3]) }
    untold = fail_job(queue, job, child, attempts, forbidden or job.value, how)
  else
    complete_job(queue, job, attempts, fields[6], how)
    untold = has_parent and tell_parent_of_completion(
      { parent_key = fields[2], parent = object(fields[3]) }, key, job.value, timestamp)
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
