-- The history of a job: lines in its log, which dashboards show under the job. One that ends in
-- " to " and the name of a list says since when the job waits there. Needs:
--- include values
--- include time
--- include queue/lists

-- The name of the list or set in which a job of a priority waits.
local function place_of_waiting(queue, priority)
  return priority > 0 and "prioritized" or waiting_list(queue) == queue.wait and "wait" or "paused"
end

-- Appends a line. As BullMQ does, `kl` of the opts (keepLogs) says how many lines are kept. A log that
-- is no list is left as it is.
local function add_to_history(key, opts, ms, text)
  local log = key .. ":logs"
  local kept_lines = number(opts.kl) or number(opts.keepLogs) or 0
  if attempt("RPUSH", log, iso_time(ms) .. " " .. text) and kept_lines >= 1 then
    attempt("LTRIM", log, digits(-math.floor(kept_lines)), -1)
  end
end
