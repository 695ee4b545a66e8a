-- What a flow parent learns of a child that failed. Needs:
--- include parents/parent
--- include rarely parents/release

local function fail_parent(parent, child_key, timestamp)
  local queue = parent.queue
  redis.call("ZADD", parent.key .. ":unsuccessful", timestamp, child_key)
  if redis.call("EXISTS", parent.key) == 0 then
    return
  end
  local from = redis.call("ZSCORE", queue["waiting-children"], parent.id) and queue["waiting-children"]
    or redis.call("ZSCORE", queue.delayed, parent.id) and queue.delayed
  if from then
    redis.call("HSET", parent.key, "defa", "child " .. child_key .. " failed", "delay", 0)
    release_parent(parent, from, timestamp)
  end
end

-- Tells the parent of a failed child, as the first of these flags says: fpof fails the
-- parent, cpof lets it go on at once, idof and rdof no longer wait for the child. Returns
-- what is wrong with the parent, if anything is.
local function tell_parent_of_failure(job, child_key, reason, timestamp)
  local parent, fault = parent_to_tell(job)
  if not parent then
    return fault
  end
  local flag
  for _, flags in ipairs({ job.parent, job.opts }) do
    for _, name in ipairs({ "fpof", "cpof", "idof", "rdof" }) do
      flag = flag or (flags[name] and flags[name] ~= cjson.null and name)
    end
  end
  local dependencies = parent.key .. ":dependencies"
  if not flag or redis.call("SREM", dependencies, child_key) == 0 then
    return nil
  end
  if flag == "fpof" then
    fail_parent(parent, child_key, timestamp)
    return nil
  end
  if flag ~= "rdof" then
    redis.call("HSET", parent.key .. ":failed", child_key, reason)
  end
  if flag == "cpof" or redis.call("SCARD", dependencies) == 0 then
    release_parent(parent, parent.queue["waiting-children"], timestamp)
  end
  return nil
end
