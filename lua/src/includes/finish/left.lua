-- What is told to others, once after the jobs of a call. Needs:
--- include rarely queue/wake_for_waiting

-- That the queue is empty, or that its global concurrency has a place again.
local function tell_what_is_left(queue)
  if redis.call("EXISTS", queue.wait, queue.active, queue.prioritized) == 0 then
    redis.call("XADD", queue.events, "*", "event", "drained")
  elseif queue.concurrency then
    wake_for_waiting(queue)
  end
end
