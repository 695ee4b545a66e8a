-- The history of a job that stalls: a line in its log, which dashboards show under the job. Takes
-- the `call` of stalled/call. Needs:
--- include values
--- include time
--- include stalled/job

-- Appends what a stall came to, "back to wait" or the like. As BullMQ does, `kl` of the opts
-- (keepLogs) says how many lines are kept. A log that is no list is left as it is.
local function record_stall(call, job, outcome)
  local started_at, log = number(job.started_at), job.key .. ":logs"
  local line = string.format("%s stall %s of at most %s: held by %s%s, %s", iso_time(tonumber(call.timestamp)),
    digits(job.stalls + 1), digits(allowed_stalls(call, job)), job.worker or "a worker without a name",
    started_at and " since " .. iso_time(started_at) or "", outcome)
  local kept_lines = number(job.opts.kl) or number(job.opts.keepLogs) or 0
  if attempt("RPUSH", log, line) and kept_lines >= 1 then
    redis.call("LTRIM", log, digits(-math.floor(kept_lines)), -1)
  end
end
