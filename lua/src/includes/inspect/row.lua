-- A job as the scripts that look at jobs describe it. Writes nothing. Needs:
--- include values
--- include queue/reserved
--- include inspect/waiting

-- The order is that of FIELDS in protocol/job_info.py.
local ROW_FIELDS = { "name", "data", "opts", "timestamp", "delay", "priority", "processedOn", "finishedOn", "pb",
  "ats", "atm", "stc", "failedReason", "returnvalue", "stacktrace", "parentKey", "rjk", "deid", "defa", "progress" }

-- Reads the fields of a job. Returns them, and 1 for a job, 0 without a hash, -1 for a key that
-- is no job.
local function read_row_fields(queue, id)
  local key = queue.prefix .. id
  local fields = is_reserved(id) and {} or redis.pcall("HMGET", key, unpack(ROW_FIELDS))
  if is_reserved(id) or fields.err then
    return {}, -1
  end
  if fields[1] or fields[2] or fields[4] then
    return fields, 1
  end
  return fields, redis.call("EXISTS", key) == 1 and -1 or 0
end

-- One text of all fields, since clients take longer for twenty: how long each is, or -1 for one that
-- is not there, and then all of them.
local function pack_fields(fields)
  local sizes, texts = {}, {}
  for at = 1, #ROW_FIELDS do
    sizes[at], texts[at] = fields[at] and #fields[at] or -1, fields[at] or ""
  end
  return struct.pack(">" .. ("i4"):rep(#ROW_FIELDS), unpack(sizes)) .. table.concat(texts)
end

local WAITING = { wait = true, paused = true, prioritized = true }

-- Describes a job: its id, 1 when there is one (0 without a hash, -1 for what is no job), the TTL of its
-- lock in ms (-2 without), its score where it has one, the size of its data, its fields in one text, and
-- for one that waits for a worker since when, in ms, and 1 if that is known, 0 if it may be later. Data
-- beyond `look.most_data` bytes is left out; `look.now` is the time in ms, and `look.events` how many of
-- them may be looked at.
local function describe_row(queue, id, state, score, fields, there, look)
  local size = #(fields[2] or "")
  if size > look.most_data then
    fields[2] = false
  end
  local waits = {}
  if there == 1 and WAITING[state] then
    local since, is_known = waiting_since(queue, id, fields, look.now, look.events)
    waits = { digits(since), is_known and 1 or 0 }
  end
  return { id, there, redis.call("PTTL", queue.prefix .. id .. ":lock"), score or "", size, pack_fields(fields), waits }
end
