-- How the jobs finish that have ended since the last call of a worker. The queue's meta must have
-- been read. Needs:
--- include finish/job
--- include finish/retention

local PART_SIZE = 7 -- arguments for each job

-- What a client is told of one finished job. A key of the wrong type is the matter of one job;
-- what else goes wrong is the server's, and the client sends the call again.
local function told(succeeded, outcome, faults)
  if not succeeded then
    local fault = type(outcome) == "table" and outcome.err or outcome
    if not fault:find("WRONGTYPE", 1, true) then
      error(outcome, 0)
    end
    return { "", fault }
  end
  return faults and faults[1] and { outcome, unpack(faults) } or outcome
end

-- Whether any of the jobs has children that it waits for, or one that failed. Few jobs have.
local function any_has_children(queue, first)
  local keys = {}
  for at = first, #ARGV, PART_SIZE do
    keys[#keys + 1] = queue.prefix .. ARGV[at] .. ":dependencies"
    keys[#keys + 1] = queue.prefix .. ARGV[at] .. ":unsuccessful"
  end
  return redis.call("EXISTS", unpack(keys)) > 0
end

-- Finishes the jobs that the arguments of the script name, from the `first` on: seven for each. What
-- goes wrong with one does not keep the others from finishing. Returns what clients are told of
-- each, and whether something was written.
local function finish_jobs(queue, first, timestamp, rules)
  local outcomes, has_written = {}, false
  local may_have_children = first <= #ARGV and any_has_children(queue, first)
  local how = { timestamp = timestamp, rules = rules, may_have_children = may_have_children, to_prune = {},
    token = "", target = "", value = "", stacktrace = "", started = "", stalls = "" }
  for at = first, #ARGV, PART_SIZE do
    local id
    id, how.token, how.target, how.value, how.stacktrace, how.started, how.stalls = unpack(ARGV, at, at + PART_SIZE - 1)
    local succeeded, outcome, faults, wrote = pcall(finish_job, queue, id, how)
    outcomes[#outcomes + 1] = told(succeeded, outcome, faults)
    has_written = has_written or (succeeded and wrote)
  end
  for target, keep in pairs(how.to_prune) do
    prune(queue, queue[target], keep, timestamp)
  end
  return outcomes, has_written
end
