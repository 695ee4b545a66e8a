-- What is read of a job before it is judged. Takes the `call` of stalled/call. Needs:
--- include values
--- include queue/reserved
--- include stalled/call

local FIELDS = { "opts", "stc", "atm", "ats", "priority", "parent", "suspect", "actorMaxStalledCount", "pb",
  "processedOn" }
local FIELDS_OF_REPORT = { unpack(FIELDS) }
FIELDS_OF_REPORT[#FIELDS + 1], FIELDS_OF_REPORT[#FIELDS + 2] = "name", "data"
local NO_PARENT = {}
local last_opts = {} -- decoded, since most jobs have the same

-- Decodes opts; the second value is false when they are no JSON object.
local function decode_opts(text)
  if text ~= last_opts.text then
    last_opts.text, last_opts.value, last_opts.fine = text, object(text)
  end
  return last_opts.value, last_opts.fine
end

-- The job with an id, or nil without a hash. `odd` says why a job cannot be judged.
local function read_job(call, id)
  local key = call.prefix .. id
  if call.reserved[key] or is_reserved(id) then
    return { odd = "its id is the name of a key of the queue; it stays in active" }
  end
  local fields = redis.pcall("HMGET", key, unpack(call.mode == "report" and FIELDS_OF_REPORT or FIELDS))
  if fields.err then
    return { odd = key .. " is no hash; it stays in active" }
  end
  if not fields[1] and redis.call("EXISTS", key) == 0 then
    return nil
  end
  local opts, opts_fine = decode_opts(fields[1])
  local parent, parent_fine = NO_PARENT, true
  if fields[6] then
    parent, parent_fine = object(fields[6])
  end
  if not opts_fine then
    note(call, id, "its opts are no JSON object and count as empty")
  end
  if not parent_fine then
    note(call, id, "its parent is no JSON object and counts as empty")
  end
  return {
    key = key, opts = opts, parent = parent, stalls = counter(fields[2]), attempts = counter(fields[3]),
    attempts_started = fields[4] or "", priority = number(fields[5]) or 0,
    stalled_beside = fields[7] == "beside:" .. (fields[4] or ""), max_stalled_count = fields[8] and number(fields[8]),
    worker = fields[9], started_at = number(fields[10]),
    name = fields[11], data = fields[12], -- in a report
  }
end

-- Adds what matters for few jobs only.
local function read_more(job)
  local fields = redis.call("HMGET", job.key, "name", "deid", "parentKey")
  job.name, job.deduplication_id, job.parent_key = fields[1], fields[2], fields[3]
  return job
end

-- How many stalls a job survives.
local function allowed_stalls(call, job)
  return number(job.opts.maxStalledCount) or job.max_stalled_count or call.max_stalled_count
end

local function has_live_scheduler(call, job)
  local scheduler = redis.call("HGET", job.key, "rjk")
  if not scheduler then
    return false
  end
  return redis.call("EXISTS", call.prefix .. "repeat:" .. scheduler) == 1
    or redis.call("ZSCORE", call.queue["repeat"], scheduler) and true
end
