-- How a worker fetches jobs. The queue's meta must have been read, and the queue must not be
-- paused. `fetch` is a table of
--   timestamp       in ms, as text             worker         its name
--   wanted          how many jobs to fetch     lock_duration  in ms, as text, of jobs without their own
--   suspects_wanted how many of them may be suspects: jobs that have stalled before
--   is_together     whether suspects may run beside other suspects
--   id              of this call: the token of a lock is this, a colon and a number
--   policies        by name of the job its lockDuration and maxStalledCount, or nil
--   may_be_limited  false when there is no `limiter`
--   jobs            what was fetched, described     skipped  the suspects that were left
--   skipped_together how many of those may run beside others
--   unseen          how many jobs wait, when so many were skipped that there may be others behind them
--   limited_for     for how many ms a rate limit keeps all jobs from being fetched, or 0
-- Needs:
--- include values
--- include rarely fetch/limit
--- include rarely fetch/window
--- include rarely fetch/suspects
--- include fetch/pop
--- include rarely fetch/put_back
--- include rarely fetch/put_last
--- include fetch/describe

-- Gives a job to the worker, whose id is in `active` by now. `started` is what its `ats` becomes.
local function fetch_job(queue, fetch, id, key, fields, started)
  local jobs = fetch.jobs
  local token = fetch.id .. ":" .. digits(#jobs)
  local duration, policy = lock_duration_of(fetch, fields)
  redis.call("SET", key .. ":lock", token, "PX", duration)
  redis.call("HSET", key, "processedOn", fetch.timestamp, "pb", fetch.worker, "ats", started)
  if policy and policy.maxStalledCount then
    redis.call("HSET", key, "actorMaxStalledCount", policy.maxStalledCount)
  end
  redis.call("XADD", queue.events, "*", "event", "active", "jobId", id, "prev", "waiting")
  jobs[#jobs + 1] = describe(id, token, fields, started, duration)
end

-- Fetches as many jobs as are wanted and there. Ids without a job vanish. `most` is how many there are, or more.
local function fetch_jobs(queue, fetch, most)
  local jobs, skipped, most_skipped = fetch.jobs, fetch.skipped, 100 -- LARGEST_CROWD in broker/suspects.py
  local counted, looked_at, room = 0, 0, fetch.wanted
  if queue.rate_limit or fetch.may_be_limited and redis.call("EXISTS", queue.limiter) == 1 then
    room, fetch.limited_for = room_under_limit(queue)
  end
  while #jobs < fetch.wanted and counted < room and looked_at < most and #skipped < most_skipped
    and not (queue.concurrency and redis.call("LLEN", queue.active) >= queue.concurrency) do
    local id, score = redis.call("LMOVE", queue.wait, queue.active, "RIGHT", "LEFT"), nil
    if not id then
      id, score = pop_prioritized(queue, skipped)
      if not id then
        break
      end
    end
    looked_at = looked_at + 1
    local key = queue.prefix .. id
    local fields = read_fields(id, key)
    local started = fields and fields[3] and digits(counter(fields[3]) + 1) or "1"
    local has_stalled = fields and fields[4] and counter(fields[4]) >= 1
    if not fields then
      redis.call("LPOP", queue.active)
    elseif has_stalled and not may_run(fetch, key, started) then
      redis.call("LPOP", queue.active)
      skipped[#skipped + 1] = { id, score }
    else
      fetch_job(queue, fetch, id, key, fields, started)
      counted = counted + (fields[5] and 0 or 1) -- a job that is only failed is not limited
    end
  end
  if #skipped == most_skipped and #jobs == 0 and attempt("STRLEN", queue.prefix .. "pc") then
    put_last(queue, skipped) -- so that the next call looks at others
    fetch.unseen = redis.call("LLEN", queue.wait) + redis.call("ZCARD", queue.prioritized)
  elseif #skipped > 0 then
    put_back(queue, skipped)
  end
  if queue.rate_limit then
    count_under_limit(queue, counted)
  end
end
