-- Does what the verdicts say. Takes the `call` of stalled/call. Needs:
--- include queue/lists
--- include queue/wake
--- include finish/gone
--- include stalled/call
--- include stalled/lookup
--- include stalled/verdict
--- include stalled/requeue
--- include stalled/fail
--- include stalled/leave_active

-- Adds the jobs that wait for the end of others whose hashes are gone. The events are read once a call.
local function follow_gone_jobs(call, ids)
  call.waited_for = call.waited_for or deduplication_ids(call.queue)
  for _, id in ipairs(ids) do
    local fault = follow_gone_job(call.queue, id, call.waited_for[id], call.timestamp)
    if fault then
      note(call, id, fault)
    end
  end
end

-- Does to each id what its verdict says, and returns how many left `active`.
local function apply_verdicts(call, ids)
  local queue, counts, handled = call.queue, call.counts, call.handled
  local new_marks, leaving, returning, moved, gone = {}, {}, {}, {}, {}
  judge(call, ids, lockless_places(call, ids), function(place, id, verdict, job, reason)
    if verdict == "odd" then
      note(call, id, job.odd)
      return
    elseif verdict == "mark" then
      new_marks[#new_marks + 1] = id
      return
    elseif verdict == "drop" then
      counts.dropped = counts.dropped + 1
      gone[#gone + 1] = not job and id or nil
    elseif verdict == "fail" then
      fail_stalled_job(call, id, job, reason)
    elseif verdict == "requeue" then
      requeue_stalled_job(call, id, job, returning)
    end
    if handled[id] then
      moved[#moved + 1] = id
      moved[#moved + 1] = handled[id]
    end
    leaving[#leaving + 1] = place
  end)
  if #returning > 0 then
    redis.call("LPUSH", waiting_list(queue), unpack(returning))
  end
  if #leaving > 0 then
    take_out_of_active(call, leaving, ids)
  end
  if #gone > 0 then
    follow_gone_jobs(call, gone)
  end
  if #moved > 0 and call.limit < math.huge then
    redis.call("HSET", call.done, unpack(moved))
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
  if counts.recovered > 0 or queue.concurrency and counts.failed + counts.dropped > 0
    and redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
