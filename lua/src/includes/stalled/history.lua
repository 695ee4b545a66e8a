-- What a stall leaves in the history of its job. Takes the `call` of stalled/call. Needs:
--- include values
--- include time
--- include queue/history
--- include stalled/job

-- Appends what a stall came to, "back to wait" or the like.
local function record_stall(call, job, outcome)
  local started_at = number(job.started_at)
  local text = string.format("stall %s of at most %s: held by %s%s, %s", digits(job.stalls + 1),
    digits(allowed_stalls(call, job)), job.worker or "a worker without a name",
    started_at and " since " .. iso_time(started_at) or "", outcome)
  add_to_history(job.key, job.opts, tonumber(call.timestamp), text)
end
