-- Which finished jobs are kept, and for how long. Needs:
--- include values
--- include queue/remove

-- The most finished jobs that one more finished job removes.
local PRUNED_AT_ONCE = 1000

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

-- Removes what a finished set holds beyond `keep`.
local function prune(queue, finished, keep, timestamp)
  local surplus = {}
  if keep.age then
    surplus = redis.call("ZRANGEBYSCORE", finished, "-inf", digits(timestamp - keep.age * 1000),
      "LIMIT", 0, PRUNED_AT_ONCE)
  end
  if #surplus > 0 then
    remove_jobs(queue, surplus)
    redis.call("ZREM", finished, unpack(surplus))
  end
  if keep.count and keep.count >= 0 then
    local excess = math.min(redis.call("ZCARD", finished) - keep.count, PRUNED_AT_ONCE)
    local popped, ids = excess > 0 and redis.call("ZPOPMIN", finished, excess) or {}, {}
    for at = 1, #popped, 2 do
      ids[#ids + 1] = popped[at]
    end
    remove_jobs(queue, ids)
  end
end

-- Puts a job among the finished ones, or removes it when none are kept.
local function retain(queue, finished, id, keep, timestamp)
  if keep.count == 0 then
    redis.call("ZREM", finished, id)
    remove_job(queue, id)
  else
    redis.call("ZADD", finished, timestamp, id)
    prune(queue, finished, keep, tonumber(timestamp))
  end
end
