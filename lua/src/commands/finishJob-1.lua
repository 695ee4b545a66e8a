--[[
Moves a job that its worker holds to `completed` or to `failed`.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 token of the lock
      4 timestamp in ms  5 "completed" or "failed"  6 return value as JSON, or the reason of the failure
      7 stack trace as a JSON list, or empty
      8 how many such jobs to keep and 9 for how many s, each empty for any; the job's own
      removeOnComplete or removeOnFail goes first

Returns 1; 0 when the worker does not hold the job any more, and then nothing is written;
-1 when the job is gone.

A call that is sent twice finds the job finished at the same timestamp and returns 1.

Cost: O(N) in `active` from its old end to the job, O(log N) in the finished jobs.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include finish/retention
--- include finish/deduplication
--- include parents/completion
--- include parents/failure

local prefix, id, token, timestamp, target, value, stacktrace = unpack(ARGV, 1, 7)
local keep = { count = number(ARGV[8]), age = number(ARGV[9]) }
local queue = queue_at(prefix)
local key = prefix .. id
local failing = target == "failed"

-- The job's own rule, else the worker's. Its `count` or `age` alone leaves no other bound.
local function keep_for(opts)
  local own = failing and retention_of_failed(opts) or retention_of_completed(opts)
  return (own.count or own.age) and own or keep
end

local fault = refusal(queue, {
  queue.meta, "hash", queue.active, "list", queue.stalled, "set", queue[target], "zset", queue.marker, "zset",
  queue.events, "stream", key, "hash",
})
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local held = attempt("GET", key .. ":lock")
if held ~= token then
  if redis.call("EXISTS", key) == 0 then
    return -1
  end
  local finished = not held and redis.call("ZSCORE", queue[target], id)
  return finished and redis.call("HGET", key, "finishedOn") == timestamp and 1 or 0
end

local fields = redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "unbegun",
  failing and "defa" or "failedReason")
local job = { opts = object(fields[1]), parent_key = fields[2], parent = object(fields[3]) }
redis.call("DEL", key .. ":lock")
redis.call("SREM", queue.stalled, id)
redis.call("LREM", queue.active, -1, id)
redis.call("HSET", key, "atm", digits(counter(fields[5]) + 1), "finishedOn", timestamp,
  failing and "failedReason" or "returnvalue", value)
if fields[6] or fields[7] then
  redis.call("HDEL", key, "unbegun", failing and "defa" or "failedReason")
end
if failing then
  if stacktrace ~= "" then
    redis.call("HSET", key, "stacktrace", stacktrace)
  end
  emit_last(queue, "failed", id, "failedReason", value, "prev", "active")
  tell_parent_of_failure(job, key, value, timestamp)
else
  emit_last(queue, "completed", id, "returnvalue", value, "prev", "active")
  tell_parent_of_completion(job, key, value, timestamp)
end
release_deduplication(queue, fields[4], id)
retain(queue, queue[target], id, keep_for(job.opts), timestamp)
if redis.call("EXISTS", queue.wait, queue.active, queue.prioritized) == 0 then
  redis.call("XADD", queue.events, "*", "event", "drained")
elseif queue.concurrency and redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
  wake(queue)
end
return 1
