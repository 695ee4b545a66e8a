-- How delayed jobs that are due become available. The queue's meta must have been read. Needs:
--- include values
--- include queue/events
--- include queue/line

local PROMOTED_AT_ONCE = 1000

local function promote_due_jobs(queue, timestamp)
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", digits((timestamp + 1) * 4096 - 1),
    "LIMIT", 0, PROMOTED_AT_ONCE)
  for _, id in ipairs(due) do
    local key = queue.prefix .. id
    local priority = number(attempt("HGET", key, "priority")) or 0
    make_available(queue, id, priority, "LPUSH")
    redis.call("ZREM", queue.delayed, id)
    if redis.call("EXISTS", key) == 1 then
      attempt("HSET", key, "delay", 0)
    end
    emit(queue, "waiting", id, "prev", "delayed")
  end
end
