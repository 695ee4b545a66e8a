-- The jobs of an earlier call whose reply was lost. Takes the `fetch` of fetch/jobs. Needs:
--- include values
--- include fetch/describe

local NEWEST_OF_ACTIVE = 1000 -- ids among which lost jobs are searched

-- Adds the jobs whose locks an earlier call has set, in the order in which it fetched them.
local function find_jobs_of_call(queue, fetch, lost_id)
  local newest = redis.call("LRANGE", queue.active, 0, NEWEST_OF_ACTIVE - 1)
  for at = #newest, 1, -1 do
    local id = newest[at]
    local key = queue.prefix .. id
    local token = attempt("GET", key .. ":lock")
    local fields = token and token:sub(1, #lost_id + 1) == lost_id .. ":" and read_fields(id, key)
    if fields then
      local duration = lock_duration_of(fetch, fields)
      fetch.jobs[#fetch.jobs + 1] = describe(id, token, fields, digits(counter(fields[3])), duration)
    end
  end
end
