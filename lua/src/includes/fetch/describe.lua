-- What a worker is told of a job that it gets. Takes the `fetch` of fetch/jobs. Needs:
--- include values
--- include queue/reserved

-- What the hash of a job says, or nil for none. It is a list, since a table with names costs too much for each job:
-- 1 name, 2 data, 3 ats, 4 stc, 5 defa, 6 opts, 7 timestamp, 8 rjk, and 9 pb where 5 or 8 is there.
local function read_fields(id, key)
  local fields = not is_reserved(id)
    and attempt("HMGET", key, "name", "data", "ats", "stc", "defa", "opts", "timestamp", "rjk")
  if not fields or not fields[1] and redis.call("EXISTS", key) == 0 then
    return nil
  end
  if fields[5] or fields[8] then
    fields[9] = redis.call("HGET", key, "pb")
  end
  return fields
end

-- A job as one text, which costs clients much less than ten values do: the lengths of its values, and these.
-- `started` and `duration` are digits.
local function describe(id, token, fields, started, duration)
  local name, data, stalls, timestamp = fields[1] or "", fields[2] or "", fields[4], fields[7]
  stalls = stalls and digits(counter(stalls)) or "0"
  if not timestamp or #timestamp ~= 13 or not timestamp:find("^%d+$") then
    timestamp = digits(counter(timestamp))
  end
  local line = token .. " " .. started .. " " .. stalls .. " " .. duration .. " " .. timestamp .. " " .. name
  local lengths = string.format("%d %d %d", #id, #data, #line)
  if fields[5] or fields[8] then
    local reason, scheduler, worker = fields[5] or "", fields[8] or "", fields[9] or ""
    return lengths .. string.format(" %d %d %d\n", #reason, #worker, #scheduler)
      .. id .. data .. line .. reason .. worker .. scheduler
  end
  return lengths .. "\n" .. id .. data .. line
end

-- How long the lock of a job lasts in ms, as digits, and the policy for jobs of its name, or nil.
local function lock_duration_of(fetch, fields)
  local name, opts, shortest = fields[1] or "", fields[6], 100 -- SHORTEST_LOCK in settings.py, which refuses less
  local policy = fetch.policies and fetch.policies[name]
  local own = opts and opts ~= "{}" and number(object(opts).lockDuration)
  if own and own >= 1 then
    return digits(math.max(math.floor(own), shortest)), policy
  end
  local of_name = policy and number(policy.lockDuration)
  return of_name and digits(of_name) or fetch.lock_duration, policy
end
