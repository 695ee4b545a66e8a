-- What finishing a job comes to when its worker cannot finish it. Needs:
--- include values
--- include queue/remove
--- include finish/next_job
--- include parents/children

local NOT_OWNED, GONE, FINISHED, FAILED_INSTEAD = 0, -1, 1, 2
local NEWEST_EVENTS = 1000 -- among which is searched what a job that is gone cannot tell any more

-- The value that follows a name in the newest event of a kind of a job; nil without such an event.
local function told_of(queue, id, event, name)
  for _, entry in ipairs(attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}) do
    local fields = entry[2]
    if fields[2] == event and fields[4] == id then
      for at = 1, #fields, 2 do
        if fields[at] == name then
          return fields[at + 1]
        end
      end
    end
  end
  return nil
end

-- Takes a job out of `active` whose hash is gone, and adds the one that waits for its end: the
-- event of its coming names the deduplication id. Returns what went wrong, if anything did.
local function end_gone_job(queue, id, timestamp)
  drop_from_active(queue, id)
  return end_deduplication(queue, told_of(queue, id, "deduplicated", "deduplicationId"), id, timestamp)
end

-- Whether a job has ended as the call says that holds its `ats` and `stc`: nobody fetched it
-- since, no check has failed it.
local function has_ended_by_this_call(queue, id, target, value, how)
  if not redis.call("ZSCORE", queue[target], id) then
    return false
  end
  local found = redis.call("HMGET", queue.prefix .. id, "ats", "stc", target == "failed" and "failedReason" or "returnvalue")
  return counter(found[1]) == counter(how.started) and counter(found[2]) == counter(how.stalls) and found[3] == value
end

-- The outcome for a job whose lock holds `held`, which is not its worker's token, a list of what
-- went wrong, and true when something was written. A call that was sent twice finds what the
-- first one has done.
local function outcome_without_lock(queue, id, held, how)
  local key, target = queue.prefix .. id, how.target
  if held then
    return NOT_OWNED, {}, false
  elseif redis.call("EXISTS", key) == 1 then
    local forbidden = target == "completed" and children_forbid(key, id)
    if has_ended_by_this_call(queue, id, target, how.value, how) then
      return FINISHED, {}, false
    elseif forbidden and has_ended_by_this_call(queue, id, "failed", forbidden, how) then
      return FAILED_INSTEAD, { forbidden }, false
    end
    return NOT_OWNED, {}, false
  elseif redis.call("LPOS", queue.active, id) then
    return GONE, { end_gone_job(queue, id, how.timestamp) }, true
  end
  return told_of(queue, id, target, "jobId") and FINISHED or GONE, {}, false
end
