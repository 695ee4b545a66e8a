-- How ids that were skipped go to where the next call finds others first. Needs:
--- include queue/line

-- Puts them behind all others, or all others of their priority.
local function put_last(queue, skipped)
  for _, entry in ipairs(skipped) do
    local id, score = unpack(entry)
    if score then
      redis.call("ZADD", queue.prioritized, priority_score(queue, math.floor(tonumber(score) / 2 ^ 32)), id)
    else
      redis.call("LPUSH", queue.wait, id)
    end
  end
end
