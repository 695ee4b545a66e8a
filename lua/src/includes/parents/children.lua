-- Whether the children of a flow parent let it complete. Needs no other include.

-- Why a job may not complete, or nil: children that it has not waited for, or one that failed
-- and forbids it.
local function children_forbid(key, id)
  if redis.call("EXISTS", key .. ":dependencies", key .. ":unsuccessful") == 0 then
    return nil
  elseif redis.call("EXISTS", key .. ":dependencies") == 1 then
    return "Job " .. id .. " has pending dependencies: it cannot complete before its children"
  end
  return "Cannot complete job " .. id .. " because it has at least one failed child"
end
