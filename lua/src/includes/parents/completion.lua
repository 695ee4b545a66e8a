-- What a flow parent learns of a child that completed. Needs:
--- include parents/parent
--- include rarely parents/release

-- Gives the parent the return value, and makes it available when this was the last of its
-- children. A parent that is out of reach cannot be told: the job is completed all the same.
-- Returns what is wrong with the parent, if anything is.
local function tell_parent_of_completion(job, child_key, value, timestamp)
  local parent, fault = parent_to_tell(job)
  if not parent then
    return fault
  end
  local dependencies = parent.key .. ":dependencies"
  if redis.call("SREM", dependencies, child_key) == 1 then
    redis.call("HSET", parent.key .. ":processed", child_key, value)
    if redis.call("SCARD", dependencies) == 0 then
      release_parent(parent, parent.queue["waiting-children"], timestamp)
    end
  end
  return nil
end
