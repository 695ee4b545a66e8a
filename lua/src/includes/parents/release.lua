-- How a flow parent that has waited for its children becomes available. Needs:
--- include values
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include rarely queue/line
--- include rarely queue/delay

-- Moves a parent out of the set in which it waits to the front of its queue; a delay of
-- its own comes first.
local function release_parent(parent, from, timestamp)
  local queue = parent.queue
  if redis.call("EXISTS", parent.key) == 0 or redis.call("ZREM", from, parent.id) == 0 then
    return
  end
  read_meta(queue)
  local attributes = redis.call("HMGET", parent.key, "priority", "delay")
  local own_delay = number(attributes[2]) or 0
  if own_delay > 0 then
    delay(queue, parent.id, tonumber(timestamp) + own_delay)
  else
    make_available(queue, parent.id, number(attributes[1]) or 0, "RPUSH")
    wake(queue)
    emit(queue, "waiting", parent.id, "prev", "waiting-children")
  end
end
