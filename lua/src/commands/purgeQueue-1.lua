--[[
Removes jobs from a queue, whatever their state, a bounded number at a time.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 how many jobs to remove at most

Returns how many were removed: 0 when the queue is empty, and then its marks, its marker,
its counters and its events are gone as well. The meta stays.

Cost: O(log N) for each job.
--]]
--- include values
--- include queue/keys
--- include queue/meta
--- include queue/remove
--- include finish/deduplication

local prefix, left = ARGV[1], number(ARGV[2])
local queue = queue_at(prefix)
local removed = 0

local function remove(ids)
  for _, id in ipairs(ids or {}) do
    local deduplication_id = attempt("HGET", prefix .. id, "deid")
    if deduplication_id then
      release_deduplication(queue, deduplication_id, id)
      redis.call("DEL", prefix .. "dn:" .. deduplication_id)
    end
    remove_job(queue, id)
    redis.call("DEL", prefix .. id .. ":lock")
  end
  removed = removed + #(ids or {})
end

local fault = refusal(queue, types_of(queue))
if fault then
  return redis.error_reply("ECHOMQ " .. fault)
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
if removed == 0 then
  redis.call("DEL", queue.stalled, queue.marker, queue.pc, queue.events, prefix .. "id", prefix .. "stalled-check",
    queue.untold, queue["untold-jobs"])
end
return removed
