--[[
Says all there is to say about one job of a queue. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 how many of the last lines of its log to return

Returns a list: 1 the states it is in, which should be one; a list that has it twice is named twice
2 the job, as listJobs describes it  3 whether a check has marked it  4 the last lines of its log
5 how many children it still waits for.

Cost: O(N) in the ids of `wait`, `paused` and `active`.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include inspect/page
--- include inspect/row

local prefix, id, lines = ARGV[1], ARGV[2], number(ARGV[3])
local queue = queue_at(prefix)

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local fields, there = read_row_fields(queue, id)
local key = prefix .. id
return {
  places_of(queue, id), describe_row(queue, id, redis.call("ZSCORE", queue.delayed, id), math.huge, fields, there), redis.call("SISMEMBER", queue.stalled, id),
  attempt("LRANGE", key .. ":logs", -lines, -1) or {}, attempt("SCARD", key .. ":dependencies") or 0,
}
