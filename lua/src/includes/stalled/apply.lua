-- Does what the verdicts say. Takes the `call` of stalled/call. Needs:
--- include queue/lists
--- include queue/wake
--- include rarely queue/wake_for_waiting
--- include rarely stalled/gone
--- include stalled/call
--- include stalled/lookup
--- include stalled/verdict
--- include stalled/requeue
--- include rarely stalled/fail
--- include stalled/leave_active

-- Does to each id what its verdict says, and returns how many left `active`.
local function apply_verdicts(call, ids)
  local queue, counts = call.queue, call.counts
  local new_marks, places, leaving, returning, gone = {}, {}, {}, {}, {}
  judge(call, ids, lockless_places(call, ids), function(place, id, verdict, job, reason)
    if verdict == "requeue" then
      requeue_stalled_job(call, id, job, returning)
    elseif verdict == "mark" then
      new_marks[#new_marks + 1] = id
      return
    elseif verdict == "odd" then
      note(call, id, job.odd)
      return
    elseif verdict == "fail" then
      fail_stalled_job(call, id, job, reason)
    elseif verdict == "drop" then
      counts.dropped = counts.dropped + 1
      gone[#gone + 1] = not job and id or nil
    end
    local number = #leaving + 1
    places[number], leaving[number] = place, id
  end)
  counts.recovered = #call.recovered_ids
  if #returning > 0 then
    redis.call("LPUSH", waiting_list(queue), unpack(returning))
  end
  if #leaving > 0 then
    take_out_of_active(call, places, leaving, #ids)
  end
  if #gone > 0 then
    follow_gone_jobs(call, gone)
  end
  if #new_marks > 0 then
    counts.marked = counts.marked + redis.call("SADD", queue.stalled, unpack(new_marks))
  end
  return #leaving
end

-- Wakes an idle worker for jobs that came back, and for places that jobs which left `active`
-- have freed in a queue with a global concurrency.
local function wake_for_what_changed(call)
  local queue, counts = call.queue, call.counts
  if counts.recovered > 0 then
    wake(queue)
  elseif queue.concurrency and counts.failed + counts.dropped > 0 then
    wake_for_waiting(queue)
  end
end
