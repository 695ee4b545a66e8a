-- Built by tools/build-lua from lua/src/commands/describeHistory-1.lua: edit that file, not this one.
--[[
Says what a queue has done lately: how many jobs finished in each minute, and which have stalled. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 time in ms; 0 or none for the server's
      3 for how many minutes  4 how many of the newest events to look at

Returns a list:
      1 the time of the server in ms
      2 how many jobs completed in each minute, this one first  3 how many failed
      4 when the first of the completed and of the failed jobs that are kept finished, "" for none, and whether
        workers count them
      5 the stalls, the newest first: for each the id of its event, that of the job, why the job failed or "", and
        the lines that stalls have left in its log
      6 the id of the oldest event that was looked at, or ""

A minute has the jobs that are kept or those that workers have counted as BullMQ does, whichever are more: both may
lack some. What the user may not read is taken for empty.

Cost: O(1) for each event and minute that is looked at.
--]]

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if value and type(value) == "string" and value:find("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  if number > -2 ^ 31 and number < 2 ^ 31 and number % 1 == 0 then
    return string.format("%d", number) -- which costs half
  end
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    return nil
  end
  value = tonumber(value)
  if value and value > -2 ^ 53 and value < 2 ^ 53 then -- which NaN is not
    return value
  end
  return nil
end

-- The table of a JSON object. A field that is absent is an empty one; for text that is
-- no JSON object the second value is false.
local function object(text)
  if not text or text == "" or text == "{}" then
    return {}, true
  end
  local decoded, value = pcall(cjson.decode, text)
  if decoded and type(value) == "table" and value[1] == nil then
    return value, true
  end
  return {}, false
end

-- The reply of a command, or nil when the command failed.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    return nil
  end
  return reply
end

--- includes/queue/common_keys.lua
-- The keys of a queue that scripts need which run for each message. Each costs something in each call. Needs no
-- other include.

-- Those that all of them need, with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    is_paused = false, concurrency = nil, max_events = "", version = "", -- queue/meta: room for these costs least here
  }
end

--- includes/queue/job_keys.lua
-- The other keys of a queue in which jobs stand, or that say something about them. Needs no other include.

-- Adds these keys to those that are common. What only jobs need that are delayed or have a priority costs the others
-- nothing so.
local function add_job_keys(queue)
  local prefix = queue.prefix
  queue.delayed, queue.prioritized = prefix .. "delayed", prefix .. "prioritized"
  queue.completed, queue.failed, queue.stalled = prefix .. "completed", prefix .. "failed", prefix .. "stalled"
  queue.limiter = prefix .. "limiter"
end

--- includes/queue/keys.lua
-- The keys of a queue, in one table that the other includes take as `queue`; queue/meta adds what the meta says to
-- the same table. Needs:

-- All keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  local queue = common_keys(prefix)
  add_job_keys(queue)
  queue.pc, queue["repeat"] = prefix .. "pc", prefix .. "repeat"
  queue["waiting-children"] = prefix .. "waiting-children"
  queue.untold, queue["untold-jobs"] = prefix .. "stalled-check:untold", prefix .. "stalled-check:untold:jobs"
  return queue
end

--- includes/queue/time.lua
-- The time that a script goes by. Needs:

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and given ~= "0" and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return time[1] .. ("00000" .. time[2]):sub(-6, -4) -- seconds, and microseconds in as many digits as they need
end

--- commands/describeHistory-1.lua

local MINUTE = 60000
local LOG_LINES = 20 -- the last ones of a job's log that are looked at
local LOGS = 200 -- the stalls whose log is looked at
local prefix, minutes, most_events = ARGV[1], number(ARGV[3]), number(ARGV[4])
local queue = queue_at(prefix)
local now = tonumber(time_in_ms(ARGV[2]))
local this_minute = math.floor(now / MINUTE)

-- By minute, what workers have counted as BullMQ does: the head of the list is the minute before prevTS.
local function counted(target)
  local key = prefix .. "metrics:" .. target
  local fields, by_minute = attempt("HMGET", key, "count", "prevTS", "prevCount") or {}, {}
  if not fields[2] then
    return by_minute, 0
  end
  local last = math.floor(counter(fields[2]) / MINUTE)
  by_minute[last] = counter(fields[1]) - counter(fields[3])
  for at, point in ipairs(attempt("LRANGE", key .. ":data", 0, minutes - 1) or {}) do
    by_minute[last - at] = counter(point)
  end
  return by_minute, 1
end

local function finished(target)
  local by_minute, is_counted = counted(target)
  local points = {}
  for at = 1, minutes do
    local minute = this_minute - at + 1
    local kept = attempt("ZCOUNT", queue[target], digits(minute * MINUTE), "(" .. digits((minute + 1) * MINUTE)) or 0
    points[at] = math.max(kept, by_minute[minute] or 0)
  end
  local first = attempt("ZRANGE", queue[target], 0, 0, "WITHSCORES") or {}
  return points, { first[2] or "", is_counted }
end

local function stall_lines(id)
  local lines = {}
  for _, line in ipairs(attempt("LRANGE", prefix .. id .. ":logs", -LOG_LINES, -1) or {}) do
    if line:find("Z stall ", 1, true) then
      lines[#lines + 1] = line
    end
  end
  return lines
end

local function fields_of(entry)
  local fields = {}
  for at = 1, #entry, 2 do
    fields[entry[at]] = entry[at + 1]
  end
  return fields
end

local completed, kept_completed = finished("completed")
local failed, kept_failed = finished("failed")
local events = attempt("XREVRANGE", queue.events, "+", "-", "COUNT", most_events) or {}
local stalls, reasons = {}, {}
for _, event in ipairs(events) do
  local fields = fields_of(event[2])
  local id = fields.jobId
  if id and fields.event == "failed" and (fields.failedReason or ""):sub(1, 11) == "job stalled" then
    reasons[id] = fields.failedReason -- the stall that came to this is the next one, further back
  elseif id and fields.event == "stalled" then
    stalls[#stalls + 1] = { event[1], id, reasons[id] or "", #stalls < LOGS and stall_lines(id) or {} }
    reasons[id] = nil
  end
end
return {
  digits(now), completed, failed, { kept_completed, kept_failed }, stalls, events[1] and events[#events][1] or "",
}
