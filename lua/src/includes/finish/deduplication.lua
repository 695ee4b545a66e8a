-- The key that keeps a second job of a deduplication id away until the first has ended. Needs:
--- include values

-- A deduplication key with a TTL ends by itself; one that names another job is that job's.
local function release_deduplication(queue, deduplication_id, id)
  local key = queue.prefix .. "de:" .. deduplication_id
  if attempt("GET", key) == id and redis.call("PTTL", key) == -1 then
    redis.call("DEL", key)
  end
end
