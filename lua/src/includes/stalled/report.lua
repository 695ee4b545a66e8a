-- Says what a check would do, and writes nothing. Takes the `call` of stalled/call. Needs:
--- include values
--- include stalled/lookup
--- include stalled/verdict

local MOST_DATA = 65536 -- bytes of the data of a job that a report returns

-- One row of a report. Its numbers and words share a line, which costs clients less than nine
-- values do; the data comes last, and only if it is not large.
local function describe_active(call, id, verdict, later, is_marked)
  local fields = attempt("HMGET", call.prefix .. id, "name", "pb", "stc", "atm", "processedOn", "data") or {}
  local data, started_at = fields[6] or "", number(fields[5])
  local line = table.concat({
    redis.call("PTTL", call.prefix .. id .. ":lock"), is_marked and 1 or 0, digits(counter(fields[3])),
    digits(counter(fields[4])), verdict, later, started_at and digits(started_at) or "",
    started_at and digits(math.max(tonumber(call.timestamp) - started_at, 0)) or "",
  }, " ")
  return { id, fields[1] or "", fields[2] or "", line, #data <= MOST_DATA and data }
end

-- Adds a row for each id to the verdicts of the call. Returns 0: none has left `active`.
local function report_verdicts(call, ids)
  local found = {}
  judge(call, ids, function(place, id, verdict, job)
    if verdict == "requeue" or verdict == "fail" then
      call.handled[id] = job.attempts_started
    end
    found[place] = { verdict, verdict == "mark" and verdict_when_stalled(call, job) or verdict }
  end)
  local marked = membership("SMISMEMBER", call.marks, ids)
  for place = #ids, 1, -1 do
    local verdicts = found[place] or { "healthy", "healthy" }
    call.verdicts[#call.verdicts + 1] =
      describe_active(call, ids[place], verdicts[1], verdicts[2], marked[place] == 1)
  end
  return 0
end
