-- What a stall leaves in the history of its job. Takes the `call` of stalled/call. Needs:
--- include values
--- include time
--- include queue/history
--- include stalled/job

local heads = {} -- how the lines begin, by how many stalls there are and may be: most jobs have the same

local function head_of(call, stalls, allowed)
  local by_allowed = heads[stalls] or {}
  heads[stalls] = by_allowed
  local head = by_allowed[allowed]
  if not head then
    head = iso_time(call.now) .. " stall " .. digits(stalls) .. " of at most " .. digits(allowed) .. ": held by "
    by_allowed[allowed] = head
  end
  return head
end

-- Appends what a stall came to, "back to wait" or the like.
local function record_stall(call, job, outcome)
  local started_at = job.started_at
  add_line(job.key, job.policy.lines_kept, head_of(call, job.stalls + 1, job.allowed_stalls)
    .. (job.worker or "a worker without a name") .. (started_at and " since " .. iso_time(started_at) or "")
    .. ", " .. outcome)
end
