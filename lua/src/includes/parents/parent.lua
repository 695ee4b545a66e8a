-- The flow parent of a job, which may live in another queue. Needs:
--- include values
--- include rarely types
--- include queue/keys
--- include rarely queue/types

-- Where a job's flow parent lives, or nil for a job without one: its key, id and queue. A job
-- is a table of `parent`, its decoded field, and `parent_key`.
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

-- The parent of a job, which is to be told something; nil without one, or with why it cannot be told.
local function parent_to_tell(job)
  local parent = parent_of(job)
  local fault = parent and unfit_parent(parent)
  if fault then
    return nil, "its parent was not told: " .. fault
  end
  return parent, nil
end
