--[[
Reads what it takes to know the next job of a job scheduler. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id of the scheduler
      3 id of its job that was fetched  4 the time in ms, or 0 for the server's

Returns the time in ms, when that job was due or false when it is not the latest one of the
scheduler, the job's opts, and of the scheduler: every, offset, limit, endDate, pattern, tz.

Cost: O(1).
--]]
--- include values
--- include types
--- include queue/keys
--- include queue/time

local prefix, scheduler, producer = ARGV[1], ARGV[2], ARGV[3]
local queue = queue_at(prefix)
local scheduler_key = queue["repeat"] .. ":" .. scheduler

local fault = mistyped({ queue["repeat"], "zset", scheduler_key, "hash" })
if fault then
  return redis.error_reply("ECHOMQ refuses the scheduler: " .. fault)
end
local due = tonumber(redis.call("ZSCORE", queue["repeat"], scheduler) or "")
return {
  time_in_ms(ARGV[4]), due and producer == "repeat:" .. scheduler .. ":" .. digits(due) and digits(due) or false,
  attempt("HGET", prefix .. producer, "opts") or false,
  unpack(redis.call("HMGET", scheduler_key, "every", "offset", "limit", "endDate", "pattern", "tz")),
}
