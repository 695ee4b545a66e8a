-- What a stall leaves in the history of its job. Takes the `call` of stalled/call. Needs:
--- include values
--- include time
--- include queue/history

local heads = {} -- how the lines begin, by how many stalls there are and may be: most jobs have the same

local function head_of(call, stalls, allowed)
  local head = heads[stalls] and heads[stalls][allowed]
  if not head then
    head = iso_time(call.now) .. " stall " .. digits(stalls) .. " of at most " .. digits(allowed) .. ": held by "
    heads[stalls] = heads[stalls] or {}
    heads[stalls][allowed] = head
  end
  return head
end

-- Appends what a stall came to, "back to wait" or the like.
local function record_stall(call, job, stalls, outcome)
  local head = head_of(call, stalls, job.allowed_stalls)
  local worker, started_at, line = job.worker or "a worker without a name", job.started_at, nil
  if started_at then
    local second, hundreds, tens, ones = iso_parts(started_at)
    line = head .. worker .. " since " .. second .. "." .. hundreds .. tens .. ones .. "Z, " .. outcome
  else
    line = head .. worker .. ", " .. outcome
  end
  add_line(job.key, job.policy.lines_kept, line)
end
