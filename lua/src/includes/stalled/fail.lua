-- How a job fails that has stalled too often. Takes the `call` of stalled/call. Needs:
--- include values
--- include queue/events
--- include finish/retention
--- include finish/deduplication
--- include parents/failure
--- include stalled/call
--- include stalled/job

local function fail_stalled_job(call, id, job, reason)
  local queue, stalls = call.queue, digits(job.stalls + 1)
  read_more(job)
  redis.call("HSET", job.key, "stc", stalls, "atm", digits(job.attempts + 1), "failedReason", reason,
    "finishedOn", call.timestamp)
  redis.call("HDEL", job.key, "defa", "unbegun")
  emit(queue, "stalled", id)
  emit(queue, "failed", id, "prev", "active", "failedReason", reason)
  release_deduplication(queue, job.deduplication_id, id)
  local fault = tell_parent_of_failure(job, job.key, reason, call.timestamp)
  if fault then
    note(call, id, fault)
  end
  local keep = retention_of_failed(job.opts)
  local data = keep.count == 0 and redis.call("HGET", job.key, "data") or ""
  retain(queue, queue.failed, id, keep, call.timestamp)
  call.counts.failed = call.counts.failed + 1
  call.handled[id] = job.attempts_started
  call.failed_jobs[#call.failed_jobs + 1] = { id, reason, stalls, job.worker or "", job.name or "", data }
end
