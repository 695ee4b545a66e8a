-- How idle workers learn when the next delayed job is due. Needs:
--- include values
--- include queue/due

local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end
