-- How finished jobs go that are kept no longer. Needs:
--- include values
--- include queue/remove

-- Removes what a finished set holds beyond `keep`, a table as finish/retention makes it. `size` is how many
-- jobs the set holds, or nil where that is not known.
local function prune(queue, finished, keep, timestamp, size)
  local most = 1000 -- jobs that go for one more finished job
  if keep.age then
    local surplus = redis.call("ZRANGEBYSCORE", finished, "-inf", digits(timestamp - keep.age * 1000),
      "LIMIT", 0, most)
    if #surplus > 0 then
      size = nil
      remove_jobs(queue, surplus)
      redis.call("ZREM", finished, unpack(surplus))
    end
  end
  local excess = keep.count and keep.count >= 0 and (size or redis.call("ZCARD", finished)) - keep.count or 0
  if excess > 0 then
    local popped, ids = redis.call("ZPOPMIN", finished, math.min(excess, most)), {}
    for at = 1, #popped, 2 do
      ids[(at + 1) / 2] = popped[at]
    end
    remove_jobs(queue, ids)
  end
end
