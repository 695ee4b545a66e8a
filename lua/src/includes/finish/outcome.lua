-- What finishing a job comes to when its worker cannot finish it. Needs:
--- include values
--- include queue/told
--- include finish/gone
--- include rarely parents/children

local NOT_OWNED, GONE, FINISHED, FAILED_INSTEAD = 0, -1, 1, 2

-- Whether a job has ended so with this `ats` and `stc`: nobody fetched it since, no check has failed it.
local function has_ended(queue, job, target, value)
  if not redis.call("ZSCORE", queue[target], job.id) then
    return false
  end
  local found = redis.call("HMGET", job.key, "ats", "stc", target == "failed" and "failedReason" or "returnvalue")
  local started, stalls = ARGV[job.at + 5], ARGV[job.at + 6]
  return counter(found[1]) == counter(started) and counter(found[2]) == counter(stalls) and found[3] == value
end

-- The outcome for a job whose hash is gone, or whose lock does not hold its worker's token, and a list of what
-- went wrong. A call that was sent twice finds what the first one has done. Takes the `job` and `how` of finish/job.
local function outcome_without_job(queue, job, how)
  local id, target = job.id, job.target
  if job.held and job.held ~= job.token then
    return NOT_OWNED
  elseif redis.call("EXISTS", job.key) == 1 then
    local forbidden = target == "completed" and children_forbid(job.key, id)
    if has_ended(queue, job, target, job.value) then
      return FINISHED
    elseif forbidden and has_ended(queue, job, "failed", forbidden) then
      return FAILED_INSTEAD, { forbidden }
    end
    return NOT_OWNED
  elseif job.held or redis.call("LPOS", queue.active, id) then
    how.has_written = true
    local _, fault = end_gone_job(queue, id, how.timestamp)
    return GONE, { fault }
  end
  return ids_told_of(queue, target)[id] and FINISHED or GONE
end
