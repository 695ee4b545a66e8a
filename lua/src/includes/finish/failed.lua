-- How ONE job fails that its worker holds. Needs:
--- include values
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
  emit(queue, "retries-exhausted", id, "attemptsMade", digits(attempts_made))
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
