-- How a stalled job comes back. Takes the `call` of stalled/call. Needs:
--- include queue/line
--- include queue/history
--- include stalled/call
--- include stalled/history

-- What the history of a job says that comes back.
local function way_back(call, priority)
  local outcome = "back to " .. place_of_waiting(call.queue, priority)
  if priority == 0 then
    call.way_back = outcome
  end
  return outcome
end

-- Records the stall, unless the job ran beside other suspects. A job without a priority is added to
-- `returning`, since one LPUSH takes them all.
local function requeue_stalled_job(call, id, job, returning)
  local events, key, priority, stalled_beside = call.queue.events, job.key, job.priority, job.stalled_beside
  if stalled_beside then
    redis_call("HSET", key, "suspect", "alone")
  else
    local stalls = job.stalls + 1
    redis_call("HSET", key, "stc", stalls, "atm", job.attempts + 1)
    record_stall(call, job, stalls, priority == 0 and call.way_back or way_back(call, priority))
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
  local recovered_ids = call.recovered_ids
  local number = #recovered_ids + 1
  recovered_ids[number], call.recovered_since[number] = id, job.started_at or false
  call.handled[id] = job.attempts_started
end
