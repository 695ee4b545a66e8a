-- The history of a job: lines in its log, which dashboards show under the job. One that ends in
-- " to " and the name of a list says since when the job waits there. Needs:
--- include values
--- include time
--- include queue/lists

-- The name of the list or set in which a job of a priority waits.
local function place_of_waiting(queue, priority)
  return priority > 0 and "prioritized" or waiting_list(queue) == queue.wait and "wait" or "paused"
end

-- How many lines the opts of a job keep (keepLogs, as BullMQ has it); 0 for all.
local function lines_kept(opts)
  return number(opts.kl) or number(opts.keepLogs) or 0
end

-- Appends a line. A log that is no list is left as it is.
local function add_line(key, kept, line)
  local log = key .. ":logs"
  local length = redis.pcall("RPUSH", log, line)
  if kept >= 1 and type(length) == "number" then
    attempt("LTRIM", log, digits(-math.floor(kept)), -1) -- a right that not every user has
  end
end

local function add_to_history(key, opts, ms, text)
  add_line(key, lines_kept(opts), iso_time(ms) .. " " .. text)
end
