-- Whether a job stays among the finished ones. Needs:
--- include queue/remove
--- include finish/prune

-- Puts a job among the finished ones, or removes it when none are kept.
local function retain(queue, finished, id, keep, timestamp)
  if keep.count == 0 then
    redis.call("ZREM", finished, id)
    remove_jobs(queue, { id })
  else
    redis.call("ZADD", finished, timestamp, id)
    prune(queue, finished, keep, tonumber(timestamp))
  end
end
