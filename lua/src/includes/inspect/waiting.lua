-- Since when a job waits for a worker. Writes nothing. Needs:
--- include values
--- include time

local EVENTS_AT_ONCE = 100

-- When the last line of its log was written, if it tells that the job came to wait; else 0.
local function noted_at(key)
  local line = (attempt("LRANGE", key .. ":logs", -1, -1) or {})[1] or ""
  local time, verb = line:match("^(%d%d%d%d%-%d%d%-%d%dT[%d:.]+Z) (%l+).* to %l+$")
  local is_ours = verb == "stall" or verb == "retried" or verb == "promoted"
  return is_ours and ms_of(time) or 0
end

-- When the newest event tells that the job came to wait, of so many events and none before a time; else nil.
local function told_at(queue, id, earliest, most)
  local last = "+"
  for _ = 1, most, EVENTS_AT_ONCE do
    local events = attempt("XREVRANGE", queue.events, last, digits(earliest), "COUNT", EVENTS_AT_ONCE) or {}
    for _, event in ipairs(events) do
      local fields = event[2]
      if fields[2] == "waiting" and fields[4] == id then
        return number(event[1]:match("^%d+"))
      end
    end
    if #events < EVENTS_AT_ONCE then
      return nil
    end
    last = "(" .. events[#events][1]
  end
end

-- Since when a job with these fields (see inspect/row) waits, in ms, and whether that is known. If not, it is a
-- moment before which it did not. It is known of jobs that nobody has fetched yet, and of those that a check or a
-- person has brought back. Of others an event may tell: `most_events` says how many to look at.
local function waiting_since(queue, id, fields, now, most_events)
  local key = queue.prefix .. id
  local added, own_delay = number(fields[4]) or 0, 0
  if (fields[3] or ""):find('"delay"', 1, true) then
    own_delay = number(object(fields[3]).delay) or 0
  end
  local is_due = added + own_delay <= now -- else a person has promoted it
  local due = is_due and added + own_delay or added
  local earliest = math.max(added, number(fields[7]) or 0, number(fields[8]) or 0)
  local noted = noted_at(key)
  if noted > 0 and noted >= earliest then
    return noted, true
  end
  local starts = counter(fields[10]) + counter(fields[11]) + counter(fields[12])
  local is_new = is_due and earliest == added and starts == 0
    and redis.call("EXISTS", key .. ":processed", key .. ":failed", key .. ":unsuccessful") == 0
  if is_new then
    return due, true
  end
  local told = most_events > 0 and told_at(queue, id, earliest, most_events)
  return told or math.max(earliest, due), told and true or false
end
