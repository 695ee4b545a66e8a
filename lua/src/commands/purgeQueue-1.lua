--[[
Removes jobs from a queue, whatever their state, and its job schedulers, a bounded number at a time.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 how many jobs and schedulers to remove at most

Returns how many were removed: 0 when the queue is empty, and then its marks, marker, counters, metrics,
rate limit under way, notes of checks and events are gone as well. The meta stays, which has the settings,
and so do the registrations of workers. With a job goes the key of its deduplication id, even one with a
TTL; one that a job which is gone has left ends by itself.

Cost: O(log N) for each job.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/remove

local prefix, left = ARGV[1], number(ARGV[2])
local queue = queue_at(prefix)
local removed = 0

-- A job that was added meanwhile keeps others of its deduplication id away.
local function forget_deduplication(deduplication_id, id)
  local key = prefix .. "de:" .. deduplication_id
  local holder = attempt("GET", key)
  if holder and (holder == id or redis.call("EXISTS", prefix .. holder) == 0) then
    redis.call("DEL", key)
  end
  redis.call("DEL", prefix .. "dn:" .. deduplication_id)
end

local function remove(ids)
  for _, id in ipairs(ids or {}) do
    local deduplication_id = attempt("HGET", prefix .. id, "deid")
    if deduplication_id then
      forget_deduplication(deduplication_id, id)
    end
    remove_jobs(queue, { id })
    redis.call("DEL", prefix .. id .. ":lock", prefix .. id .. ":released")
  end
  removed = removed + #(ids or {})
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
for _, list in ipairs({ queue.wait, queue.paused, queue.active }) do
  if removed < left then
    remove(redis.call("RPOP", list, left - removed))
  end
end
for _, set in ipairs({ queue.delayed, queue.prioritized, queue.completed, queue.failed, queue["waiting-children"] }) do
  if removed < left then
    local ids = redis.call("ZRANGE", set, 0, left - removed - 1)
    remove(ids)
    for _, id in ipairs(ids) do
      redis.call("ZREM", set, id)
    end
  end
end
if removed < left then
  local schedulers = redis.call("ZRANGE", queue["repeat"], 0, left - removed - 1)
  for _, scheduler in ipairs(schedulers) do
    redis.call("ZREM", queue["repeat"], scheduler)
    redis.call("DEL", queue["repeat"] .. ":" .. scheduler)
  end
  removed = removed + #schedulers
end
if removed == 0 then
  local check, metrics = prefix .. "stalled-check", prefix .. "metrics:"
  redis.call("DEL", queue.stalled, queue.marker, queue.pc, queue.events, queue.limiter, prefix .. "id", check,
    check .. ":last", check .. ":hold", queue.untold, queue["untold-jobs"], metrics .. "completed",
    metrics .. "completed:data", metrics .. "failed", metrics .. "failed:data")
end
return removed
