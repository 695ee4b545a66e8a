-- What a stall leaves in the history of its job. Takes the `call` of stalled/call. Needs:
--- include values
--- include time
--- include queue/history
--- include stalled/job

-- Appends what a stall came to, "back to wait" or the like.
local function record_stall(call, job, outcome)
  local since = job.started_at and " since " .. iso_time(job.started_at) or ""
  local text = "stall " .. digits(job.stalls + 1) .. " of at most " .. digits(allowed_stalls(call, job))
    .. ": held by " .. (job.worker or "a worker without a name") .. since .. ", " .. outcome
  add_to_history(job.key, job.opts, call.now, text)
end
