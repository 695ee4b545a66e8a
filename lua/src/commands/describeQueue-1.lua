--[[
Says how a queue is. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 time in ms; 0 or none for the server's

Returns a list:
      1 whether the queue exists, 1 or 0  2 the time of the server in ms
      3 paused, concurrency, max, duration and version of its meta
      4 numbers of jobs: wait, paused, active, delayed, prioritized, waiting-children, completed, failed
      5 TTL of the rate limit's key in ms (-2 without), and what it holds
      6 TTL of the throttle of the checks, what it holds, and when a check was made that took none, or ""
      7 how many jobs are marked
      8 the jobs at the front of wait, paused and prioritized: the state, and the job as listJobs describes it
      9 the oldest in active  10 when the next delayed job is due
      11 the workers of EchoMQBroker that are registered

Cost: O(N) in those workers, else O(1).
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/due
--- include queue/meta
--- include queue/time
--- include inspect/page
--- include inspect/row

local STATES = { "wait", "paused", "active", "delayed", "prioritized", "waiting-children", "completed", "failed" }
local MOST_DATA, MOST_EVENTS = 4096, 200 -- bytes of the data of a job, and events, that are worth while here
local prefix = ARGV[1]
local queue = queue_at(prefix)
local look = { most_data = MOST_DATA, events = MOST_EVENTS }

-- The TTL of a key, and what it holds.
local function timed(key)
  return { redis.call("PTTL", key), attempt("GET", key) or "" }
end

-- The jobs that come next in some states: the state and the job each.
local function first_of(...)
  local rows = {}
  for _, state in ipairs({ ... }) do
    local ids, scores = ids_of(queue, state, 0, 1, false)
    if ids[1] then
      local fields, there = read_row_fields(queue, ids[1])
      rows[#rows + 1] = { state, describe_row(queue, ids[1], state, scores[ids[1]], fields, there, look) }
    end
  end
  return rows
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
look.now = tonumber(time_in_ms(ARGV[2]))
local counts, exists = {}, redis.call("EXISTS", queue.meta, queue["repeat"])
for at, state in ipairs(STATES) do
  counts[at] = count_of(queue, state)
  exists = exists + counts[at]
end
local throttle = timed(prefix .. "stalled-check")
throttle[3] = attempt("GET", prefix .. "stalled-check:last") or ""
return {
  exists > 0 and 1 or 0, digits(look.now),
  redis.call("HMGET", queue.meta, "paused", "concurrency", "max", "duration", "version"), counts,
  timed(prefix .. "limiter"), throttle, redis.call("SCARD", queue.stalled),
  first_of("wait", "paused", "prioritized"), first_of("active"), digits(next_due(queue) or 0),
  attempt("ZRANGE", prefix .. "echomq:workers", 0, -1) or {},
}
