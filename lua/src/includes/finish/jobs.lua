-- How the jobs finish that have ended since the last call of a worker. The queue's meta must have
-- been read. Needs:
--- include finish/job
--- include finish/prune
--- include rarely finish/fault

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
      outcome, faults = "?", { fault_of_job(outcome) }
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
