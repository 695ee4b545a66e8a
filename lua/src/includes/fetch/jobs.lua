-- How a worker fetches jobs. The queue's meta must have been read, and the queue must not be
-- paused. `fetch` is a table of
--   timestamp       in ms, as text             worker         its name
--   wanted          how many jobs to fetch     lock_duration  in ms, of jobs without their own
--   suspects_wanted how many of them may be suspects: jobs that have stalled before
--   id              of this call: the token of a lock is this, a colon and a number
--   policies        by name of the job its lockDuration and maxStalledCount
--   jobs            what was fetched, described     skipped  the suspects left where they were
--   limited_for     for how many ms a rate limit keeps all jobs from being fetched, or 0
-- Needs:
--- include values
--- include queue/events
--- include queue/reserved
--- include queue/wake
--- include queue/lists
--- include fetch/limit
--- include fetch/pop
--- include fetch/describe

local MOST_SKIPPED = 100 -- suspects to look past in one call

-- Gives a job to the worker, whose id has left the place where it waited.
local function fetch_job(queue, fetch, id, fields)
  local key, jobs = queue.prefix .. id, fetch.jobs
  local token = fetch.id .. ":" .. #jobs
  local started = counter(fields[3]) + 1
  local duration, policy = lock_duration_of(fetch, fields)
  local own = policy.maxStalledCount and { "actorMaxStalledCount", digits(policy.maxStalledCount) } or {}
  redis.call("LPUSH", queue.active, id)
  redis.call("SET", key .. ":lock", token, "PX", digits(duration))
  redis.call("HSET", key, "processedOn", fetch.timestamp, "pb", fetch.worker, "ats", digits(started), unpack(own))
  emit(queue, "active", id, "prev", "waiting")
  jobs[#jobs + 1] = describe(id, token, fields, started, duration)
end

-- Fetches as many jobs as are wanted and there. Ids without a job vanish.
local function fetch_jobs(queue, fetch)
  local jobs, skipped, counted = fetch.jobs, fetch.skipped, 0
  local room
  room, fetch.limited_for = room_under_limit(queue)
  waiting_list(queue) -- which brings back what another runtime's resume has left in `paused`
  while #jobs < fetch.wanted and counted < room and #skipped < MOST_SKIPPED and not is_maxed(queue) do
    local id, score = pop(queue, skipped)
    if not id then
      break
    end
    local fields = not is_reserved(id) and read_fields(queue, id)
    local there = fields and (fields[1] or redis.call("EXISTS", queue.prefix .. id) == 1)
    if there and counter(fields[4]) > 0 and fetch.suspects_wanted <= 0 then
      skipped[#skipped + 1] = { id, score }
    elseif there then
      fetch.suspects_wanted = fetch.suspects_wanted - (counter(fields[4]) > 0 and 1 or 0)
      fetch_job(queue, fetch, id, fields)
      counted = counted + (fields[5] and 0 or 1) -- a job that is only failed is not limited
    end
  end
  put_back(queue, skipped)
  count_under_limit(queue, counted)
end
