-- How ONE job fails that its worker holds. Needs:
--- include queue/events
--- include finish/stacktrace
--- include parents/failure

-- The first bytes of a text, without a part of a character at the end.
local function first_bytes(text, count)
  if (text:byte(count + 1) or 0) < 128 or text:byte(count + 1) > 191 then
    return text:sub(1, count)
  end
  return (text:sub(1, count):gsub("[\192-\255][\128-\191]*$", ""))
end

-- An event carries no longer reason than `most` bytes: the whole one is in the job's hash.
local function emit_failed(queue, id, reason, most, attempts_made)
  emit(queue, "failed", id, "failedReason", #reason <= most and reason or first_bytes(reason, most), "prev", "active")
  emit(queue, "retries-exhausted", id, "attemptsMade", attempts_made)
end

-- Writes how a job failed, and tells the others. Takes the `job` and `how` of finish/job; `child` is what
-- tell_parent_of_failure takes. Returns what could not be told.
local function fail_job(queue, job, child, attempts, reason, how)
  local key, latest, trace = job.key, ARGV[job.at + 4], {}
  local found = redis.call("HMGET", key, "stacktrace", "defa")
  if latest ~= "" then
    trace = { "stacktrace", stacktrace_of(child.opts, found[1], latest) }
  end
  redis.call("HSET", key, "atm", attempts, "finishedOn", how.timestamp, "failedReason", reason, unpack(trace))
  if found[2] then
    redis.call("HDEL", key, "defa")
  end
  emit_failed(queue, job.id, reason, how.event_bytes, attempts)
  return tell_parent_of_failure(child, key, reason, how.timestamp)
end
