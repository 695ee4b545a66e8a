-- What finishing a job comes to when its worker cannot finish it. Needs:
--- include values
--- include finish/gone
--- include rarely parents/children

local NOT_OWNED, GONE, FINISHED, FAILED_INSTEAD = 0, -1, 1, 2

-- Whether the newest events tell that a job, which is gone by now, has ended so.
local function is_told_of(queue, id, event)
  for _, entry in ipairs(newest_events(queue)) do
    if entry[2][2] == event and entry[2][4] == id then
      return true
    end
  end
  return false
end

-- Whether a job has ended as the call says that holds its `ats` and `stc`: nobody fetched it
-- since, no check has failed it.
local function has_ended_by_this_call(queue, id, target, value, how)
  if not redis.call("ZSCORE", queue[target], id) then
    return false
  end
  local found = redis.call("HMGET", queue.prefix .. id, "ats", "stc", target == "failed" and "failedReason" or "returnvalue")
  return counter(found[1]) == counter(ARGV[how.at + 5]) and counter(found[2]) == counter(ARGV[how.at + 6])
    and found[3] == value
end

-- The outcome for a job whose hash is gone, or whose lock does not hold its worker's token, and a list of what
-- went wrong. A call that was sent twice finds what the first one has done. Takes the `how` of finish/job.
local function outcome_without_job(queue, id, how)
  local key, target, token = queue.prefix .. id, how.target, ARGV[how.at + 1]
  if how.held and how.held ~= token then
    return NOT_OWNED
  elseif redis.call("EXISTS", key) == 1 then
    local forbidden = target == "completed" and children_forbid(key, id)
    if has_ended_by_this_call(queue, id, target, how.value, how) then
      return FINISHED
    elseif forbidden and has_ended_by_this_call(queue, id, "failed", forbidden, how) then
      return FAILED_INSTEAD, { forbidden }
    end
    return NOT_OWNED
  elseif how.held or redis.call("LPOS", queue.active, id) then
    how.has_written = true
    local _, fault = end_gone_job(queue, id, how.timestamp)
    return GONE, { fault }
  end
  return is_told_of(queue, id, target) and FINISHED or GONE
end
