--[[
Finishes jobs that their worker holds, and fetches the jobs that it is to run next, each with a
lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 name of the worker  4 how long a lock lasts in ms, where neither the job nor its name says it
      5 how many completed jobs are kept, 6 how many failed ones, 7 and for how many s, where the job's own
        removeOnComplete or removeOnFail does not go first; each may be empty: then nothing is removed for it
      8 the longest result or reason in bytes that an event carries
      9 how many minutes of BullMQ's metrics are kept, or 0
      10 how many jobs to fetch, or 0
      11 id of this call; the token of a lock is this, a colon and a number
      12 how many suspects to fetch: jobs that have stalled before; with + before it, they may run
        beside other suspects
      13 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      14 id of an earlier call whose reply was lost, or empty: its jobs are returned again, and no others
      15 1 to look at the types of all keys of the queue, 0 of those alone that are written without being
        read before
      16 and on: seven for each job that has ended:
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
--- include queue/common_keys
--- include queue/job_keys
--- include rarely queue/types
--- include queue/meta
--- include queue/time
--- include queue/due
--- include finish/fit
--- include rarely finish/types_to_write
--- include finish/jobs
--- include finish/left
--- include fetch/call

local FIRST_PART = 16

local queue, timestamp = common_keys(ARGV[1]), time_in_ms(ARGV[2])
add_job_keys(queue)
local wanted, lost_id = tonumber(ARGV[10]), ARGV[14]
local finishes, fetches = ARGV[FIRST_PART] ~= nil, wanted > 0 or lost_id ~= ""

local types = ARGV[15] == "1" and (fetches and types_of(queue, queue.limiter, "string") or types_to_write(queue))
local refused = refusal(queue, types)
if refused then
  return refused
end

local outcomes, faults, how = {}, {}, {
  timestamp = timestamp, event_bytes = tonumber(ARGV[8]), metrics_points = tonumber(ARGV[9]),
  keep = { completed = { count = tonumber(ARGV[5]) }, failed = { count = tonumber(ARGV[6]), age = tonumber(ARGV[7]) } },
  sizes = {}, locks = {}, ended = { completed = {}, failed = {} }, may_have_children = true, has_written = false,
}
if finishes then
  refused = unfit_to_finish(queue, how)
  if refused then
    return refused
  end
  outcomes, faults = finish_jobs(queue, FIRST_PART, how)
end

local fetch = {
  timestamp = timestamp, worker = ARGV[3], lock_duration = ARGV[4], wanted = wanted, id = ARGV[11],
  suspects_wanted = tonumber(ARGV[12]), is_together = ARGV[12]:sub(1, 1) == "+",
  policies = ARGV[13] ~= "{}" and object(ARGV[13]) or nil,
  jobs = {}, skipped = {}, skipped_together = 0, unseen = 0, limited_for = 0,
}
if fetches then
  refused = fetch_for_call(queue, fetch, lost_id, finishes)
  if refused then -- only where nothing was to finish: else the looks were made before
    return refused
  end
end
if how.has_written and (#fetch.jobs == 0 or queue.concurrency) then -- else `active` is not empty
  tell_what_is_left(queue)
end

local numbers = "-1 0 0 0 0"
if fetch.due or #fetch.skipped > 0 or fetch.limited_for > 0 then
  numbers = how_soon(fetch.due, timestamp) .. " " .. #fetch.skipped .. " " .. fetch.skipped_together .. " "
    .. fetch.unseen .. " " .. fetch.limited_for
end
if finishes then
  numbers = numbers .. " " .. table.concat(outcomes, " ")
end
return { numbers, fetch.jobs, unpack(faults) }
