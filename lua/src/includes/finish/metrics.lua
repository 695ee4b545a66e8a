-- BullMQ's own count of failed jobs, where workers count. Needs:
--- include values

-- Counts a job that no worker has finished, where workers count: the next of them makes the point.
local function add_to_metrics(queue, target)
  local key = queue.prefix .. "metrics:" .. target
  local count = attempt("HGET", key, "count")
  if count then
    redis.call("HSET", key, "count", digits(counter(count) + 1))
  end
end
