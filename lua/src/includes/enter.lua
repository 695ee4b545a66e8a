-- Lets a new job, whose hash is there, into the queue: now, or when it is due in ms (0 for now).
local function enter(queue, id, name, priority, due)
  emit_last(queue, "added", id, "name", name)
  if due > 0 then
    delay(queue, id, due)
  else
    make_available(queue, id, priority, "LPUSH")
    wake(queue)
    emit(queue, "waiting", id)
  end
end
