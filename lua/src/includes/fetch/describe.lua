-- What a worker is told of a job that it gets. Takes the `fetch` of fetch/jobs. Needs:
--- include values

-- The fields of a job, in the order in which the others count on them, or nil for no hash.
local function read_fields(key)
  local fields = attempt("HMGET", key, "name", "data", "ats", "stc", "defa", "opts", "timestamp", "rjk")
  if fields and (fields[5] or fields[8]) then
    fields[9] = redis.call("HGET", key, "pb")
  end
  return fields
end

-- A job as one text, which costs clients much less than ten values do: the lengths of its values, and these.
-- `started` and `duration` are digits.
local function describe(id, token, fields, started, duration)
  local stalls, timestamp = fields[4] and digits(counter(fields[4])) or "0", fields[7]
  if not timestamp or #timestamp ~= 13 or not timestamp:find("^%d+$") then
    timestamp = digits(counter(timestamp))
  end
  local data, name = fields[2] or "", fields[1] or ""
  local line = token .. " " .. started .. " " .. stalls .. " " .. duration .. " " .. timestamp .. " " .. name
  local lengths = string.format("%d %d %d", #id, #data, #line)
  if fields[5] or fields[8] then
    local reason, worker, scheduler = fields[5] or "", fields[9] or "", fields[8] or ""
    return lengths .. string.format(" %d %d %d\n", #reason, #worker, #scheduler)
      .. id .. data .. line .. reason .. worker .. scheduler
  end
  return lengths .. "\n" .. id .. data .. line
end

local SHORTEST_LOCK = 100 -- ms; SHORTEST_LOCK in settings.py, which refuses less: its worker would only renew it

-- How long the lock of a job lasts in ms, as digits, and the policy for jobs of its name, or nil.
local function lock_duration_of(fetch, fields)
  local policy = fetch.policies and fetch.policies[fields[1] or ""]
  local own = fields[6] and fields[6] ~= "{}" and number(object(fields[6]).lockDuration)
  if own and own >= 1 then
    return digits(math.max(math.floor(own), SHORTEST_LOCK)), policy
  end
  local of_name = policy and number(policy.lockDuration)
  return of_name and digits(of_name) or fetch.lock_duration, policy
end
