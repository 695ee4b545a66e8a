-- How a job fails that has stalled too often. Takes the `call` of stalled/call. Needs:
--- include values
--- include queue/events
--- include finish/retention
--- include finish/retain
--- include finish/next_job
--- include finish/metrics
--- include parents/failure
--- include stalled/call
--- include stalled/job
--- include stalled/history
--- include stalled/untold

local function note_all(call, id, ...)
  for at = 1, select("#", ...) do
    local oddity = select(at, ...)
    if oddity then
      note(call, id, oddity)
    end
  end
end

local function fail_stalled_job(call, id, job, reason)
  local queue, stalls = call.queue, digits(job.stalls + 1)
  read_more(job)
  redis.call("HSET", job.key, "stc", stalls, "atm", digits(job.attempts + 1), "failedReason", reason,
    "finishedOn", call.timestamp)
  redis.call("HDEL", job.key, "defa", "suspect")
  record_stall(call, job, job.stalls + 1, "failed: " .. reason)
  emit(queue, "stalled", id)
  emit(queue, "failed", id, "prev", "active", "failedReason", reason)
  note_all(call, id, tell_parent_of_failure(job, job.key, reason, call.timestamp),
    end_deduplication(queue, job.deduplication_id, id, call.timestamp))
  -- With the job its data may go at once, and then nobody else could tell whose failure it was.
  local keep = retention_of("failed", job.opts, { failed = call.keep_failed })
  local data = redis.call("HGET", job.key, "data")
  retain(queue, queue.failed, id, keep, call.timestamp)
  local is_gone = redis.call("EXISTS", job.key) == 0
  add_untold(call, id, job, reason, stalls, data, is_gone or keep.count)
  data = is_gone and data or ""
  add_to_metrics(queue, "failed")
  call.counts.failed = call.counts.failed + 1
  call.handled[id] = job.attempts_started
  call.failed_jobs[#call.failed_jobs + 1] = { id, reason, stalls, job.worker or "", job.name or "", data }
end
