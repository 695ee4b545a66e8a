-- Which finished jobs are kept, and for how long. Needs:
--- include values

-- How many finished jobs to keep, from removeOnComplete or removeOnFail: a table that may
-- have `count` and `age` (seconds), empty for all.
local function retention(value)
  if value == true then
    return { count = 0 }
  end
  local rule = type(value) == "table" and value or { count = value }
  local count = number(rule.count)
  return { count = count and math.floor(count), age = number(rule.age) }
end

-- The job's own `count` or `age` alone leaves no other bound.
local function own_retention(value, keep)
  local own = value and retention(value) or keep
  return (own.count or own.age) and own or keep
end

-- What the opts of a job say about it, under the names that the runtimes write; else `keep`.
local function retention_of_completed(opts, keep)
  return own_retention(opts.removeOnComplete or opts.roc or opts.remove_on_complete, keep)
end

local function retention_of_failed(opts, keep)
  return own_retention(opts.removeOnFail or opts.rof or opts.remove_on_fail, keep)
end

local function retention_of(target, opts, rules)
  if target == "failed" then
    return retention_of_failed(opts, rules.failed)
  end
  return retention_of_completed(opts, rules.completed)
end
