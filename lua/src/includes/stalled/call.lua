-- What one call of moveStalledJobsToWait is to do, and what it has found: the table that the
-- other includes of stalled/ take as `call`. Needs:
--- include values
--- include queue/keys
--- include queue/time

-- A check calls them six times for each job that comes back.
local redis_call, redis_pcall = redis.call, redis.pcall

-- Reads KEYS and ARGV, as the header of the script lists them.
local function read_call()
  local prefix = ARGV[1]:sub(-1) == ":" and ARGV[1] or ARGV[1] .. ":"
  local queue = queue_at(prefix)
  queue.stalled, queue.wait, queue.active, queue.failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  queue.meta, queue.paused, queue.marker = KEYS[6], KEYS[7], KEYS[8]
  local reserved = {} -- keys of the queue that an odd id could name
  for _, key in pairs(queue) do
    reserved[key] = true
  end
  local throttle, sweep, mode = KEYS[5], ARGV[5] or "", ARGV[10] or ""
  local is_report = mode == "report" or mode == "verdicts"
  local record, timestamp = throttle .. ":" .. sweep, time_in_ms(ARGV[3])
  return {
    queue = queue, prefix = prefix, reserved = reserved,
    max_stalled_count = number(ARGV[2]), timestamp = timestamp, now = tonumber(timestamp),
    interval = number(ARGV[4]), sweep = sweep,
    limit = number(ARGV[6]) or math.huge, step = number(ARGV[7]) or 0,
    offset = number(ARGV[8]) or 0, anchor = ARGV[9] or "",
    mode = mode, is_report = is_report, only_id = ARGV[15] or "",
    keep_failed = { age = number(ARGV[11]) and number(ARGV[11]) / 1000 },
    remaining = number(ARGV[12]), -- once ids were rotated: how many are still to be looked at

    throttle = throttle,
    record = record, -- the reply, in case this call is sent twice
    marks = is_report and queue.stalled or record .. ":marks", -- ids that an earlier check has marked
    max_share = number(ARGV[13]), -- of the active jobs, that may be recovered at once
    hold_interval = number(ARGV[14]) or 30000, -- for about how many ms a check is held that would recover more
    hold = throttle .. ":hold", -- the sweep that began to hold, and when
    done = record .. ":done", -- by id, the `ats` of the jobs that this sweep has recovered or failed

    counts = { recovered = 0, failed = 0, marked = 0, dropped = 0 },
    recovered_ids = {}, recovered_since = {}, failed_jobs = {}, oddities = {}, reports = {},
    handled = {}, -- by id, the `ats` of the jobs that this call has recovered or failed
  }
end

local function note(call, id, oddity)
  call.oddities[#call.oddities + 1] = id
  call.oddities[#call.oddities + 1] = oddity
end
