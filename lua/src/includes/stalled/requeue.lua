-- How a stalled job comes back. Takes the `call` of stalled/call. Needs:
--- include queue/line
--- include queue/history
--- include stalled/call
--- include stalled/history

-- What the history of a job says that comes back.
local function way_back(call, priority)
  if priority > 0 then
    return "back to prioritized"
  end
  call.way_back = call.way_back or "back to " .. place_of_waiting(call.queue, 0)
  return call.way_back
end

-- Records the stall, unless the job ran beside other suspects. A job without a priority is added to
-- `returning`, since one LPUSH takes them all.
local function requeue_stalled_job(call, id, job, returning)
  local events, key, priority, stalled_beside = call.queue.events, job.key, job.priority, job.stalled_beside
  if stalled_beside then
    redis_call("HSET", key, "suspect", "alone")
  else
    redis_call("HSET", key, "stc", job.stalls + 1, "atm", job.attempts + 1)
    record_stall(call, job, way_back(call, priority))
  end
  if priority > 0 then
    make_available(call.queue, id, priority, "LPUSH")
  else
    returning[#returning + 1] = id
  end
  redis_call("XADD", events, "*", "event", "waiting", "jobId", id, "prev", "active")
  if not stalled_beside then
    redis_call("XADD", events, "*", "event", "stalled", "jobId", id)
  end
  note_recovered(call, id, job.started_at)
  note_handled(call, id, job.attempts_started)
end
