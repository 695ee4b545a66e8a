--[[
Adds jobs to a queue: all of them, or none.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 what `version` of the meta becomes when there is none
      4 1 to look at the types of all keys that may be written, 0 of none: the caller did not long ago
      5 and on: six for each job:
        id, name, data, opts as a JSON object,
        when it is due in ms, or + and in how many ms, or 0 for now,
        priority, 0 for none, or `first`: fetched before all that wait now

Returns how many were added. Those that are there already are not: the call was sent twice.

Cost: O(log N) in the jobs delayed or prioritized, for each job.
--]]
--- include values
--- include queue/keys
--- include rarely queue/types
--- include queue/meta
--- include queue/time
--- include queue/add

local FIRST_JOB, PER_JOB = 5, 6

local prefix, timestamp = ARGV[1], time_in_ms(ARGV[2])
local queue = queue_at(prefix)
local types = ARGV[4] == "1" and types_of(queue, prefix .. "id", "string") or {}
local fault = refusal(queue, types)
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end

local function due_of(when)
  if when:sub(1, 1) == "+" then
    return timestamp + number(when)
  end
  return number(when)
end

local added = 0
for at = FIRST_JOB, #ARGV, PER_JOB do
  local id, name, data, opts, when, priority = unpack(ARGV, at, at + PER_JOB - 1)
  if redis.call("EXISTS", prefix .. id) == 0 then
    local due, is_first = due_of(when), priority == "first"
    priority = is_first and 0 or number(priority)
    redis.call("HSET", prefix .. id, "name", name, "data", data, "opts", opts, "timestamp", timestamp,
      "delay", due > 0 and digits(due - timestamp) or 0, "priority", priority)
    add_to_queue(queue, id, name, priority, due, is_first)
    added = added + 1
  end
end
if added > 0 then
  redis.call("INCRBY", prefix .. "id", added)
  if queue.version == "" then
    redis.call("HSET", queue.meta, "version", ARGV[3])
  end
end
return added
