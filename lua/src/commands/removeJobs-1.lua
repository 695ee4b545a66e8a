--[[
Removes jobs from a queue, whatever their state, unless somebody needs them.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 the time in ms, or 0 for the server's  3 … ids

Returns for each id "done", or why it stays: "locked" by a worker, "scheduled" as the next one of a job
scheduler, "children" when it waits for other jobs of a flow, "parent: …" when its own parent could not be
told, "odd" for what is no job, "gone" without one.

A flow parent no longer waits for a job that is removed. Its deduplication key goes as well, and
the job that has waited for its end (keepLastIfActive) is added.

Cost: O(log N) for each id, and O(N) for those in `wait`, `paused` and `active`.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/time
--- include queue/events
--- include queue/remove
--- include queue/wake_for_waiting
--- include queue/reserved
--- include finish/next_job
--- include parents/parent
--- include parents/release

local prefix, timestamp = ARGV[1], time_in_ms(ARGV[2])
local queue = queue_at(prefix)

-- Whether a job is the one that its scheduler has added for the next time.
local function is_next_of_scheduler(id, scheduler)
  local next_time = scheduler and redis.call("ZSCORE", queue["repeat"], scheduler)
  return next_time and id == "repeat:" .. scheduler .. ":" .. digits(tonumber(next_time))
end

-- Takes an id out of the state that it is in, and returns the name of that state.
local function take_out(id)
  for _, state in ipairs({ "completed", "waiting-children", "delayed", "failed", "prioritized" }) do
    if redis.call("ZREM", queue[state], id) == 1 then
      return state
    end
  end
  for _, state in ipairs({ "wait", "paused", "active" }) do
    if redis.call("LREM", queue[state], 1, id) == 1 then
      return state
    end
  end
  return "unknown"
end

local function release_deduplication_of_removed(id, deduplication_id)
  if deduplication_id and attempt("GET", prefix .. "de:" .. deduplication_id) == id then
    redis.call("DEL", prefix .. "de:" .. deduplication_id)
    add_next_job(queue, deduplication_id, timestamp)
  end
end

-- A parent that waited for nothing else goes on.
local function leave_parent(parent, key)
  local dependencies = parent.key .. ":dependencies"
  if redis.call("SREM", dependencies, key) == 1 and redis.call("SCARD", dependencies) == 0 then
    release_parent(parent, parent.queue["waiting-children"], timestamp)
  end
end

local function remove(id)
  local key = prefix .. id
  local fields = not is_reserved(id) and attempt("HMGET", key, "parentKey", "parent", "deid", "rjk")
  if not fields then
    return "odd"
  elseif redis.call("EXISTS", key) == 0 then
    return "gone"
  elseif redis.call("EXISTS", key .. ":lock") == 1 then
    return "locked"
  elseif is_next_of_scheduler(id, fields[4]) then
    return "scheduled"
  elseif (attempt("SCARD", key .. ":dependencies") or 0) > 0 then
    return "children"
  end
  local parent = parent_of({ parent_key = fields[1], parent = object(fields[2]) })
  local fault = parent and unfit_parent(parent)
  if fault then
    return "parent: " .. fault
  end
  local state = take_out(id)
  redis.call("SREM", queue.stalled, id)
  release_deduplication_of_removed(id, fields[3])
  remove_jobs(queue, { id })
  emit(queue, "removed", id, "prev", state)
  if parent then
    leave_parent(parent, key)
  end
  return "done"
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
trim_events(queue)
local outcomes = {}
for at = 3, #ARGV do
  outcomes[at - 2] = remove(ARGV[at])
end
if queue.concurrency then -- one of them may have had a place in `active`
  wake_for_waiting(queue)
end
return outcomes
