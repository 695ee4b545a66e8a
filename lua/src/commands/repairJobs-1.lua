--[[
Repairs what is wrong with jobs of a queue, if it still is so, without losing one.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 time in ms; 0 or none for the server's
      3 what is wrong:
        "no-job"   the id is in the queue, the job is gone: the id goes
        "nowhere"  the job is there, its id is not in the queue: it becomes available again, or one
                   of the finished jobs if it has finished
        "twice"    the id is in the queue more than once: the place stays that its fields speak for
        "lock"     a lock without a TTL on a job that is not active: the lock goes
        "mark"     a mark on a job that is not active: the mark goes
      4 … ids

Returns for each id "done", or "changed" when that was not so any more.

Cost: O(N) in the ids of `wait`, `paused` and `active`, for each id.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/reserved
--- include queue/time
--- include queue/wake_for_waiting
--- include inspect/page
--- include inspect/places

local prefix, timestamp, fault = ARGV[1], time_in_ms(ARGV[2]), ARGV[3]
local queue = queue_at(prefix)

local function read(id)
  local fields = not is_reserved(id) and attempt("HMGET", prefix .. id, "name", "data", "finishedOn", "failedReason",
    "priority")
  return fields and (fields[1] or fields[2]) and fields or nil
end

local repairs = {
  ["no-job"] = function(id, places)
    local is_there = is_reserved(id) or redis.call("EXISTS", prefix .. id, prefix .. id .. ":lock") > 0
    if #places == 0 or is_there then
      return false
    end
    leave_in(queue, id, places, nil)
    return true
  end,
  nowhere = function(id, places)
    local fields = read(id)
    if #places > 0 or not fields or redis.call("EXISTS", prefix .. id .. ":lock") == 1 then
      return false
    end
    give_place(queue, id, fields, timestamp)
    return true
  end,
  twice = function(id, places)
    local fields = read(id)
    if #places < 2 or not fields then
      return false
    end
    leave_in(queue, id, places, right_place(places, fields, redis.call("EXISTS", prefix .. id .. ":lock") == 1))
    return true
  end,
  lock = function(id, places)
    local key = prefix .. id .. ":lock"
    return not holds(places, "active") and redis.call("PTTL", key) == -1 and redis.call("DEL", key) == 1
  end,
  mark = function(id, places)
    return not holds(places, "active") and redis.call("SREM", queue.stalled, id) == 1
  end,
}

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
local outcomes, has_repaired = {}, false
for at = 4, #ARGV do
  outcomes[at - 3] = repairs[fault](ARGV[at], places_of(queue, ARGV[at])) and "done" or "changed"
  has_repaired = has_repaired or outcomes[at - 3] == "done"
end
if has_repaired and queue.concurrency then -- one of them may have had a place in `active`
  wake_for_waiting(queue)
end
return outcomes
