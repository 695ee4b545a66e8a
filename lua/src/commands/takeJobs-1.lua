--[[
Fetches the jobs that a worker is to run next, each with a lock of its own.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's
      3 how many jobs to fetch  4 name of the worker  5 lock duration in ms
      6 id of this call; the token of a lock is this, a colon and a number
      7 how many suspects to fetch: jobs that have stalled before
      8 policies, a JSON object: by name of the job its lockDuration and maxStalledCount
      9 id of an earlier call whose reply was lost, or empty: its jobs are returned again
      10 how many of the jobs start at once, since a thread is idle for each

Delayed jobs that are due become available first, at most 1,000 of them. Jobs are fetched from
the tail of `wait`, then from `prioritized`. Those that do not start at once carry the field
`unbegun` until their worker starts them. Suspects that are not fetched stay where they were.

Returns the jobs, in how many ms the next delayed job is due (-1 without one), how many suspects
were left, and for how many ms a rate limit keeps all jobs from being fetched (0 without one).
A job is: id, data, and a line of its token, attempts started, stalls, lock duration,
timestamp, whether it has started, and name, which costs clients less than seven values do; and only
if it is to be failed or belongs to a scheduler: the reason, the worker that had it before, and
the scheduler's id.

Cost: O(log N) for each job promoted or fetched.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/events
--- include queue/wake
--- include queue/time
--- include fetch/promote
--- include fetch/jobs
--- include fetch/lost_call

local queue = queue_at(ARGV[1])
local fetch = {
  timestamp = time_in_ms(ARGV[2]), wanted = number(ARGV[3]), worker = ARGV[4], lock_duration = number(ARGV[5]), id = ARGV[6],
  suspects_wanted = number(ARGV[7]), policies = object(ARGV[8]), idle_threads = number(ARGV[10]),
  jobs = {}, skipped = {}, limited_for = 0,
}
local lost_id = ARGV[9]

local fault = refusal(queue, types_of(queue, queue.limiter, "string"))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
end
if lost_id ~= "" then
  find_jobs_of_call(queue, fetch, lost_id)
  return { fetch.jobs, due_in(queue, fetch.timestamp), 0, 0 }
end
trim_events(queue)
promote_due_jobs(queue, fetch.timestamp)
if not queue.is_paused then
  fetch_jobs(queue, fetch)
  if redis.call("EXISTS", queue.wait, queue.prioritized) > 0 then
    wake(queue)
  end
end
return { fetch.jobs, due_in(queue, fetch.timestamp), #fetch.skipped, fetch.limited_for }
