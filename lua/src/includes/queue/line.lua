-- How a job comes to wait for a worker: in `wait`, in `paused`, or in `prioritized`. The
-- queue's meta must have been read. Needs:
--- include values
--- include queue/lists

-- Jobs of one priority are fetched in the order in which they came.
local function priority_score(queue, priority)
  local key = queue.prefix .. "pc"
  local count = counter(redis.call("GET", key)) + 1
  redis.call("SET", key, digits(count))
  return digits(priority * 2 ^ 32 + count % 2 ^ 32)
end

-- Makes a job available. With LPUSH it is fetched after those in the list, with RPUSH before them.
local function make_available(queue, id, priority, push)
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, priority_score(queue, priority), id)
  else
    redis.call(push, waiting_list(queue), id)
  end
end
