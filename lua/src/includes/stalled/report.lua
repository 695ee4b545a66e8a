-- Says what a check would do, and writes nothing. Takes the `call` of stalled/call. Needs:
--- include values
--- include stalled/job
--- include stalled/verdict

local MOST_DATA = 65536 -- bytes of the data of a job that a report returns

-- When a worker fetched a job, and its data, or false when that is large.
local function start_and_data(call, id)
  local fields = attempt("HMGET", call.prefix .. id, "processedOn", "data") or {}
  local data = fields[2] or ""
  return fields[1] or "", #data <= MOST_DATA and data
end

-- Adds a row for each id to the verdicts of the call. Returns 0: none has left `active`.
local function report_verdicts(call, ids)
  local found = {}
  judge(call, ids, function(place, id, verdict, job, is_marked)
    if verdict == "requeue" or verdict == "fail" then
      call.handled[id] = job.attempts_started
    end
    found[place] = { verdict = verdict, job = job, is_marked = is_marked }
  end)
  for place = #ids, 1, -1 do
    local id = ids[place]
    local this = found[place] or { verdict = "healthy", job = read_job(call, id) }
    local job = this.job and this.job.key and read_more(this.job) or {}
    local started_at, data = start_and_data(call, id)
    call.verdicts[#call.verdicts + 1] = {
      id, job.name or "", job.worker or "", redis.call("PTTL", call.prefix .. id .. ":lock"),
      (this.is_marked or redis.call("SISMEMBER", call.marks, id) == 1) and 1 or 0, digits(job.stalls or 0),
      digits(job.attempts or 0), this.verdict,
      this.verdict == "mark" and verdict_when_stalled(call, job) or this.verdict, started_at, data,
    }
  end
  return 0
end
