--[[
Says all there is to say about one job of a queue. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 how many of the last lines of its log to return

Returns a list:
      1 the states it is in, which should be one; a list that has it twice is named twice
      2 the job, as listJobs describes it  3 whether a check has marked it  4 the last lines of its log
      5 how many children it still waits for
      6 the worker that holds its lock: -1 when it is not registered, 0 when its connection is there, else since
        when that is missing, in ms

Cost: O(N) in the ids of `wait`, `paused` and `active`, and in the workers that are registered.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/time
--- include inspect/page
--- include inspect/row

local MOST_EVENTS = 1000 -- that are looked at to tell since when the job waits
local prefix, id, lines = ARGV[1], ARGV[2], number(ARGV[3])
local queue = queue_at(prefix)

local function holder_of(lock)
  local token = attempt("GET", lock)
  local worker = token and token:match("^([^:]+):")
  local registered = worker and attempt("ZRANGE", prefix .. "echomq:workers", 0, -1, "WITHSCORES") or {}
  for at = 1, #registered, 2 do
    if registered[at]:sub(1, #worker + 1) == worker .. " " then
      return digits(math.max(-(number(registered[at + 1]) or 0), 0))
    end
  end
  return -1
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
local fields, there = read_row_fields(queue, id)
local key, places = prefix .. id, places_of(queue, id)
local look = { now = tonumber(time_in_ms()), most_data = math.huge, events = MOST_EVENTS }
return {
  places, describe_row(queue, id, places[1], redis.call("ZSCORE", queue.delayed, id), fields, there, look),
  redis.call("SISMEMBER", queue.stalled, id),
  attempt("LRANGE", key .. ":logs", -lines, -1) or {}, attempt("SCARD", key .. ":dependencies") or 0,
  holder_of(key .. ":lock"),
}
