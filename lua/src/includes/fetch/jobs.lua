-- How a worker fetches jobs. The queue's meta must have been read, and the queue must not be
-- paused. `fetch` is a table of
--   timestamp       in ms, as text             worker         its name
--   wanted          how many jobs to fetch     lock_duration  in ms, of jobs without their own
--   suspects_wanted how many of them may be suspects: jobs that have stalled before
--   is_together     whether suspects may run beside other suspects
--   id              of this call: the token of a lock is this, a colon and a number
--   policies        by name of the job its lockDuration and maxStalledCount
--   jobs            what was fetched, described     skipped  the suspects that were left
--   skipped_together how many of those may run beside others
--   unseen          how many jobs wait, when so many were skipped that there may be others behind them
--   limited_for     for how many ms a rate limit keeps all jobs from being fetched, or 0
-- Needs:
--- include values
--- include queue/events
--- include queue/reserved
--- include queue/wake
--- include queue/lists
--- include fetch/limit
--- include fetch/suspects
--- include fetch/pop
--- include rarely fetch/put_back
--- include rarely fetch/put_last
--- include fetch/describe

local MOST_SKIPPED = 100 -- suspects to look past in one call

-- Gives a job to the worker, whose id is in `active` by now.
local function fetch_job(queue, fetch, id, fields)
  local key, jobs = queue.prefix .. id, fetch.jobs
  local token = fetch.id .. ":" .. #jobs
  local started = counter(fields[3]) + 1
  local duration, policy = lock_duration_of(fetch, fields)
  redis.call("SET", key .. ":lock", token, "PX", duration)
  redis.call("HSET", key, "processedOn", fetch.timestamp, "pb", fetch.worker, "ats", started)
  if policy.maxStalledCount then
    redis.call("HSET", key, "actorMaxStalledCount", policy.maxStalledCount)
  end
  note_company(fetch, key, fields, started)
  emit(queue, "active", id, "prev", "waiting")
  jobs[#jobs + 1] = describe(id, token, fields, started, duration)
end

-- How many jobs wait. Those that another runtime's resume has left in `paused` come back.
local function how_many_wait(queue)
  return redis.call("LLEN", waiting_list(queue)) + redis.call("ZCARD", queue.prioritized)
end

-- Fetches as many jobs as are wanted and there. Ids without a job vanish.
local function fetch_jobs(queue, fetch)
  local jobs, skipped, counted = fetch.jobs, fetch.skipped, 0
  local room
  room, fetch.limited_for = room_under_limit(queue)
  while #jobs < fetch.wanted and counted < room and #skipped < MOST_SKIPPED and not is_maxed(queue) do
    local id, score = pop(queue, skipped)
    if not id then
      break
    end
    local fields = not is_reserved(id) and read_fields(queue, id)
    local there = fields and (fields[1] or redis.call("EXISTS", queue.prefix .. id) == 1)
    local is_skipped = there and not may_run(fetch, fields)
    if is_skipped then
      skipped[#skipped + 1] = { id, score }
    end
    if is_skipped or not there then
      redis.call("LPOP", queue.active)
    else
      fetch_job(queue, fetch, id, fields)
      counted = counted + (fields[5] and 0 or 1) -- a job that is only failed is not limited
    end
  end
  if #skipped == MOST_SKIPPED and #jobs == 0 and attempt("STRLEN", queue.pc) then
    put_last(queue, skipped) -- so that the next call looks at others
    fetch.unseen = how_many_wait(queue)
  elseif #skipped > 0 then
    put_back(queue, skipped)
  end
  count_under_limit(queue, counted)
end
