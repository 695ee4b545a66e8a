-- What a call fetches, after it has finished what it had to. The queue's meta must have been read. Needs:
--- include values
--- include queue/due
--- include queue/wake
--- include queue/lists
--- include finish/fit
--- include rarely fetch/promote
--- include fetch/jobs
--- include rarely fetch/lost_call

-- How many jobs wait, or more than are wanted; 0 where the queue is paused.
local function how_many_wait(queue, wanted)
  if queue.is_paused then
    return 0
  end
  local listed = redis.call("LLEN", waiting_list(queue))
  return listed > wanted and listed or listed + redis.call("ZCARD", queue.prioritized)
end

-- Fetches what the `fetch` of fetch/jobs asks for, or the jobs of the earlier call with the lost id; gives it when the
-- next delayed job is `due`. Returns the error of a queue that is refused, or nil. A call that has finished jobs has
-- looked before.
local function fetch_for_call(queue, fetch, lost_id, has_looked)
  local wanted, timestamp = fetch.wanted, fetch.timestamp
  -- What is there only with delays, limits or priorities, or after a strange resume: one look tells that it is not.
  fetch.may_be_limited = redis.call("EXISTS", queue.delayed, queue.paused, queue.limiter, queue.prefix .. "pc") > 0
  if fetch.may_be_limited then
    fetch.due = next_due(queue)
  elseif not queue.is_paused then
    queue.waiting_list = queue.wait
  end
  if lost_id ~= "" then
    find_jobs_of_call(queue, fetch, lost_id)
    return nil
  end
  local is_due, waiting = fetch.due and fetch.due <= tonumber(timestamp), how_many_wait(queue, wanted)
  local refused = not has_looked and (is_due or waiting > 0) and unfit_to_fetch(queue)
  if refused then
    return refused
  end
  if is_due then
    promote_due_jobs(queue, timestamp)
    fetch.due, waiting = next_due(queue), how_many_wait(queue, wanted)
  end
  if waiting > 0 then
    local is_all = waiting <= wanted and not fetch.may_be_limited
    fetch_jobs(queue, fetch, is_all and waiting or math.huge)
    if #fetch.jobs > 0 and waiting > #fetch.jobs then
      wake(queue)
    end
  elseif not queue.is_paused then
    attempt("ZREM", queue.marker, "0") -- that of another worker, which had no free thread and put it back
  end
  return nil
end
