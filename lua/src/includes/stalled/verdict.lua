-- What is to become of the jobs in `active`. Writes nothing. Takes the `call` of stalled/call.
-- Needs:
--- include values
--- include stalled/job
--- include stalled/lookup

-- The reasons to fail a stalled job. All start with "job stalled": brokers that are to tell of the
-- failure, and inspectors, know such jobs by it (STALLED in protocol/records.py).
local STALL_LIMIT = "job stalled more than allowable limit"
local NO_ATTEMPTS = "job stalled with no attempts left"
local JUST_A_JOB = {}

-- What becomes of a job that is found stalled a second time, and why. One that ran beside other
-- suspects pays nothing: it runs alone the next time.
local function verdict_when_stalled(call, job)
  if job.stalled_beside then
    return "requeue"
  end
  if job.stalls + 1 > job.allowed_stalls and not has_live_scheduler(call, job) then
    return "fail", STALL_LIMIT
  end
  local attempts = job.policy.attempts
  if attempts >= 1 and job.attempts + 1 >= attempts then
    return "fail", NO_ATTEMPTS
  end
  return "requeue"
end

-- Whether a worker has fetched a job after this sweep handled it. If not, what is left of it
-- in `active` is a copy.
local function was_fetched_since(call, id, attempts_started)
  local now = attempt("HGET", call.prefix .. id, "ats")
  return now and now ~= attempts_started
end

-- Calls `use(place, id, verdict, job, reason)` for the ids at the places without a lock.
local function judge(call, ids, places, use)
  local queue, handled, lockless = call.queue, call.handled, {}
  for at = 1, #places do
    lockless[at] = ids[places[at]]
  end
  local marked = membership("SMISMEMBER", call.marks, lockless)
  local completed = membership("ZMSCORE", queue.completed, lockless)
  local failed = membership("ZMSCORE", queue.failed, lockless)
  local earlier = call.is_report and {} or membership("HMGET", call.done, lockless)
  local new = #marked == 0 and lockless or {}
  for at = 1, #marked do
    if marked[at] ~= 1 or earlier[at] then
      new[#new + 1] = lockless[at]
    end
  end
  local is_plain = are_plain(lockless)
  local all_new_are_jobs = not call.is_report and all_are_jobs(call, new, is_plain)
  for at = 1, #lockless do
    local place, id, handled_with = places[at], lockless[at], earlier[at]
    if handled[id] or handled_with and not was_fetched_since(call, id, handled_with) then
      use(place, id, "copy")
    else
      local is_new = handled_with or marked[at] ~= 1
      local job = is_new and all_new_are_jobs and JUST_A_JOB or read_job(call, id, is_plain)
      if job and job.odd then
        use(place, id, "odd", job)
      elseif not job or completed[at] or failed[at] then
        use(place, id, "drop", job)
      elseif is_new then
        use(place, id, "mark", job)
      else
        local verdict, reason = verdict_when_stalled(call, job)
        use(place, id, verdict, job, reason)
      end
    end
  end
end
