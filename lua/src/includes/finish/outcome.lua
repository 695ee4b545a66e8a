-- What finishing a job comes to when its worker cannot finish it. Needs:
--- include values
--- include queue/remove

local NOT_OWNED, GONE, FINISHED, FAILED_INSTEAD = 0, -1, 1, 2
local NEWEST_EVENTS = 1000 -- among which the end of a job is searched that has been removed since

-- Whether the newest events say that a job has ended so.
local function has_ended(queue, id, target)
  for _, entry in ipairs(attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}) do
    local fields = entry[2]
    if fields[2] == target and fields[4] == id then
      return true
    end
  end
  return false
end

-- The outcome for a job whose lock holds `held`, which is not its worker's token; true when
-- something was written. A call that was sent twice finds the job finished as it says, with the
-- `ats` and `stc` that it had: nobody fetched it since, no check has failed it. Or removed.
local function outcome_without_lock(queue, id, held, how)
  local key, target = queue.prefix .. id, how.target
  if redis.call("EXISTS", key) == 1 then
    local is_finished = not held and redis.call("ZSCORE", queue[target], id)
    local found = redis.call("HMGET", key, "ats", "stc", target == "failed" and "failedReason" or "returnvalue")
    local by_this_call = is_finished and counter(found[1]) == counter(how.started)
      and counter(found[2]) == counter(how.stalls) and found[3] == how.value
    return by_this_call and FINISHED or NOT_OWNED, false
  elseif held then
    return NOT_OWNED, false
  elseif drop_from_active(queue, id) then
    return GONE, true
  end
  return has_ended(queue, id, target) and FINISHED or GONE, false
end
