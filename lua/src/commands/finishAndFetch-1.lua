--[[
Finishes jobs that their worker holds, and fetches the jobs that it is to run next, each with a
lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 rules of the worker, a JSON object: worker, its name; lockDuration in ms; keepCompleted and keepFailed,
        each a `count` and an `age` in s, where the job's own removeOnComplete or removeOnFail does not go
        first; maxEventBytes, the longest result or reason that an event carries; metricsPoints, how many
        minutes of BullMQ's metrics are kept, or 0
      4 how many jobs to fetch, or 0
      5 id of this call; the token of a lock is this, a colon and a number
      6 how many suspects to fetch: jobs that have stalled before; with + before it, they may run
        beside other suspects
      7 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      8 id of an earlier call whose reply was lost, or empty: its jobs are returned again, and no others
      9 1 to look at the types of all keys of the queue, 0 of those alone that are written without being
        read before
      10 and on: seven for each job that has ended:
        id, token of the lock, "completed" or "failed", return value as JSON or the reason of the failure,
        stack trace as a JSON list of one text or empty, `ats` and `stc` that the job had when it was fetched

Delayed jobs that are due become available before the fetch, at most 1,000 of them. Jobs are fetched from the
tail of `wait`, then from `prioritized`. Up to 100 suspects that may not run now are skipped and stay where they
were; when there are as many and no other job beyond them, they go behind all others, for the next call.

Returns a list of
      numbers, as one text: in how many ms the next delayed job is due (-1 without one); how many suspects were
        skipped, and how many of them may run beside others; how many jobs wait, when so many were skipped that
        there may be others behind them, else 0; for how many ms a rate limit keeps all jobs from being fetched
        (0 without one); then what became of each job that has ended:
        1  finished
        2  failed although it was to be completed: its children do not let it
        0  the worker does not hold the job any more, and nothing is written
        -1 the job is gone: its hash was removed while it ran. It is not written again; the id leaves `active`
        ?  an error: the others have finished all the same
      the jobs that were fetched
      for each job that something went wrong with: its place, and texts: a parent that could not be told, say
A job is one text: a line of the lengths of its values, then these: id, data, and a line of token, attempts
started, stalls, lock duration, timestamp and name; and only if it is to be failed or belongs to a scheduler:
the reason, the worker that had it, and the scheduler's id.
A job that is to finish twice is found finished, or an event says so of one that was not kept: the outcome is 1 again.

Cost: O(log N) for each job promoted, fetched or finished, O(N) in `active` from its old end to each finished.
--]]
--- include values
--- include queue/keys
--- include rarely queue/types
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/due
--- include queue/time
--- include finish/types_to_write
--- include finish/job
--- include finish/jobs
--- include rarely fetch/promote
--- include fetch/jobs
--- include rarely fetch/lost_call

local queue = queue_at(ARGV[1])
local rules = object(ARGV[3])
local fetch = {
  timestamp = time_in_ms(ARGV[2]), worker = rules.worker or "", lock_duration = number(rules.lockDuration) or 30000,
  wanted = number(ARGV[4]), id = ARGV[5], suspects_wanted = number(ARGV[6]), is_together = ARGV[6]:sub(1, 1) == "+",
  policies = object(ARGV[7]), jobs = {}, skipped = {}, skipped_together = 0, unseen = 0, limited_for = 0,
}
local lost_id, looks_at_all, first_part = ARGV[8], ARGV[9] == "1", 10
local fetches, finishes = fetch.wanted > 0 or lost_id ~= "", #ARGV >= first_part
local types = looks_at_all and fetches and types_of(queue, queue.limiter, "string")
  or finishes and types_to_finish(queue) or {}
local fault = refusal(queue, types)
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if finishes then
  trim_events(queue) -- first of all writes: Redis does it although it is full, and then what follows
end
local outcomes, faults, has_finished = finish_jobs(queue, first_part, fetch.timestamp, rules_from(rules))
local due = fetches and next_due(queue)
if lost_id ~= "" then
  find_jobs_of_call(queue, fetch, lost_id)
elseif fetches then
  local is_due = due and due <= tonumber(fetch.timestamp)
  local waiting = not queue.is_paused and how_many_wait(queue) or 0
  fault = #types == 0 and (is_due or waiting > 0) and refusal(queue, types_to_fetch(queue))
  if fault then
    return redis.error_reply("ECHOMQ " .. fault)
  end
  if is_due then
    trim_events(queue)
    promote_due_jobs(queue, fetch.timestamp)
    due, waiting = next_due(queue), not queue.is_paused and how_many_wait(queue) or 0
  end
  if waiting > 0 then
    trim_events(queue)
    fetch_jobs(queue, fetch)
    if #fetch.jobs > 0 and waiting > #fetch.jobs then
      wake(queue)
    end
  elseif not queue.is_paused then
    attempt("ZREM", queue.marker, "0") -- that of another worker, which had no free thread and put it back
  end
end
if has_finished then
  tell_what_is_left(queue)
end
local numbers = { how_soon(due, fetch.timestamp), #fetch.skipped, fetch.skipped_together, fetch.unseen,
  fetch.limited_for, unpack(outcomes) }
return { table.concat(numbers, " "), fetch.jobs, unpack(faults) }
