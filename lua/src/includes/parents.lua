-- Where a job's flow parent lives, or nil for a job without one: its key, id and queue.
local function parent_of(job)
  local data = job.parent
  local key, id, base = job.parent_key, data.id, data.queueKey
  if type(id) == "number" then
    id = digits(id)
  end
  if type(id) == "string" and type(base) == "string" then
    key = key or (base .. ":" .. id)
  elseif key then
    base, id = key:match("^(.*):(.-)$")
  end
  if not key or not base then
    return nil
  end
  return { key = key, id = id, queue = queue_at(base .. ":") }
end

-- What is wrong with the keys of a parent, or nil. They may be out of reach: on another
-- node of a cluster, or for an ACL user that may not touch them.
local function unfit_parent(parent)
  return mistyped(types_of(parent.queue, parent.key, "hash", parent.key .. ":dependencies", "set",
    parent.key .. ":processed", "hash", parent.key .. ":failed", "hash", parent.key .. ":unsuccessful", "zset"))
end

-- Moves a parent out of the set in which it waits to the front of its line; a delay of
-- its own comes first.
local function release_parent(parent, from, timestamp)
  local queue = parent.queue
  if redis.call("EXISTS", parent.key) == 0 or redis.call("ZREM", from, parent.id) == 0 then
    return
  end
  read_meta(queue)
  local attributes = redis.call("HMGET", parent.key, "priority", "delay")
  local own_delay = number(attributes[2]) or 0
  if own_delay > 0 then
    delay(queue, parent.id, tonumber(timestamp) + own_delay)
  else
    make_available(queue, parent.id, number(attributes[1]) or 0, "RPUSH")
    wake(queue)
    emit(queue, "waiting", parent.id, "prev", "waiting-children")
  end
end

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
  local parent = parent_of(job)
  if not parent then
    return nil
  end
  local fault = unfit_parent(parent)
  if fault then
    return "its parent was not told: " .. fault
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
