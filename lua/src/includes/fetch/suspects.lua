-- Which jobs may run now that have stalled before, the suspects: one of them may kill its worker.
-- Takes the `fetch` of fetch/jobs. Needs no other include.

-- The field `suspect` of a job says "beside:<ats>" while it runs beside other suspects. If it
-- stalls then, nobody knows which of them it was: none is charged, the field becomes "alone",
-- and each runs alone the next time.
local MUST_RUN_ALONE = "alone"

-- Whether a suspect may be fetched now, which then records in whose company it runs. `started` is what its `ats`
-- becomes; `skipped_together` counts those that may run beside others.
local function may_run(fetch, key, started)
  local suspect = redis.call("HGET", key, "suspect")
  local must_run_alone = suspect == MUST_RUN_ALONE
  if fetch.suspects_wanted < 1 or fetch.is_together and must_run_alone then
    fetch.skipped_together = fetch.skipped_together + (must_run_alone and 0 or 1)
    return false
  end
  fetch.suspects_wanted = fetch.suspects_wanted - 1
  if fetch.is_together then
    redis.call("HSET", key, "suspect", "beside:" .. started)
  elseif suspect and not must_run_alone then
    redis.call("HDEL", key, "suspect")
  end
  return true
end
