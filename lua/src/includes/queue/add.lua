-- How a new job, whose hash is there, comes into a queue. Needs:
--- include queue/delay
--- include queue/events
--- include queue/line
--- include queue/wake

-- Makes a new job available now, or when it is due in ms (0 for now).
local function add_to_queue(queue, id, name, priority, due)
  emit_last(queue, "added", id, "name", name)
  if due > 0 then
    delay(queue, id, due)
  else
    make_available(queue, id, priority, "LPUSH")
    wake(queue)
    emit(queue, "waiting", id)
  end
end
