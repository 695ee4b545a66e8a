--[[
Takes the failures of stalled jobs that the middleware of Dramatiq is still to be told of, and
removes those that have been told. A failure that is taken and not told is taken again once its
lease has ended. A job that is not in `failed` any more, such as a retried one, is not told.

KEYS  1 stalled-check:untold
ARGV  1 key prefix of the queue, with its last colon  2 how many failures to take
      3 lease in ms: how long nobody else takes them  4 and on: ids of jobs that have been told

Returns a list of failures: id, reason, stalls, worker, name and data each.

Cost: O(log N) for each failure; one lookup without any.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/time

local prefix, most, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local queue = queue_at(prefix)
local untold, jobs = KEYS[1], queue["untold-jobs"]

local function forget(id)
  redis.call("ZREM", untold, id)
  redis.call("HDEL", jobs, id)
end

-- The data of a job, or nil when there is nothing to tell of it.
local function data_of(id, recorded)
  if recorded ~= "" then
    return recorded
  end
  return redis.call("ZSCORE", queue.failed, id) and attempt("HGET", prefix .. id, "data")
end

local refused = refusal(queue, { untold, "zset", jobs, "hash", queue.failed, "zset" })
if refused then
  return refused
end
for at = 4, #ARGV do
  forget(ARGV[at])
end
local failures, now = {}, tonumber(time_in_ms(0))
for _, id in ipairs(redis.call("ZRANGEBYSCORE", untold, "-inf", digits(now), "LIMIT", 0, most)) do
  local recorded = redis.call("HGET", jobs, id)
  local reason, stalls, worker, name, data
  if recorded then
    reason, stalls, worker, name, data = unpack(cmsgpack.unpack(recorded))
    data = data_of(id, data)
  end
  if data then
    redis.call("ZADD", untold, digits(now + lease), id)
    failures[#failures + 1] = { id, reason, stalls, worker, name, data }
  else
    forget(id)
  end
end
return failures
