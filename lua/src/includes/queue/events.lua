-- The stream of events, which is kept near its greatest length. A script that emits many
-- events trims it once, before them. Needs no other include; the queue's meta must have been read.

local function trim_events(queue)
  if not queue.is_trimmed then
    redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
    queue.is_trimmed = true
  end
end

local function emit(queue, event, id, ...)
  redis.call("XADD", queue.events, "*", "event", event, "jobId", id, ...)
end
