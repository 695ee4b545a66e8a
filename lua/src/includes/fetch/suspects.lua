-- Which jobs may run now that have stalled before, the suspects: one of them may kill its worker.
-- Takes the `fetch` of fetch/jobs. Needs:
--- include values

-- The field `suspect` of a job says "beside:<ats>" while it runs beside other suspects. If it
-- stalls then, nobody knows which of them it was: none is charged, the field becomes "alone",
-- and each runs alone the next time.
local MUST_RUN_ALONE = "alone"

local function is_suspect(fields)
  return counter(fields[4]) > 0
end

-- Whether a job may be fetched now; `skipped_together` counts those that may run beside others.
local function may_run(fetch, fields)
  if not is_suspect(fields) then
    return true
  end
  local must_run_alone = fields[10] == MUST_RUN_ALONE
  if fetch.suspects_wanted > 0 and not (fetch.is_together and must_run_alone) then
    fetch.suspects_wanted = fetch.suspects_wanted - 1
    return true
  end
  fetch.skipped_together = fetch.skipped_together + (must_run_alone and 0 or 1)
  return false
end

-- Records in whose company a job runs that was fetched.
local function note_company(fetch, key, fields, started)
  if fetch.is_together and is_suspect(fields) then
    redis.call("HSET", key, "suspect", "beside:" .. digits(started))
  elseif fields[10] and fields[10] ~= MUST_RUN_ALONE then
    redis.call("HDEL", key, "suspect")
  end
end
