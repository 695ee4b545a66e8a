--[[
Adds jobs to a queue: all of them, or none.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 what `version` of the meta becomes when there is none
      4 1 to look at the types of all keys that may be written, 0 of none: the caller did not long ago;
        2 when the call may have been made before: then the newest events are looked at as well
      5 and on: six for each job:
        id, name, data, opts as a JSON object,
        when it is due in ms, or + and in how many ms, or 0 for now,
        priority, 0 for none, or `first`: fetched before all that wait now

Returns how many were added. Those that are there already are not: the call was sent twice. Nor are those
that an event tells of: they have run meanwhile, and were not kept.

Cost: O(log N) in the jobs delayed or prioritized, for each job.
--]]
--- include values
--- include queue/common_keys
--- include rarely queue/job_keys
--- include rarely queue/types
--- include queue/meta
--- include queue/time
--- include queue/add
--- include queue/wake
--- include rarely queue/told

local FIRST_JOB, PER_JOB = 5, 6

local prefix, timestamp, looks_at_all = ARGV[1], time_in_ms(ARGV[2]), ARGV[4] ~= "0"
local queue = common_keys(prefix)
if looks_at_all then
  add_job_keys(queue)
end
local refused = refusal(queue, looks_at_all and types_of(queue, prefix .. "id", "string"))
if refused then
  return refused
end

local added, wakes, added_before = 0, false, ARGV[4] == "2" and ids_told_of(queue, "added")
for at = FIRST_JOB, #ARGV, PER_JOB do
  local id, name, data, opts, when, priority = unpack(ARGV, at, at + PER_JOB - 1)
  local key = prefix .. id
  -- One look tells that the job is not there, and that no resume has left jobs in `paused`.
  local is_new = redis.call("EXISTS", key, queue.paused) == 0
  if is_new and not queue.is_paused then
    queue.waiting_list = queue.wait
  end
  if (is_new or redis.call("EXISTS", key) == 0) and not (added_before and added_before[id]) then
    local due, wait, is_first = 0, 0, priority == "first"
    if when ~= "0" then
      due = when:sub(1, 1) == "+" and timestamp + number(when) or number(when)
      wait = due > 0 and digits(due - timestamp) or 0
    end
    redis.call("HSET", key, "name", name, "data", data, "opts", opts, "timestamp", timestamp, "delay", wait,
      "priority", is_first and "0" or priority)
    if not queue.delayed and (when ~= "0" or priority ~= "0") then
      add_job_keys(queue)
    end
    local level = (is_first or priority == "0") and 0 or tonumber(priority)
    local is_available = add_to_queue(queue, id, name, level, due, is_first)
    wakes, added = wakes or is_available, added + 1
  end
end
if wakes then
  wake(queue)
end
if added > 0 then
  redis.pcall("INCRBY", prefix .. "id", added) -- when it holds no number, that is no matter of these jobs
  if queue.version == "" then
    redis.call("HSET", queue.meta, "version", ARGV[3])
  end
end
return added
