-- How a new job, whose hash is there, comes into a queue. Needs:
--- include rarely queue/delay
--- include queue/events
--- include queue/line
--- include queue/wake

-- Makes a new job available now, or when it is due in ms (0 for now). One that `is_first` is
-- fetched before all that wait, as BullMQ's `lifo` says; once delayed, it is one among others.
local function add_to_queue(queue, id, name, priority, due, is_first)
  emit_last(queue, "added", id, "name", name)
  if due > 0 then
    delay(queue, id, due)
  else
    make_available(queue, id, priority, is_first and "RPUSH" or "LPUSH")
    wake(queue)
    emit(queue, "waiting", id)
  end
end
