-- Built by tools/build-lua from lua/src/commands/finishAndFetch-1.lua: edit that file, not this one.
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

local rarely -- returns what few calls need

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if value and type(value) == "string" and value:find("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  if number > -2 ^ 31 and number < 2 ^ 31 and number % 1 == 0 then
    return string.format("%d", number) -- which costs half
  end
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    return nil
  end
  value = tonumber(value)
  if value and value > -2 ^ 53 and value < 2 ^ 53 then -- which NaN is not
    return value
  end
  return nil
end

-- The table of a JSON object. A field that is absent is an empty one; for text that is
-- no JSON object the second value is false.
local function object(text)
  if not text or text == "" or text == "{}" then
    return {}, true
  end
  local decoded, value = pcall(cjson.decode, text)
  if decoded and type(value) == "table" and value[1] == nil then
    return value, true
  end
  return {}, false
end

-- The reply of a command, or nil when the command failed.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    return nil
  end
  return reply
end

--- includes/queue/common_keys.lua
-- The keys of a queue that scripts need which run for each message. Each costs something in each call. Needs no
-- other include.

-- Those that all of them need, with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    is_paused = false, concurrency = nil, max_events = "", version = "", -- queue/meta: room for these costs least here
  }
end

--- includes/queue/job_keys.lua
-- The other keys of a queue in which jobs stand, or that say something about them. Needs no other include.

-- Adds these keys to those that are common. What only jobs need that are delayed or have a priority costs the others
-- nothing so.
local function add_job_keys(queue)
  local prefix = queue.prefix
  queue.delayed, queue.prioritized = prefix .. "delayed", prefix .. "prioritized"
  queue.completed, queue.failed, queue.stalled = prefix .. "completed", prefix .. "failed", prefix .. "stalled"
  queue.limiter = prefix .. "limiter"
end

--- includes/queue/meta.lua
-- What the meta of a queue says, and why a script may refuse the queue. Needs:

-- Reads what the queue's meta says, once for a script. Returns false when it is no hash.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version", "max", "duration")
  local is_hash = meta ~= nil
  meta = meta or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = meta[2] and number(meta[2]) or nil
  local most = meta[3] and meta[3] ~= "10000" and number(meta[3]) -- which BullMQ writes into most queues
  queue.max_events = most and most >= 0 and digits(math.floor(most)) or "10000"
  queue.version = meta[4] or ""
  if meta[5] and meta[6] then
    queue.rate_limit = { max = number(meta[5]), duration = number(meta[6]) }
  end
  return is_hash
end

-- The error that a script returns which may do nothing to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types, or nil.
local function refusal(queue, types)
  local fault = types and rarely().mistyped(types) or not read_meta(queue) and rarely().mistyped({ queue.meta, "hash" })
  if fault then
    return redis.error_reply("ECHOMQ refuses the queue: " .. fault
      .. ". Nothing was written. Repair or remove that key.")
  end
  if queue.version ~= "" and queue.version:sub(1, 8) == "echomq:2" then
    return redis.error_reply("ECHOMQ refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use.")
  end
  return nil
end

--- includes/queue/time.lua
-- The time that a script goes by. Needs:

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and given ~= "0" and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return time[1] .. ("00000" .. time[2]):sub(-6, -4) -- seconds, and microseconds in as many digits as they need
end

--- includes/queue/due.lua
-- When the next delayed job is due. Needs no other include.

-- When it is due in ms, or nil without one. Delays may be of any length, and then the score may be infinite.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.max(math.min(math.floor(tonumber(score) / 4096), 2 ^ 53), 0)
end

-- In how many ms a job is due, or -1 for none. Jobs may be due at a time that no integer holds.
local function how_soon(due, timestamp)
  return due and math.max(math.min(due - timestamp, 2 ^ 31), 0) or -1
end

--- includes/finish/fit.lua
-- How a call sees to it that a key of the wrong type is found before it writes anything: those that it writes
-- without having read them. Those of jobs and parents are looked at apart. Needs:

-- The error of a call that only fetches jobs and may not write, or nil. The trim of the events goes first of all
-- writes: it raises when that is no stream, and Redis does it although it is full, and then what follows.
local function unfit_to_fetch(queue)
  if not (attempt("LLEN", queue.active) and attempt("ZCARD", queue.marker)) then
    return refusal(queue, rarely().types_to_write(queue))
  end
  redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
  queue.is_trimmed = true
  return nil
end

-- The error of a call that finishes jobs and may not write, or nil. What the looks tell is of use later. Takes the
-- `how` of finish/job.
local function unfit_to_finish(queue, how)
  local marks, sizes = attempt("SCARD", queue.stalled), how.sizes
  sizes.completed, sizes.failed = attempt("ZCARD", queue.completed), attempt("ZCARD", queue.failed)
  if not (marks and sizes.completed and sizes.failed) then
    return refusal(queue, rarely().types_to_write(queue))
  end
  queue.has_marks = marks > 0
  return unfit_to_fetch(queue)
end

--- includes/queue/reserved.lua
-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs:

-- Whether an id is the name of a key that is not a job's hash. Nearly all ids pass at once: names have a
-- colon or are short, and none of these is hexadecimal.
local function is_reserved(id)
  if #id > 16 and not id:find(":", 1, true) or id:find("^%x[%x-]*$") then
    return false
  end
  return rarely().is_name_of_key(id)
end

--- includes/queue/lists.lua
-- The lists `wait` and `paused`. BullMQ up to 5 keeps the jobs of a paused queue in `paused`,
-- BullMQ 6 in `wait`, and some runtimes resume a queue without moving any: so each may hold
-- jobs at any time. The queue's meta must have been read. Needs:

-- The list in which jobs without a priority wait, with all of them in it.
local function waiting_list(queue)
  if not queue.waiting_list then
    if not queue.is_paused then
      queue.waiting_list = redis.call("EXISTS", queue.paused) == 1 and rarely().join_lists(queue, queue.wait) or queue.wait
    elseif redis.call("EXISTS", queue.wait) == 1 then
      queue.waiting_list = rarely().join_lists(queue)
    else
      queue.waiting_list = queue.paused
    end
  end
  return queue.waiting_list
end

--- includes/queue/wake.lua
-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs no other include.

-- Wakes an idle worker, unless none may fetch a job now: the queue is paused, or as many jobs are active as its global
-- concurrency allows.
local function wake(queue)
  local is_maxed = queue.concurrency and redis.call("LLEN", queue.active) >= queue.concurrency
  if not queue.is_paused and not is_maxed then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

--- includes/finish/retention.lua
-- Which finished jobs are kept, and for how long. Needs:

-- What the opts of a job say about it, under the names that the runtimes write; else what `rules` say of the target,
-- "completed" or "failed".
local function retention_of(target, opts, rules)
  local own
  if target == "failed" then
    own = opts.removeOnFail or opts.rof or opts.remove_on_fail
  else
    own = opts.removeOnComplete or opts.roc or opts.remove_on_complete
  end
  return own and rarely().own_retention(own, rules[target]) or rules[target]
end

--- includes/queue/remove.lua
-- How a job is removed. Needs:

-- Removes the hashes of at most 1,000 jobs and what stands beside them, but for ids that are names
-- of keys of the queue. The lock is not among that: a job that is removed when it finishes has none any more.
-- Nor is its id removed from where it stands in the queue.
local function remove_jobs(queue, ids)
  local keys = {}
  for _, id in ipairs(ids) do
    if not is_reserved(id) then
      local key, size = queue.prefix .. id, #keys
      keys[size + 1], keys[size + 2], keys[size + 3] = key, key .. ":logs", key .. ":dependencies"
      keys[size + 4], keys[size + 5], keys[size + 6] = key .. ":processed", key .. ":failed", key .. ":unsuccessful"
    end
  end
  if #keys > 0 then
    redis.call("DEL", unpack(keys))
  end
end

--- includes/finish/prune.lua
-- How finished jobs go that are kept no longer. Needs:

-- Removes what a finished set holds beyond `keep`, a table as finish/retention makes it. `size` is how many
-- jobs the set holds, or nil where that is not known.
local function prune(queue, finished, keep, timestamp, size)
  local most = 1000 -- jobs that go for one more finished job
  if keep.age then
    local surplus = redis.call("ZRANGEBYSCORE", finished, "-inf", digits(timestamp - keep.age * 1000),
      "LIMIT", 0, most)
    if #surplus > 0 then
      size = nil
      remove_jobs(queue, surplus)
      redis.call("ZREM", finished, unpack(surplus))
    end
  end
  local excess = keep.count and keep.count >= 0 and (size or redis.call("ZCARD", finished)) - keep.count or 0
  if excess > 0 then
    local popped, ids = redis.call("ZPOPMIN", finished, math.min(excess, most)), {}
    for at = 1, #popped, 2 do
      ids[(at + 1) / 2] = popped[at]
    end
    remove_jobs(queue, ids)
  end
end

--- includes/finish/job.lua
-- How ONE job finishes that its worker holds: a script may do so with several. The queue's
-- meta must have been read. `job` is a table of
--   at                    the place of its arguments: see the header of finishAndFetch
--   id, token, target, value         the first four of these
--   held                  what its lock holds, or false
--   key                   of its hash
-- and `how` one of what is the same for all jobs of a call:
--   timestamp             in ms, as text
--   keep                  by target the retention where a job does not say it
--   event_bytes, metrics_points      as the worker says
--   may_have_children     false when no job of the call has children that keep it from completing
--   sizes                 by target how many jobs the finished set holds, where that is known
--   locks                 gets the locks, to be deleted together
--   ended                 by target gets scores and ids, for a set of finished jobs that is pruned by the worker's rule
--   has_written           becomes true when something was written
-- Needs:

local NO_OPTS = {}

-- Writes how a job completed.
local function complete_job(queue, job, attempts, has_failed_before, how)
  local key, id, value = job.key, job.id, job.value
  redis.call("HSET", key, "atm", attempts, "finishedOn", how.timestamp, "returnvalue", value)
  if has_failed_before then
    redis.call("HDEL", key, "failedReason")
  end
  if #value <= how.event_bytes then
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", value, "prev", "active")
  else -- the stream holds some 10,000 events, and listeners of BullMQ need JSON: the result is in the job's hash
    redis.call("XADD", queue.events, "*", "event", "completed", "jobId", id, "returnvalue", "null",
      "returnvalueBytes", #value, "prev", "active")
  end
end

-- Returns the outcome as finishAndFetch does, and a list of what went wrong, if anything did.
local function finish_job(queue, job, how)
  local id, key, target, timestamp = job.id, job.key, job.target, how.timestamp
  local fields = job.held == job.token
    and redis.call("HMGET", key, "opts", "parentKey", "parent", "deid", "atm", "failedReason")
  if not fields or not fields[1] and redis.call("EXISTS", key) == 0 then
    return rarely().outcome_without_job(queue, job, how)
  end
  local forbidden = how.may_have_children and target == "completed" and rarely().children_forbid(key, id)
  if forbidden then
    target = "failed"
  end
  local opts, keep = NO_OPTS, how.keep[target]
  if fields[1] and fields[1] ~= "{}" then
    opts = object(fields[1])
    keep = retention_of(target, opts, how.keep)
  end
  local is_kept_by_rule = keep == how.keep[target] and keep.count ~= 0
  if is_kept_by_rule then
    local ended = how.ended[target] -- before the id leaves `active`: an error must not lose it
    ended[#ended + 1], ended[#ended + 2] = timestamp, id
  end
  how.locks[#how.locks + 1] = key .. ":lock"
  if queue.has_marks then
    redis.call("SREM", queue.stalled, id)
  end
  redis.call("LREM", queue.active, -1, id)
  how.has_written = true

  local attempts, has_parent, untold = fields[5] and digits(counter(fields[5]) + 1) or "1", fields[2] or fields[3], nil
  if target == "failed" then
    local child = { opts = opts, parent_key = fields[2], parent = object(fields[3]) }
    untold = rarely().fail_job(queue, job, child, attempts, forbidden or job.value, how)
  else
    complete_job(queue, job, attempts, fields[6], how)
    untold = has_parent and rarely().tell_parent_of_completion(
      { parent_key = fields[2], parent = object(fields[3]) }, key, job.value, timestamp)
  end
  local not_followed = fields[4] and rarely().end_deduplication(queue, fields[4], id, timestamp)
  if not is_kept_by_rule then
    how.sizes[target] = nil -- of the set: it becomes another
    rarely().retain(queue, queue[target], id, keep, timestamp)
  end
  if how.metrics_points >= 1 then
    rarely().count_finished(queue, target, how.metrics_points, timestamp)
  end
  if forbidden or untold or not_followed then
    return forbidden and 2 or 1, rarely().faults_of(forbidden, untold, not_followed)
  end
  return "1"
end

--- includes/finish/jobs.lua
-- How the jobs finish that have ended since the last call of a worker. The queue's meta must have
-- been read. Needs:

-- Finishes the jobs that the arguments of the script name, from the `first` on: seven for each. What goes wrong with
-- one does not keep the others from finishing. `how` is the table that finish_job takes. Returns the outcome of each,
-- and what went wrong, with the place of the job before it.
local function finish_jobs(queue, first, how)
  local per_job, locks, children, outcomes, all_faults = 7, {}, {}, {}, {}
  for at = first, #ARGV, per_job do
    local key = queue.prefix .. ARGV[at]
    locks[#locks + 1] = key .. ":lock"
    children[#children + 1], children[#children + 2] = key .. ":dependencies", key .. ":unsuccessful"
  end
  local held = redis.call("MGET", unpack(locks))
  how.may_have_children = redis.call("EXISTS", unpack(children)) > 0 -- which few jobs have
  local job = { at = 0, id = "", token = "", target = "", value = "", held = "", key = "" } -- one table for all of them
  for place = 1, #locks do
    local at = first + (place - 1) * per_job
    job.at, job.id, job.token, job.target, job.value = at, ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    job.held, job.key = held[place], queue.prefix .. job.id
    local succeeded, outcome, faults = pcall(finish_job, queue, job, how)
    if not succeeded then
      outcome, faults = "?", { rarely().fault_of_job(outcome) }
    end
    outcomes[place] = outcome
    if faults and faults[1] then
      all_faults[#all_faults + 1] = { place, unpack(faults) }
    end
  end
  -- What one command can do for all jobs of a call:
  if how.locks[1] then
    redis.call("DEL", unpack(how.locks))
  end
  for target, ended in pairs(how.ended) do
    if ended[1] then
      local size, added = how.sizes[target], redis.call("ZADD", queue[target], unpack(ended))
      prune(queue, queue[target], how.keep[target], how.timestamp, size and size + added)
    end
  end
  return outcomes, all_faults
end

--- includes/finish/left.lua
-- What is told to others, once after the jobs of a call. Needs:

-- That the queue is empty, or that its global concurrency has a place again.
local function tell_what_is_left(queue)
  if redis.call("EXISTS", queue.wait, queue.active, queue.prioritized) == 0 then
    redis.call("XADD", queue.events, "*", "event", "drained")
  elseif queue.concurrency then
    rarely().wake_for_waiting(queue)
  end
end

--- includes/fetch/pop.lua
-- How the next id leaves `prioritized` when none waits without a priority. Needs no other include.

-- Moves it to the new end of `active`. Returns it with its score, or nil. `skipped` are the jobs that were moved and
-- are not fetched. When `active` is no list it raises, before anything has left its place.
local function pop_prioritized(queue, skipped)
  redis.call("LLEN", queue.active)
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if first[1] then
    redis.call("LPUSH", queue.active, first[1])
  elseif #skipped == 0 then
    redis.call("DEL", queue.prefix .. "pc")
  end
  return first[1], first[2]
end

--- includes/fetch/describe.lua
-- What a worker is told of a job that it gets. Takes the `fetch` of fetch/jobs. Needs:

-- What the hash of a job says, or nil for none. It is a list, since a table with names costs too much for each job:
-- 1 name, 2 data, 3 ats, 4 stc, 5 defa, 6 opts, 7 timestamp, 8 rjk, and 9 pb where 5 or 8 is there.
local function read_fields(id, key)
  local fields = not is_reserved(id)
    and attempt("HMGET", key, "name", "data", "ats", "stc", "defa", "opts", "timestamp", "rjk")
  if not fields or not fields[1] and redis.call("EXISTS", key) == 0 then
    return nil
  end
  if fields[5] or fields[8] then
    fields[9] = redis.call("HGET", key, "pb")
  end
  return fields
end

-- A job as one text, which costs clients much less than ten values do: the lengths of its values, and these.
-- `started` and `duration` are digits.
local function describe(id, token, fields, started, duration)
  local name, data, stalls, timestamp = fields[1] or "", fields[2] or "", fields[4], fields[7]
  stalls = stalls and digits(counter(stalls)) or "0"
  if not timestamp or #timestamp ~= 13 or not timestamp:find("^%d+$") then
    timestamp = digits(counter(timestamp))
  end
  local line = token .. " " .. started .. " " .. stalls .. " " .. duration .. " " .. timestamp .. " " .. name
  local lengths = string.format("%d %d %d", #id, #data, #line)
  if fields[5] or fields[8] then
    local reason, scheduler, worker = fields[5] or "", fields[8] or "", fields[9] or ""
    return lengths .. string.format(" %d %d %d\n", #reason, #worker, #scheduler)
      .. id .. data .. line .. reason .. worker .. scheduler
  end
  return lengths .. "\n" .. id .. data .. line
end

-- How long the lock of a job lasts in ms, as digits, and the policy for jobs of its name, or nil.
local function lock_duration_of(fetch, fields)
  local name, opts, shortest = fields[1] or "", fields[6], 100 -- SHORTEST_LOCK in settings.py, which refuses less
  local policy = fetch.policies and fetch.policies[name]
  local own = opts and opts ~= "{}" and number(object(opts).lockDuration)
  if own and own >= 1 then
    return digits(math.max(math.floor(own), shortest)), policy
  end
  local of_name = policy and number(policy.lockDuration)
  return of_name and digits(of_name) or fetch.lock_duration, policy
end

--- includes/fetch/jobs.lua
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
    room, fetch.limited_for = rarely().room_under_limit(queue)
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
    elseif has_stalled and not rarely().may_run(fetch, key, started) then
      redis.call("LPOP", queue.active)
      skipped[#skipped + 1] = { id, score }
    else
      fetch_job(queue, fetch, id, key, fields, started)
      counted = counted + (fields[5] and 0 or 1) -- a job that is only failed is not limited
    end
  end
  if #skipped == most_skipped and #jobs == 0 and attempt("STRLEN", queue.prefix .. "pc") then
    rarely().put_last(queue, skipped) -- so that the next call looks at others
    fetch.unseen = redis.call("LLEN", queue.wait) + redis.call("ZCARD", queue.prioritized)
  elseif #skipped > 0 then
    rarely().put_back(queue, skipped)
  end
  if queue.rate_limit then
    rarely().count_under_limit(queue, counted)
  end
end

--- includes/fetch/call.lua
-- What a call fetches, after it has finished what it had to. The queue's meta must have been read. Needs:

-- How many jobs wait, or more than are wanted; 0 where the queue is paused.
local function how_many_wait(queue, wanted)
  if queue.is_paused then
    return 0
  end
  local listed = redis.call("LLEN", waiting_list(queue))
  return listed > wanted and listed or listed + redis.call("ZCARD", queue.prioritized)
end

-- Fetches what the `fetch` of fetch/jobs asks for, or the jobs of the earlier call with the lost id; gives it when the
-- next delayed job is `due`. Returns the error of a queue that is refused, or nil. A call that has finished jobs has
-- looked before.
local function fetch_for_call(queue, fetch, lost_id, has_looked)
  local wanted, timestamp = fetch.wanted, fetch.timestamp
  -- What is there only with delays, limits or priorities, or after a strange resume: one look tells that it is not.
  fetch.may_be_limited = redis.call("EXISTS", queue.delayed, queue.paused, queue.limiter, queue.prefix .. "pc") > 0
  if fetch.may_be_limited then
    fetch.due = next_due(queue)
  elseif not queue.is_paused then
    queue.waiting_list = queue.wait
  end
  if lost_id ~= "" then
    rarely().find_jobs_of_call(queue, fetch, lost_id)
    return nil
  end
  local is_due, waiting = fetch.due and fetch.due <= tonumber(timestamp), how_many_wait(queue, wanted)
  local refused = not has_looked and (is_due or waiting > 0) and unfit_to_fetch(queue)
  if refused then
    return refused
  end
  if is_due then
    rarely().promote_due_jobs(queue, timestamp)
    fetch.due, waiting = next_due(queue), how_many_wait(queue, wanted)
  end
  if waiting > 0 then
    local is_all = waiting <= wanted and not fetch.may_be_limited
    fetch_jobs(queue, fetch, is_all and waiting or math.huge)
    if #fetch.jobs > 0 and waiting > #fetch.jobs then
      wake(queue)
    end
  elseif not queue.is_paused then
    attempt("ZREM", queue.marker, "0") -- that of another worker, which had no free thread and put it back
  end
  return nil
end

local rare
rarely = function()
  if not rare then
    --- includes/queue/types.lua
    -- The types of a queue's keys, for what looks at them before it writes. Needs no other include.

    -- All keys of a queue with their types.
    local function types_of(queue, ...)
      local prefix = queue.prefix
      return {
        queue.wait, "list", queue.paused, "list", queue.active, "list", queue.delayed, "zset",
        queue.prioritized, "zset", prefix .. "pc", "string", queue.completed, "zset", queue.failed, "zset",
        queue.stalled, "set", queue.meta, "hash", queue.marker, "zset", queue.events, "stream",
        prefix .. "waiting-children", "zset", prefix .. "repeat", "zset", ...,
      }
    end

    --- includes/types.lua
    -- Whether keys have the types that they should have. Needs:

    -- What answers with a number if and only if a key has the type, or is not there. That costs
    -- half of what TYPE costs.
    local SIZE = { list = "LLEN", zset = "ZCARD", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN" }

    -- What is wrong with the first key that holds something else than it should, or nil.
    -- `types` is a list of a key, its type, a key, its type …
    local function mistyped(types)
      for at = 1, #types, 2 do
        local key, should_be = types[at], types[at + 1]
        local size = redis.pcall(SIZE[should_be], key)
        if type(size) ~= "number" then
          if not size.err:find("WRONGTYPE", 1, true) then
            return key .. " may not be used by this user, or not from here"
          end
          local found = attempt("TYPE", key)
          return key .. " is " .. (found and "a " .. found.ok or "something else") .. " and should be a " .. should_be
        end
      end
      return nil
    end

    --- includes/finish/types_to_write.lua
    -- What a call that finishes jobs writes without having read it before, but for keys of jobs and parents. Needs no
    -- other include.

    -- The keys, with their types.
    local function types_to_write(queue)
      return {
        queue.active, "list", queue.stalled, "set", queue.completed, "zset", queue.failed, "zset",
        queue.marker, "zset", queue.events, "stream",
      }
    end

    --- includes/queue/newest_events.lua
    -- The newest events of a queue: what jobs whose hashes are gone cannot tell any more. Needs:

    -- Of some 10,000 that there may be: to read all would block Redis for long.
    local NEWEST_EVENTS = 1000

    -- Each is its id and its fields, the newest one first. None where the user may not read them.
    local function newest_events(queue)
      return attempt("XREVRANGE", queue.events, "+", "-", "COUNT", NEWEST_EVENTS) or {}
    end

    --- includes/queue/told.lua
    -- Which jobs the newest events tell of. Needs:

    -- The ids of those to which this has happened, as keys of a table.
    local function ids_told_of(queue, event)
      local ids = {}
      for _, entry in ipairs(newest_events(queue)) do
        if entry[2][2] == event and entry[2][4] then
          ids[entry[2][4]] = true
        end
      end
      return ids
    end

    --- includes/queue/drop.lua
    -- How a job leaves `active` whose hash is gone. Needs no other include.

    -- Removes the mark of a job. Hardly ever is any job marked: that is looked at once in a script.
    local function remove_mark(queue, id)
      if queue.has_marks == nil then
        queue.has_marks = redis.call("SCARD", queue.stalled) > 0
      end
      if queue.has_marks then
        redis.call("SREM", queue.stalled, id)
      end
    end

    -- Takes a job out of `active` whose hash is gone: somebody removed it while it ran. Its hash is
    -- not written again. Returns whether it was there.
    local function drop_from_active(queue, id)
      redis.call("DEL", queue.prefix .. id .. ":lock")
      remove_mark(queue, id)
      return redis.call("LREM", queue.active, -1, id) > 0
    end

    --- includes/queue/key_names.lua
    -- Which names the keys of a queue have. Needs no other include.

    local NAMES = " wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events "
      .. "id limiter priority repeat waiting-children "

    -- The parts before the first colon and after the last one that only keys of a queue have. A
    -- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`. Other
    -- ids have no colon, or two: so says BullMQ.
    local FIRST_PARTS = " de dn echomq stalled-check "
    local LAST_PARTS = " lock released logs dependencies processed failed unsuccessful "

    local function is_one_of(names, name)
      return name:find("^[a-z-]+$") and names:find(" " .. name .. " ", 1, true) and true or false
    end

    -- Whether an id is the name of a key that is not a job's hash.
    local function is_name_of_key(id)
      local first = id:match("^([^:]*):")
      if not first then
        return id == "" or is_one_of(NAMES, id)
      elseif first == "repeat" then
        return not id:find(":%d+$")
      elseif first == "metrics" then
        return id:find("^metrics:%l+$") ~= nil or id:find("^metrics:%l+:data$") ~= nil
      end
      local _, colons = id:gsub(":", "")
      return is_one_of(FIRST_PARTS, first) or colons ~= 2 and is_one_of(LAST_PARTS, id:match("([^:]*)$"))
    end

    --- includes/queue/events.lua
    -- The stream of events, which is kept near its greatest length. A script that emits many
    -- events trims it once, before them. Needs no other include; the queue's meta must have been read.

    local function trim_events(queue)
      if not queue.is_trimmed then
        redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
        queue.is_trimmed = true
      end
    end

    local function emit(queue, event, id, ...)
      redis.call("XADD", queue.events, "*", "event", event, "jobId", id, ...)
    end

    --- includes/queue/mark_due.lua
    -- How idle workers learn when the next delayed job is due. Needs:

    local function mark_next_due(queue)
      local due = next_due(queue)
      if due then
        redis.call("ZADD", queue.marker, digits(due), "1")
      end
    end

    --- includes/queue/delay.lua
    -- How a job comes to wait for a time. Needs:

    local MOST_EXACT = 2 ^ 53 -- beyond it, doubles have no room for places in a ms

    -- A ms has 4,096 places for jobs, which keep their order. When they are taken, the next ms has
    -- more: a job may come a little late, and never before one that came earlier.
    local function place_of(queue, due)
      local lowest, highest = due * 4096, due * 4096 + 4095
      local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
        "WITHSCORES", "LIMIT", 0, 1)[2]
      if not last then
        return lowest
      elseif tonumber(last) < highest or highest >= MOST_EXACT then
        return math.min(tonumber(last) + 1, highest)
      end
      return place_of(queue, due + 1)
    end

    -- Delays a job.
    local function delay(queue, id, due)
      redis.call("ZADD", queue.delayed, digits(place_of(queue, due)), id)
      emit(queue, "delayed", id, "delay", digits(due))
      mark_next_due(queue)
    end

    --- includes/queue/join.lua
    -- How the lists `wait` and `paused` become one. Needs:

    local MOVED_TOGETHER = 1000 -- ids in one command; Lua unpacks no more than 8,000

    -- When the job was added that a list lets go first, in ms.
    local function age_of_next(queue, list)
      return number(attempt("HGET", queue.prefix .. redis.call("LINDEX", list, -1), "timestamp")) or 0
    end

    -- Moves all ids of one list to another, before those that are there or after them.
    local function move_ids(from, to, goes_first)
      local pop, push = goes_first and "LPOP" or "RPOP", goes_first and "RPUSH" or "LPUSH"
      local ids = redis.call(pop, from, MOVED_TOGETHER)
      while ids and #ids > 0 do
        redis.call(push, to, unpack(ids))
        ids = redis.call(pop, from, MOVED_TOGETHER)
      end
    end

    -- Joins both lists into `target`, by default the longer one, and returns its key. The list whose
    -- next job is older goes first, and the shorter one moves.
    local function join_lists(queue, target)
      local waiting, paused = redis.call("LLEN", queue.wait), redis.call("LLEN", queue.paused)
      local longer, shorter = queue.wait, queue.paused
      if paused > waiting then
        longer, shorter = queue.paused, queue.wait
      end
      if waiting > 0 and paused > 0 then
        local ages = { age_of_next(queue, queue.wait), age_of_next(queue, queue.paused) }
        local first = (ages[1] < ages[2] or ages[1] == ages[2] and target ~= queue.wait) and queue.wait or queue.paused
        move_ids(shorter, longer, shorter == first)
      end
      if target and target ~= longer and waiting + paused > 0 then
        redis.call("RENAME", longer, target)
      end
      return target or longer
    end

    --- includes/queue/line.lua
    -- How a job comes to wait for a worker: in `wait`, in `paused`, or in `prioritized`. The
    -- queue's meta must have been read. Needs:

    -- Jobs of one priority are fetched in the order in which they came.
    local function priority_score(queue, priority)
      local key = queue.prefix .. "pc"
      local count = counter(redis.call("GET", key)) + 1
      redis.call("SET", key, digits(count))
      return digits(priority * 2 ^ 32 + count % 2 ^ 32)
    end

    -- Makes a job available. With LPUSH it is fetched after those in the list, with RPUSH before them.
    local function make_available(queue, id, priority, push)
      if priority > 0 then
        redis.call("ZADD", queue.prioritized, priority_score(queue, priority), id)
      else
        redis.call(push, waiting_list(queue), id)
      end
    end

    --- includes/queue/add.lua
    -- How a new job, whose hash is there, comes into a queue. The queue's meta must have been read. Needs:

    -- Makes a new job available now, or when it is due in ms (0 for now). One that `is_first` is
    -- fetched before all that wait, as BullMQ's `lifo` says; once delayed, it is one among others. Returns whether
    -- it is available, so that a worker is to be woken.
    local function add_to_queue(queue, id, name, priority, due, is_first)
      redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", "added", "jobId", id, "name", name)
      if due > 0 then
        delay(queue, id, due)
        return false
      elseif priority > 0 then
        make_available(queue, id, priority)
      else
        redis.call(is_first and "RPUSH" or "LPUSH", waiting_list(queue), id)
      end
      redis.call("XADD", queue.events, "*", "event", "waiting", "jobId", id)
      return true
    end

    --- includes/finish/deduplication.lua
    -- The key that keeps a second job of a deduplication id away until the first has ended. Needs:

    -- A deduplication key with a TTL ends by itself; one that names another job is that job's.
    local function release_deduplication(queue, deduplication_id, id)
      local key = queue.prefix .. "de:" .. deduplication_id
      if attempt("GET", key) == id and redis.call("PTTL", key) == -1 then
        redis.call("DEL", key)
      end
    end

    --- includes/finish/next_job.lua
    -- What the end of a job means to its deduplication id: the key that keeps a second job away is
    -- released, and the job that came meanwhile (keepLastIfActive) is added. Needs:

    local function is_free(queue, id)
      return not is_reserved(id) and redis.call("EXISTS", queue.prefix .. id) == 0
    end

    -- The id that the job was given when it came, unless a job has it by now: then one that is free.
    local function id_of_next(queue, id)
      local count, step = counter(redis.call("GET", queue.prefix .. "id")) + 1, 1
      redis.call("SET", queue.prefix .. "id", digits(count))
      if id and is_free(queue, id) then
        return id
      end
      while not is_free(queue, digits(count)) do -- the counter was lost: find the end of the ids soon
        count, step = count + step, step * 2
      end
      redis.call("SET", queue.prefix .. "id", digits(count))
      return digits(count)
    end

    -- The job that is stored under a key: its fields, opts, delay and priority, and what names it to others.
    local function read_stored(stored)
      local found = redis.call("HMGET", stored, "name", "data", "opts", "pk", "pd", "pdk", "rjk", "jid")
      local opts = object(found[3])
      return {
        name = found[1] or "", data = found[2] or "{}", opts_text = found[3] or "{}", opts = opts,
        parent_key = found[4], parent = found[5], dependencies = found[6], scheduler = found[7], own_id = found[8],
        delay = math.max(number(opts.delay) or 0, 0), priority = math.max(number(opts.priority) or 0, 0),
      }
    end

    -- Writes the hash of a job.
    local function write_next(key, job, deduplication_id, timestamp)
      redis.call("HSET", key, "name", job.name, "data", job.data, "opts", job.opts_text, "timestamp", timestamp,
        "delay", digits(job.delay), "priority", digits(job.priority), "deid", deduplication_id)
      for name, value in pairs({ parentKey = job.parent_key, parent = job.parent, rjk = job.scheduler }) do
        if value then
          redis.call("HSET", key, name, value)
        end
      end
    end

    -- Lets a job keep others away in its turn.
    local function hold_deduplication(queue, deduplication_id, id, opts)
      local key, rule = queue.prefix .. "de:" .. deduplication_id, type(opts.de) == "table" and opts.de or {}
      local ttl = rule.keepLastIfActive ~= true and number(rule.ttl) or 0
      if ttl >= 1 then
        redis.call("SET", key, id, "PX", digits(math.floor(ttl)))
      else
        redis.call("SET", key, id)
      end
    end

    -- Adds the job that waits under `dn:<deduplication id>`, if there is one. Returns why it
    -- stays there when it cannot be added.
    local function add_next_job(queue, deduplication_id, timestamp)
      local stored = queue.prefix .. "dn:" .. deduplication_id
      if redis.call("EXISTS", stored) == 0 then
        return nil
      end
      local fault = mistyped(types_of(queue, stored, "hash", queue.prefix .. "id", "string"))
      if fault then
        return "the job that waits for its end was not added: " .. fault
      end
      local job = read_stored(stored)
      local id = id_of_next(queue, job.own_id)
      local key, due = queue.prefix .. id, job.delay > 0 and timestamp + job.delay or 0
      hold_deduplication(queue, deduplication_id, id, job.opts)
      write_next(key, job, deduplication_id, timestamp)
      if add_to_queue(queue, id, job.name, job.priority, due, job.opts.lifo == true) then
        wake(queue)
      end
      if job.dependencies and job.parent_key and attempt("EXISTS", job.parent_key) == 1 then
        attempt("SADD", job.dependencies, key)
      end
      redis.call("DEL", stored)
      return nil
    end

    -- To be called when a job with a deduplication id has ended, in whichever way. Returns what went
    -- wrong, if anything did.
    local function end_deduplication(queue, deduplication_id, id, timestamp)
      if not deduplication_id then
        return nil
      end
      release_deduplication(queue, deduplication_id, id)
      return add_next_job(queue, deduplication_id, timestamp)
    end

    --- includes/finish/gone.lua
    -- What the end of a job whose hash is gone means: somebody removed it while it ran, or Redis has evicted it. Needs:

    -- The value that follows a name in the fields of an event, or nil.
    local function value_in(fields, name)
      for at = 1, #fields, 2 do
        if fields[at] == name then
          return fields[at + 1]
        end
      end
      return nil
    end

    -- The deduplication ids of the jobs for whose end others wait, by the ids of these jobs: the events of
    -- those that came meanwhile name both.
    local function deduplication_ids(queue)
      local found = {}
      for _, entry in ipairs(newest_events(queue)) do
        local fields = entry[2]
        if fields[2] == "deduplicated" and fields[4] and not found[fields[4]] then
          found[fields[4]] = value_in(fields, "deduplicationId")
        end
      end
      return found
    end

    -- Adds the job that waits for the end of one that is gone. Returns what went wrong, if anything did.
    local function follow_gone_job(queue, id, deduplication_id, timestamp)
      if deduplication_id and attempt("GET", queue.prefix .. "de:" .. deduplication_id) == id then
        return end_deduplication(queue, deduplication_id, id, timestamp)
      end
      return nil
    end

    -- Takes a job that is gone out of `active`, and adds the one that waits for its end. Returns whether
    -- it was there, and what went wrong, if anything did.
    local function end_gone_job(queue, id, timestamp)
      return drop_from_active(queue, id), follow_gone_job(queue, id, deduplication_ids(queue)[id], timestamp)
    end

    --- includes/parents/children.lua
    -- Whether the children of a flow parent let it complete. Needs no other include.

    -- Why a job may not complete, or nil: children that it has not waited for, or one that failed
    -- and forbids it.
    local function children_forbid(key, id)
      if redis.call("EXISTS", key .. ":dependencies", key .. ":unsuccessful") == 0 then
        return nil
      elseif redis.call("EXISTS", key .. ":dependencies") == 1 then
        return "Job " .. id .. " has pending dependencies: it cannot complete before its children"
      end
      return "Cannot complete job " .. id .. " because it has at least one failed child"
    end

    --- includes/finish/outcome.lua
    -- What finishing a job comes to when its worker cannot finish it. Needs:

    local NOT_OWNED, GONE, FINISHED, FAILED_INSTEAD = 0, -1, 1, 2

    -- Whether a job has ended so with this `ats` and `stc`: nobody fetched it since, no check has failed it.
    local function has_ended(queue, job, target, value)
      if not redis.call("ZSCORE", queue[target], job.id) then
        return false
      end
      local found = redis.call("HMGET", job.key, "ats", "stc", target == "failed" and "failedReason" or "returnvalue")
      local started, stalls = ARGV[job.at + 5], ARGV[job.at + 6]
      return counter(found[1]) == counter(started) and counter(found[2]) == counter(stalls) and found[3] == value
    end

    -- The outcome for a job whose hash is gone, or whose lock does not hold its worker's token, and a list of what
    -- went wrong. A call that was sent twice finds what the first one has done. Takes the `job` and `how` of finish/job.
    local function outcome_without_job(queue, job, how)
      local id, target = job.id, job.target
      if job.held and job.held ~= job.token then
        return NOT_OWNED
      elseif redis.call("EXISTS", job.key) == 1 then
        local forbidden = target == "completed" and children_forbid(job.key, id)
        if has_ended(queue, job, target, job.value) then
          return FINISHED
        elseif forbidden and has_ended(queue, job, "failed", forbidden) then
          return FAILED_INSTEAD, { forbidden }
        end
        return NOT_OWNED
      elseif job.held or redis.call("LPOS", queue.active, id) then
        how.has_written = true
        local _, fault = end_gone_job(queue, id, how.timestamp)
        return GONE, { fault }
      end
      return ids_told_of(queue, target)[id] and FINISHED or GONE
    end

    --- includes/finish/own_retention.lua
    -- Which finished jobs are kept, and for how long, where a job says it itself. Needs:

    -- How many finished jobs to keep, from removeOnComplete or removeOnFail: a table that may
    -- have `count` and `age` (seconds), or `keep` when neither is said. The job's own `count` or `age` alone leaves no
    -- other bound.
    local function own_retention(value, keep)
      if value == true then
        return { count = 0 }
      end
      local rule = type(value) == "table" and value or { count = value }
      local count, age = number(rule.count), number(rule.age)
      return (count or age) and { count = count and math.floor(count), age = age } or keep
    end

    --- includes/finish/retain.lua
    -- Whether a job stays among the finished ones. Needs:

    -- Puts a job among the finished ones, or removes it when none are kept.
    local function retain(queue, finished, id, keep, timestamp)
      if keep.count == 0 then
        redis.call("ZREM", finished, id)
        remove_jobs(queue, { id })
      else
        redis.call("ZADD", finished, timestamp, id)
        prune(queue, finished, keep, tonumber(timestamp))
      end
    end

    --- includes/finish/stacktrace.lua
    -- The stack traces that a failed job keeps. Needs:

    local MOST_TRACES = 100 -- of a job whose opts set no limit
    local LARGEST_LIMIT = 1000

    -- The field `stacktrace` after one more failure, a JSON list of texts. `earlier` is the field
    -- before it. The opts may say how many are kept at most (stackTraceLimit), even none.
    local function stacktrace_of(opts, earlier, latest)
      local limit = math.min(math.floor(number(opts.stackTraceLimit) or MOST_TRACES), LARGEST_LIMIT)
      if limit == 0 then
        return "[]"
      elseif limit < 0 then
        limit = MOST_TRACES
      end
      local is_list, traces = pcall(cjson.decode, earlier or "[]")
      if not is_list or type(traces) ~= "table" or #traces == 0 then
        return latest
      end
      traces[#traces + 1] = cjson.decode(latest)[1]
      local is_json, kept = pcall(cjson.encode, { unpack(traces, math.max(#traces - limit + 1, 1)) })
      return is_json and kept or latest -- others may have written numbers that are none in JSON
    end

    --- includes/queue/keys.lua
    -- The keys of a queue, in one table that the other includes take as `queue`; queue/meta adds what the meta says to
    -- the same table. Needs:

    -- All keys of the queue with a prefix that ends in a colon.
    local function queue_at(prefix)
      local queue = common_keys(prefix)
      add_job_keys(queue)
      queue.pc, queue["repeat"] = prefix .. "pc", prefix .. "repeat"
      queue["waiting-children"] = prefix .. "waiting-children"
      queue.untold, queue["untold-jobs"] = prefix .. "stalled-check:untold", prefix .. "stalled-check:untold:jobs"
      return queue
    end

    --- includes/parents/parent.lua
    -- The flow parent of a job, which may live in another queue. Needs:

    -- Where a job's flow parent lives, or nil for a job without one: its key, id and queue. A job
    -- is a table of `parent`, its decoded field, and `parent_key`.
    local function parent_of(job)
      local data = job.parent
      local key, id, base = job.parent_key, data.id, data.queueKey
      if type(id) == "number" then
        id = digits(id)
      end
      if type(id) == "string" and type(base) == "string" then
        key = key or (base .. ":" .. id)
      elseif key then
        base, id = key:match("^(.*):(.-)$")
      end
      if not key or not base then
        return nil
      end
      return { key = key, id = id, queue = queue_at(base .. ":") }
    end

    -- What is wrong with the keys of a parent, or nil. They may be out of reach: on another
    -- node of a cluster, or for an ACL user that may not touch them.
    local function unfit_parent(parent)
      return mistyped(types_of(parent.queue, parent.key, "hash", parent.key .. ":dependencies", "set",
        parent.key .. ":processed", "hash", parent.key .. ":failed", "hash", parent.key .. ":unsuccessful", "zset"))
    end

    -- The parent of a job, which is to be told something; nil without one, or with why it cannot be told.
    local function parent_to_tell(job)
      local parent = parent_of(job)
      local fault = parent and unfit_parent(parent)
      if fault then
        return nil, "its parent was not told: " .. fault
      end
      return parent, nil
    end

    --- includes/parents/release.lua
    -- How a flow parent that has waited for its children becomes available. Needs:

    -- Moves a parent out of the set in which it waits to the front of its queue; a delay of
    -- its own comes first.
    local function release_parent(parent, from, timestamp)
      local queue = parent.queue
      if redis.call("EXISTS", parent.key) == 0 or redis.call("ZREM", from, parent.id) == 0 then
        return
      end
      read_meta(queue)
      local attributes = redis.call("HMGET", parent.key, "priority", "delay")
      local own_delay = number(attributes[2]) or 0
      if own_delay > 0 then
        delay(queue, parent.id, tonumber(timestamp) + own_delay)
      else
        make_available(queue, parent.id, number(attributes[1]) or 0, "RPUSH")
        wake(queue)
        emit(queue, "waiting", parent.id, "prev", "waiting-children")
      end
    end

    --- includes/parents/failure.lua
    -- What a flow parent learns of a child that failed. Needs:

    local function fail_parent(parent, child_key, timestamp)
      local queue = parent.queue
      redis.call("ZADD", parent.key .. ":unsuccessful", timestamp, child_key)
      if redis.call("EXISTS", parent.key) == 0 then
        return
      end
      local from = redis.call("ZSCORE", queue["waiting-children"], parent.id) and queue["waiting-children"]
        or redis.call("ZSCORE", queue.delayed, parent.id) and queue.delayed
      if from then
        redis.call("HSET", parent.key, "defa", "child " .. child_key .. " failed", "delay", 0)
        release_parent(parent, from, timestamp)
      end
    end

    -- Tells the parent of a failed child, as the first of these flags says: fpof fails the
    -- parent, cpof lets it go on at once, idof and rdof no longer wait for the child. Returns
    -- what is wrong with the parent, if anything is.
    local function tell_parent_of_failure(job, child_key, reason, timestamp)
      local parent, fault = parent_to_tell(job)
      if not parent then
        return fault
      end
      local flag
      for _, flags in ipairs({ job.parent, job.opts }) do
        for _, name in ipairs({ "fpof", "cpof", "idof", "rdof" }) do
          flag = flag or (flags[name] and flags[name] ~= cjson.null and name)
        end
      end
      local dependencies = parent.key .. ":dependencies"
      if not flag or redis.call("SREM", dependencies, child_key) == 0 then
        return nil
      end
      if flag == "fpof" then
        fail_parent(parent, child_key, timestamp)
        return nil
      end
      if flag ~= "rdof" then
        redis.call("HSET", parent.key .. ":failed", child_key, reason)
      end
      if flag == "cpof" or redis.call("SCARD", dependencies) == 0 then
        release_parent(parent, parent.queue["waiting-children"], timestamp)
      end
      return nil
    end

    --- includes/finish/failed.lua
    -- How ONE job fails that its worker holds. Needs:

    -- The first bytes of a text, without a part of a character at the end.
    local function first_bytes(text, count)
      if (text:byte(count + 1) or 0) < 128 or text:byte(count + 1) > 191 then
        return text:sub(1, count)
      end
      return (text:sub(1, count):gsub("[\192-\255][\128-\191]*$", ""))
    end

    -- An event carries no longer reason than `most` bytes: the whole one is in the job's hash.
    local function emit_failed(queue, id, reason, most, attempts_made)
      emit(queue, "failed", id, "failedReason", #reason <= most and reason or first_bytes(reason, most), "prev", "active")
      emit(queue, "retries-exhausted", id, "attemptsMade", attempts_made)
    end

    -- Writes how a job failed, and tells the others. Takes the `job` and `how` of finish/job; `child` is what
    -- tell_parent_of_failure takes. Returns what could not be told.
    local function fail_job(queue, job, child, attempts, reason, how)
      local key, latest, trace = job.key, ARGV[job.at + 4], {}
      local found = redis.call("HMGET", key, "stacktrace", "defa")
      if latest ~= "" then
        trace = { "stacktrace", stacktrace_of(child.opts, found[1], latest) }
      end
      redis.call("HSET", key, "atm", attempts, "finishedOn", how.timestamp, "failedReason", reason, unpack(trace))
      if found[2] then
        redis.call("HDEL", key, "defa")
      end
      emit_failed(queue, job.id, reason, how.event_bytes, attempts)
      return tell_parent_of_failure(child, key, reason, how.timestamp)
    end

    --- includes/finish/count.lua
    -- BullMQ's own counts of finished jobs, a point for each minute, of which dashboards draw charts.
    -- Needs:

    local PUSHED_AT_ONCE = 5000 -- Lua unpacks no more than 8,000

    -- Adds the point of a minute, and one for each minute after it. The newest is at the head.
    local function add_points(key, first, minutes, most)
      local new = { digits(first) }
      for minute = 2, minutes do
        new[minute] = 0
      end
      for at = 1, #new, PUSHED_AT_ONCE do
        attempt("LPUSH", key, unpack(new, at, math.min(at + PUSHED_AT_ONCE - 1, #new)))
      end
      attempt("LTRIM", key, 0, most - 1)
    end

    -- Counts one job that has finished. `points` is how many are kept. Minutes in which no job finished
    -- become zeros when the next one does.
    local function count_finished(queue, target, points, timestamp)
      local key = queue.prefix .. "metrics:" .. target
      local fields = attempt("HMGET", key, "count", "prevTS", "prevCount")
      if not fields then
        return
      end
      local count, previous, counted = counter(fields[1]), fields[2], counter(fields[3])
      local minutes = previous and math.min(math.floor(timestamp / 60000) - math.floor(counter(previous) / 60000), points)
      if not previous then
        redis.call("HSET", key, "count", digits(count + 1), "prevTS", timestamp, "prevCount", 0)
      elseif minutes < 1 then
        redis.call("HSET", key, "count", digits(count + 1))
      else
        redis.call("HSET", key, "count", digits(count + 1), "prevTS", timestamp, "prevCount", digits(count))
        add_points(key .. ":data", count - counted, minutes, points)
      end
    end

    --- includes/finish/faults.lua
    -- What is told of a job with which something went wrong. Needs no other include.

    -- What went wrong, of what may have.
    local function faults_of(...)
      local faults = {}
      for at = 1, select("#", ...) do
        faults[#faults + 1] = select(at, ...) or nil
      end
      return faults
    end

    --- includes/parents/completion.lua
    -- What a flow parent learns of a child that completed. Needs:

    -- Gives the parent the return value, and makes it available when this was the last of its
    -- children. A parent that is out of reach cannot be told: the job is completed all the same.
    -- Returns what is wrong with the parent, if anything is.
    local function tell_parent_of_completion(job, child_key, value, timestamp)
      local parent, fault = parent_to_tell(job)
      if not parent then
        return fault
      end
      local dependencies = parent.key .. ":dependencies"
      if redis.call("SREM", dependencies, child_key) == 1 then
        redis.call("HSET", parent.key .. ":processed", child_key, value)
        if redis.call("SCARD", dependencies) == 0 then
          release_parent(parent, parent.queue["waiting-children"], timestamp)
        end
      end
      return nil
    end

    --- includes/finish/fault.lua
    -- Whose matter an error is that comes up while a job finishes. Needs no other include.

    -- What went wrong with one job: a key of the wrong type. What else goes wrong is the server's, and the client sends
    -- the call again.
    local function fault_of_job(err)
      local fault = type(err) == "table" and err.err or err
      if not fault:find("WRONGTYPE", 1, true) then
        error(err, 0)
      end
      return fault
    end

    --- includes/queue/wake_for_waiting.lua
    -- How an idle worker is woken where it is not known whether any job waits. The queue's meta must have been read. Needs:

    -- Wakes one if jobs wait. Those in `paused` count as well, where a resume has left them: no worker of a paused queue is
    -- woken.
    local function wake_for_waiting(queue)
      if redis.call("EXISTS", queue.wait, queue.paused, queue.prioritized) > 0 then
        wake(queue)
      end
    end

    --- includes/fetch/promote.lua
    -- How delayed jobs that are due become available. The queue's meta must have been read. Needs:

    local PROMOTED_AT_ONCE = 1000

    local function promote_due_jobs(queue, timestamp)
      local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", digits((timestamp + 1) * 4096 - 1),
        "LIMIT", 0, PROMOTED_AT_ONCE)
      for _, id in ipairs(due) do
        local key = queue.prefix .. id
        local priority = number(attempt("HGET", key, "priority")) or 0
        make_available(queue, id, priority, "LPUSH")
        redis.call("ZREM", queue.delayed, id)
        if redis.call("EXISTS", key) == 1 then
          attempt("HSET", key, "delay", 0)
        end
        emit(queue, "waiting", id, "prev", "delayed")
      end
    end

    --- includes/fetch/limit.lua
    -- The rate limit of a queue, as BullMQ keeps it: `limiter` counts the jobs that were fetched in
    -- a window of `duration` ms, and at `max` of them none is fetched until its TTL ends. The
    -- queue's meta must have been read. Needs no other include.

    local SET_BY_HAND = 2 ^ 53 - 1 -- what `queue.rateLimit(ms)` of BullMQ writes, whether there is a `max` or not

    -- How many jobs may be fetched now, and for how many ms none may if that is 0.
    local function room_under_limit(queue)
      local rule = queue.rate_limit or {}
      local max = rule.duration and rule.max
      local fetched = redis.call("GET", queue.limiter)
      if fetched and not fetched:match("^%d+$") then
        redis.call("DEL", queue.limiter)
        fetched = false
      end
      fetched = tonumber(fetched or 0)
      if fetched >= (max or SET_BY_HAND) then
        local ttl = redis.call("PTTL", queue.limiter)
        if ttl > 0 then
          return 0, ttl
        end
        redis.call("DEL", queue.limiter) -- its window has ended, or it would never end
        fetched = 0
      end
      return max and math.max(max - fetched, 1) or math.huge, 0
    end

    --- includes/fetch/window.lua
    -- The window of a rate limit, of which fetch/limit tells. Needs:

    -- Counts jobs that were fetched. The first ones start the window.
    local function count_under_limit(queue, count)
      local max, duration = queue.rate_limit.max, queue.rate_limit.duration
      if duration and max and count > 0 and redis.call("INCRBY", queue.limiter, count) == count then
        redis.call("PEXPIRE", queue.limiter, digits(math.max(math.floor(math.abs(duration)), 1)))
      end
    end

    --- includes/fetch/suspects.lua
    -- Which jobs may run now that have stalled before, the suspects: one of them may kill its worker.
    -- Takes the `fetch` of fetch/jobs. Needs no other include.

    -- The field `suspect` of a job says "beside:<ats>" while it runs beside other suspects. If it
    -- stalls then, nobody knows which of them it was: none is charged, the field becomes "alone",
    -- and each runs alone the next time.
    local MUST_RUN_ALONE = "alone"

    -- Whether a suspect may be fetched now, which then records in whose company it runs. `started` is what its `ats`
    -- becomes; `skipped_together` counts those that may run beside others.
    local function may_run(fetch, key, started)
      local suspect = redis.call("HGET", key, "suspect")
      local must_run_alone = suspect == MUST_RUN_ALONE
      if fetch.suspects_wanted < 1 or fetch.is_together and must_run_alone then
        fetch.skipped_together = fetch.skipped_together + (must_run_alone and 0 or 1)
        return false
      end
      fetch.suspects_wanted = fetch.suspects_wanted - 1
      if fetch.is_together then
        redis.call("HSET", key, "suspect", "beside:" .. started)
      elseif suspect and not must_run_alone then
        redis.call("HDEL", key, "suspect")
      end
      return true
    end

    --- includes/fetch/put_back.lua
    -- How ids that were skipped go back to where they were. Needs no other include.

    local function put_back(queue, skipped)
      for at = #skipped, 1, -1 do
        local id, score = unpack(skipped[at])
        if score then
          redis.call("ZADD", queue.prioritized, score, id)
        else
          redis.call("RPUSH", queue.wait, id)
        end
      end
    end

    --- includes/fetch/put_last.lua
    -- How ids that were skipped go to where the next call finds others first. Needs:

    -- Puts them behind all others, or all others of their priority.
    local function put_last(queue, skipped)
      for _, entry in ipairs(skipped) do
        local id, score = unpack(entry)
        if score then
          redis.call("ZADD", queue.prioritized, priority_score(queue, math.floor(tonumber(score) / 2 ^ 32)), id)
        else
          redis.call("LPUSH", queue.wait, id)
        end
      end
    end

    --- includes/fetch/lost_call.lua
    -- The jobs of an earlier call whose reply was lost. Takes the `fetch` of fetch/jobs. Needs:

    local NEWEST_OF_ACTIVE = 1000 -- ids among which lost jobs are searched

    -- Adds the jobs whose locks an earlier call has set, in the order in which it fetched them.
    local function find_jobs_of_call(queue, fetch, lost_id)
      local newest = redis.call("LRANGE", queue.active, 0, NEWEST_OF_ACTIVE - 1)
      for at = #newest, 1, -1 do
        local id = newest[at]
        local key = queue.prefix .. id
        local token = attempt("GET", key .. ":lock")
        local fields = token and token:sub(1, #lost_id + 1) == lost_id .. ":" and read_fields(id, key)
        if fields then
          local duration = lock_duration_of(fetch, fields)
          fetch.jobs[#fetch.jobs + 1] = describe(id, token, fields, digits(counter(fields[3])), duration)
        end
      end
    end

    rare = {
      add_to_queue = add_to_queue,
      children_forbid = children_forbid,
      count_finished = count_finished,
      count_under_limit = count_under_limit,
      delay = delay,
      end_deduplication = end_deduplication,
      fail_job = fail_job,
      fault_of_job = fault_of_job,
      faults_of = faults_of,
      find_jobs_of_call = find_jobs_of_call,
      is_name_of_key = is_name_of_key,
      join_lists = join_lists,
      make_available = make_available,
      may_run = may_run,
      mistyped = mistyped,
      outcome_without_job = outcome_without_job,
      own_retention = own_retention,
      promote_due_jobs = promote_due_jobs,
      put_back = put_back,
      put_last = put_last,
      release_parent = release_parent,
      retain = retain,
      room_under_limit = room_under_limit,
      tell_parent_of_completion = tell_parent_of_completion,
      types_of = types_of,
      types_to_write = types_to_write,
      wake_for_waiting = wake_for_waiting,
    }
  end
  return rare
end

--- commands/finishAndFetch-1.lua

local FIRST_PART = 16

local queue, timestamp = common_keys(ARGV[1]), time_in_ms(ARGV[2])
add_job_keys(queue)
local wanted, lost_id = tonumber(ARGV[10]), ARGV[14]
local finishes, fetches = ARGV[FIRST_PART] ~= nil, wanted > 0 or lost_id ~= ""

local types = ARGV[15] == "1" and (fetches and rarely().types_of(queue, queue.limiter, "string") or rarely().types_to_write(queue))
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
