-- What a worker is told of a job that it gets. Takes the `fetch` of fetch/jobs. Needs:
--- include values

local SHORTEST_LOCK = 250 -- ms; less would keep its worker busy with renewing it

-- The fields of a job, in the order in which the others count on them, or nil for no hash.
local function read_fields(queue, id)
  return attempt("HMGET", queue.prefix .. id, "name", "data", "ats", "stc", "defa", "opts", "pb", "timestamp",
    "rjk", "suspect")
end

-- A job as one text, which costs clients much less than ten values do: the lengths of its values, and these.
local function describe(id, token, fields, started, duration)
  local numbers = string.format(" %.0f %.0f %.0f %.0f ", started, counter(fields[4]), duration, counter(fields[8]))
  local data, line = fields[2] or "", token .. numbers .. (fields[1] or "")
  if fields[5] or fields[9] then
    local reason, worker, scheduler = fields[5] or "", fields[7] or "", fields[9] or ""
    return #id .. " " .. #data .. " " .. #line .. " " .. #reason .. " " .. #worker .. " " .. #scheduler .. "\n"
      .. id .. data .. line .. reason .. worker .. scheduler
  end
  return #id .. " " .. #data .. " " .. #line .. "\n" .. id .. data .. line
end

-- How long the lock of a job lasts in ms, and the policy for jobs of its name.
local function lock_duration_of(fetch, fields)
  local opts, policy = object(fields[6]), fetch.policies[fields[1] or ""] or {}
  local own = number(opts.lockDuration)
  return own and own >= 1 and math.max(math.floor(own), SHORTEST_LOCK) or number(policy.lockDuration) or fetch.lock_duration, policy
end
