-- How a new job, whose hash is there, comes into a queue. The queue's meta must have been read. Needs:
--- include rarely queue/delay
--- include rarely queue/line
--- include queue/lists

-- Makes a new job available now, or when it is due in ms (0 for now). One that `is_first` is
-- fetched before all that wait, as BullMQ's `lifo` says; once delayed, it is one among others. Returns whether
-- it is available, so that a worker is to be woken.
local function add_to_queue(queue, id, name, priority, due, is_first)
  redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", "added", "jobId", id, "name", name)
  if due > 0 then
    delay(queue, id, due)
    return false
  elseif priority > 0 then
    make_available(queue, id, priority)
  else
    redis.call(is_first and "RPUSH" or "LPUSH", waiting_list(queue), id)
  end
  redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id)
  return true
end
