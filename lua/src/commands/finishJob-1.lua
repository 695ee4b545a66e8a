--[[
Moves a job that its worker holds to `completed` or to `failed`.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 id  3 token of the lock
      4 the time in ms, or 0 for the server's  5 "completed" or "failed"  6 return value as JSON, or the reason of the failure
      7 stack trace as a JSON list of one text, or empty
      8 rules of the worker, a JSON object: keepCompleted and keepFailed, each a `count` and an `age` in s, where
        the job's own removeOnComplete or removeOnFail does not go first; maxEventBytes, the longest result or
        reason that an event carries; metricsPoints, how many minutes of BullMQ's metrics are kept, or 0
      9 `ats` and 10 `stc` that the job had when it was fetched

Returns a list: the outcome, then what went wrong, a text each: a parent that could not be told,
or why the job could not complete. The outcome is
      1 finished
      2 failed although it was to be completed: its children do not let it
      0 the worker does not hold the job any more, and nothing is written
      -1 the job is gone: its hash was removed while it ran. It is not written again; the id leaves `active`

A call that is sent twice finds the job finished and not fetched or stalled since, or an event that says
so of a job that was not kept, and returns 1.

Cost: O(N) in `active` from its old end to the job, O(log N) in the finished jobs.
--]]
--- include queue/keys
--- include queue/meta
--- include queue/time
--- include finish/job

local prefix, id, token, time, target, value, stacktrace = unpack(ARGV, 1, 7)
local queue = queue_at(prefix)

local fault = refusal(queue, types_to_finish(queue, id))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
local outcome, faults, has_written = finish_job(queue, id, {
  token = token, timestamp = time_in_ms(time), target = target, value = value, stacktrace = stacktrace,
  rules = rules_from(ARGV[8]), started = ARGV[9], stalls = ARGV[10],
})
if has_written then
  tell_what_is_left(queue)
end
return { outcome, unpack(faults) }
