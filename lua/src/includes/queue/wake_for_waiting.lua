-- How an idle worker is woken where it is not known whether any job waits. The queue's meta must have been read. Needs:
--- include queue/wake

-- Wakes one if jobs wait. Those in `paused` count as well, where a resume has left them: no worker of a paused queue is
-- woken.
local function wake_for_waiting(queue)
  if redis.call("EXISTS", queue.wait, queue.paused, queue.prioritized) > 0 then
    wake(queue)
  end
end
