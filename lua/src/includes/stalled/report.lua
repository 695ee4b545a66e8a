-- Says what a check would do, and writes nothing. Takes the `call` of stalled/call. Needs:
--- include values
--- include stalled/cursor
--- include stalled/lookup
--- include stalled/verdict

local MOST_DATA = 65536 -- bytes of the data of a job that a report returns
local NOT_KNOWN = -1

-- In the order of VERDICTS in protocol/active_jobs.py.
local CODES = { healthy = 0, mark = 1, requeue = 2, fail = 3, drop = 4, copy = 5, odd = 6 }

-- Calls `use(place, verdict, later, job)` for the ids at the places without a lock: `later` is the
-- verdict once a check has marked the job.
local function foresee(call, ids, places, use)
  judge(call, ids, places, function(place, id, verdict, job)
    if verdict == "requeue" or verdict == "fail" then
      call.handled[id] = job.attempts_started
    end
    use(place, CODES[verdict], verdict == "mark" and CODES[verdict_when_stalled(call, job)] or CODES[verdict], job)
  end)
end

-- Adds a text about those of these ids that have no lock.
local function report_verdicts(call, ids)
  local parts = {}
  foresee(call, ids, lockless_places(call, ids), function(place, verdict, later)
    local at = #parts
    parts[at + 1], parts[at + 2] = struct.pack(">I4BB", #ids[place], verdict, later), ids[place]
  end)
  call.reports[#call.reports + 1] = table.concat(parts)
  return 0
end

-- The places of the ids without a lock, oldest first, and for all the TTL of their locks.
local function lockless_places_and_ttls(call, ids)
  local places, ttls = {}, {}
  for place = #ids, 1, -1 do
    ttls[place] = redis.call("PTTL", call.prefix .. ids[place] .. ":lock")
    if ttls[place] == -2 then
      places[#places + 1] = place
    end
  end
  return places, ttls
end

-- The same fields of a job that was read before it was judged, and of one that was not.
local function fields_of(call, id, job)
  if job and job.key then
    local fields = redis.call("HMGET", job.key, "name", "data")
    return fields[1], fields[2], job.worker, job.stalls, job.attempts, job.started_at
  end
  local fields = attempt("HMGET", call.prefix .. id, "name", "data", "pb", "stc", "atm", "processedOn") or {}
  return fields[1], fields[2], fields[3], counter(fields[4]), counter(fields[5]), fields[6]
end

-- Adds a text about all these ids, since one for each would cost clients far more. The order is
-- that of JOB in protocol/active_jobs.py.
local function report_jobs(call, ids)
  local timestamp, parts, verdicts, laters, jobs = tonumber(call.timestamp), {}, {}, {}, {}
  local places, ttls = lockless_places_and_ttls(call, ids)
  foresee(call, ids, places, function(place, verdict, later, job)
    verdicts[place], laters[place], jobs[place] = verdict, later, job
  end)
  local marked = membership("SMISMEMBER", call.marks, ids)
  for place = #ids, 1, -1 do
    local id = ids[place]
    local name, data, worker, stalls, attempts, started_at = fields_of(call, id, jobs[place])
    name, data, worker, started_at = name or "", data or "", worker or "", number(started_at)
    local is_large = #data > MOST_DATA
    data = is_large and "" or data
    local at = #parts
    parts[at + 1] = struct.pack(">I4I4I4I4i8i8i8i8i8BBBB", #id, #name, #worker, #data, math.min(ttls[place], 2 ^ 53),
      stalls, attempts, started_at and math.max(started_at, NOT_KNOWN) or NOT_KNOWN,
      started_at and math.max(timestamp - started_at, 0) or NOT_KNOWN, marked[place] or 0,
      verdicts[place] or CODES.healthy, laters[place] or CODES.healthy, is_large and 1 or 0)
    parts[at + 2], parts[at + 3], parts[at + 4], parts[at + 5] = id, name, worker, data
  end
  call.reports[#call.reports + 1] = table.concat(parts)
  return 0
end

-- Makes the report that the call asks for. Returns true when there are no ids beyond it.
local function report(call)
  if call.only_id ~= "" then
    report_jobs(call, redis.call("LPOS", call.queue.active, call.only_id) and { call.only_id } or {})
    return true
  end
  resume(call)
  return walk(call, call.mode == "report" and report_jobs or report_verdicts)
end
