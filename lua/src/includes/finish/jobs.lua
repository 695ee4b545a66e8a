-- How the jobs finish that have ended since the last call of a worker. The queue's meta must have
-- been read. Needs:
--- include finish/job
--- include finish/retention

local PART_SIZE = 7 -- arguments for each job

-- The outcome of one job, and what went wrong, if anything did. A key of the wrong type is the matter of one
-- job; what else goes wrong is the server's, and the client sends the call again.
local function told(succeeded, outcome, faults)
  if not succeeded then
    local fault = type(outcome) == "table" and outcome.err or outcome
    if not fault:find("WRONGTYPE", 1, true) then
      error(outcome, 0)
    end
    return "?", { fault }
  end
  return outcome, faults and faults[1] and faults
end

-- What the locks of the jobs hold, and whether any of the jobs has children that it waits for, or one that
-- failed. Few jobs have.
local function read_ahead(queue, first)
  local locks, children = {}, {}
  for at = first, #ARGV, PART_SIZE do
    local key = queue.prefix .. ARGV[at]
    locks[#locks + 1] = key .. ":lock"
    children[#children + 1], children[#children + 2] = key .. ":dependencies", key .. ":unsuccessful"
  end
  return redis.call("MGET", unpack(locks)), redis.call("EXISTS", unpack(children)) > 0
end

-- Writes what is the same for all jobs of a call.
local function write_together(queue, how)
  if #how.locks > 0 then
    redis.call("DEL", unpack(how.locks))
  end
  for target, ended in pairs(how.ended) do
    if #ended > 0 then
      redis.call("ZADD", queue[target], unpack(ended))
      prune(queue, queue[target], how.rules[target], how.timestamp)
    end
  end
end

-- Finishes the jobs that the arguments of the script name, from the `first` on: seven for each. What
-- goes wrong with one does not keep the others from finishing. Returns the outcome of each, what went wrong,
-- with the place of the job before it, and whether something was written.
local function finish_jobs(queue, first, timestamp, rules)
  local outcomes, all_faults, has_written = {}, {}, false
  if first > #ARGV then
    return outcomes, all_faults, has_written
  end
  local locks, may_have_children = read_ahead(queue, first)
  local how = { timestamp = timestamp, rules = rules, may_have_children = may_have_children, locks = {},
    ended = { completed = {}, failed = {} }, held = false, token = "", target = "", value = "", stacktrace = "",
    started = "", stalls = "" }
  for at = first, #ARGV, PART_SIZE do
    local id
    id, how.token, how.target, how.value, how.stacktrace, how.started, how.stalls = unpack(ARGV, at, at + PART_SIZE - 1)
    how.held = locks[#outcomes + 1]
    local succeeded, outcome, faults, wrote = pcall(finish_job, queue, id, how)
    outcomes[#outcomes + 1], faults = told(succeeded, outcome, faults)
    if faults then
      all_faults[#all_faults + 1] = { #outcomes, unpack(faults) }
    end
    has_written = has_written or (succeeded and wrote)
  end
  write_together(queue, how)
  return outcomes, all_faults, has_written
end
