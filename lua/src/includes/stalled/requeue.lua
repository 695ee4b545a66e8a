-- How a stalled job comes back. Takes the `call` of stalled/call. Needs:
--- include queue/line
--- include queue/history
--- include stalled/history

-- Records the stall, unless the job ran beside other suspects. A job without a priority is added to
-- `returning`, since one LPUSH takes them all.
local function requeue_stalled_job(call, id, job, returning)
  local queue = call.queue
  if job.stalled_beside then
    redis.call("HSET", job.key, "suspect", "alone")
  else
    redis.call("HSET", job.key, "stc", job.stalls + 1, "atm", job.attempts + 1)
    record_stall(call, job, "back to " .. place_of_waiting(queue, job.priority))
  end
  if job.priority > 0 then
    make_available(queue, id, job.priority, "LPUSH")
  else
    returning[#returning + 1] = id
  end
  redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id, "prev", "active")
  if not job.stalled_beside then
    redis.call("XADD", queue.events, "*", "event", "stalled", "jobId", id)
  end
  call.counts.recovered = call.counts.recovered + 1
  call.recovered_ids[#call.recovered_ids + 1] = id
  local age = job.started_at and math.max(call.now - job.started_at, 0) or -1
  call.recovered_ages[#call.recovered_ages + 1] = age
  call.handled[id] = job.attempts_started
end
