-- What a flow parent learns of a failed child that is tried again. Needs:
--- include parents/parent

-- Lets the parent wait for the child once more, if the failure had been noted with it. A parent
-- that is out of reach cannot be told: the job is tried again all the same.
local function tell_parent_of_retry(job, child_key)
  local parent = parent_to_tell(job)
  if not parent or redis.call("EXISTS", parent.key) == 0 then
    return
  end
  local was_noted = redis.call("ZREM", parent.key .. ":unsuccessful", child_key)
    + redis.call("HDEL", parent.key .. ":failed", child_key) > 0
  if was_noted then
    redis.call("SADD", parent.key .. ":dependencies", child_key)
  end
end
