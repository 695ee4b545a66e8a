--[[
Releases what workers hold in a queue whose connections are not there.

KEYS  1 echomq:workers
ARGV  1 key prefix of the queue, with its last colon
      2 grace in ms: how long a worker must have been missing
      3 how many ids of `active` to look at in this call
      4 and 5 where the last call stopped: its offset and its anchor; 0 and empty in the first one
      6 and on: registrations whose connections are not there; after the first call, only those of
        workers that it says are gone

A registration that is missing for the first time is noted, no more. Once it has been missing
for the grace, its worker is gone: each lock whose token begins with the worker's id is
removed and its job is marked, so that the next check recovers it. Whoever sees to that removes
the registration when it is done; until then it is missing anew, for another who looks after
the grace. A registration that is not there any more, because its worker came back with another
connection, releases nothing.

A worker that is gone may have taken the marker of a job that waits, or of when the next delayed one is
due, and then nobody knows: the first call puts both back.

Returns the offset of the next call, or -1 after the last one, its anchor, and for each worker that
is gone a list of its registration and the ids of its jobs, the oldest first. Jobs that an earlier
call has released, and no check has seen to since, are among them.

Works when Redis is at its maxmemory.

Cost: O(1) for each id looked at.
--]]
--- include queue/full
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/put_markers
--- include queue/time
--- include values
--- include crashes/release
--- include crashes/walk

local workers, grace = KEYS[1], number(ARGV[2])
local queue = queue_at(ARGV[1])
local limit, offset, anchor = number(ARGV[3]), number(ARGV[4]), ARGV[5]
local is_first = offset == 0
local now = tonumber(time_in_ms(0))
local gone, found = {}, {}

-- Whether a worker has been missing for long enough; notes when it was missing first.
local function has_gone(registration)
  local score = number(redis.call("ZSCORE", workers, registration))
  if not score then
    return false
  elseif not is_first then
    return true
  end
  local is_over = score < 0 and now + score >= grace
  if score >= 0 or is_over then
    redis.call("ZADD", workers, digits(-now), registration)
  end
  return is_over
end

local function release_locks(ids)
  local locks = {}
  for at, id in ipairs(ids) do
    locks[at] = queue.prefix .. id .. ":lock"
  end
  local tokens = redis.call("MGET", unpack(locks))
  for at = #ids, 1, -1 do -- the oldest first
    local id, token, worker = ids[at], tokens[at], nil
    if token then
      worker = worker_of(token)
    else
      worker = released_from(queue, id)
    end
    local jobs = worker and gone[worker]
    if jobs and not found[id] then -- a copy of the id is no further job
      found[id] = true
      jobs[#jobs + 1] = id
      if token then
        release(queue, id, token)
      end
    end
  end
end

local refused = refusal(queue, types_of(queue, workers, "zset"))
if refused then
  return refused
end
write_although_full(queue)
local lists = {}
for at = 6, #ARGV do
  if has_gone(ARGV[at]) then
    local jobs = { ARGV[at] }
    gone[ARGV[at]:match("^(%S+)")] = jobs
    lists[#lists + 1] = jobs
  end
end
if #lists == 0 then
  return { -1, "" }
end
if is_first then
  put_markers_back(queue)
end
offset, anchor = walk_active(queue.active, limit, offset, anchor, release_locks)
return { offset, anchor, unpack(lists) }
