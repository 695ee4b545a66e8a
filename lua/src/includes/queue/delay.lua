-- How a job comes to wait for a time. Needs:
--- include values
--- include queue/events
--- include queue/wake

-- Delays a job. Jobs that are due in the same ms keep their order, up to 4,096 of them.
local function delay(queue, id, due)
  local lowest, highest = due * 4096, due * 4096 + 4095
  local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  local score = last and math.min(tonumber(last) + 1, highest) or lowest
  redis.call("ZADD", queue.delayed, digits(score), id)
  emit(queue, "delayed", id, "delay", digits(due))
  mark_next_due(queue)
end
