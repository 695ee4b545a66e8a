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
--- include finish/job

local prefix, id, token, timestamp, target, value, stacktrace = unpack(ARGV, 1, 7)
local queue = queue_at(prefix)

local fault = refusal(queue, types_to_finish(queue, id, target))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local outcome, has_written = finish_job(queue, id, {
  token = token, timestamp = timestamp, target = target, value = value, stacktrace = stacktrace,
  keep = { count = number(ARGV[8]), age = number(ARGV[9]) },
})
if has_written then
  tell_what_is_left(queue)
end
return outcome
