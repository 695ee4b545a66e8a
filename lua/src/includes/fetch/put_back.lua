-- How ids that were skipped go back to where they were. Needs no other include.

local function put_back(queue, skipped)
  for at = #skipped, 1, -1 do
    local id, score = unpack(skipped[at])
    if score then
      redis.call("ZADD", queue.prioritized, score, id)
    else
      redis.call("RPUSH", queue.wait, id)
    end
  end
end
