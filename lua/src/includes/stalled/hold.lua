-- Protection from mass stalls: a sweep that would recover too many of the active jobs at once
-- does nothing for one round. It costs little: at most 1,000 ids are looked at. Takes the `call`
-- of stalled/call. Needs:
--- include values
--- include stalled/lookup

local SAMPLE, PARTS = 1000, 20 -- how many ids are looked at, and in how many parts of a long list

-- The ids of the active jobs, or of a long list as many as the sample has from all over it.
local function sample_of(active, length)
  if length <= SAMPLE then
    return { redis.call("LRANGE", active, 0, -1) }, length
  end
  local parts, size = {}, SAMPLE / PARTS
  for part = 0, PARTS - 1 do
    local first = math.floor(part * (length - size) / (PARTS - 1))
    parts[#parts + 1] = redis.call("LRANGE", active, first, first + size - 1)
  end
  return parts, SAMPLE
end

-- How many of these ids would be recovered or failed: marked, without a lock, and not finished.
-- Those that were released since their worker was killed are no riddle, and do not count.
local function count_stalled(call, ids)
  local lockless, releases = {}, {}
  for at, place in ipairs(lockless_places(call, ids)) do
    lockless[at] = ids[place]
  end
  local marked = membership("SMISMEMBER", call.queue.stalled, lockless)
  local completed = membership("ZMSCORE", call.queue.completed, lockless)
  local failed = membership("ZMSCORE", call.queue.failed, lockless)
  for at, id in ipairs(lockless) do
    if marked[at] == 1 and not completed[at] and not failed[at] then
      releases[#releases + 1] = call.prefix .. id .. ":released"
    end
  end
  return #releases > 0 and #releases - redis.call("EXISTS", unpack(releases)) or 0
end

-- More than the share, whatever is lost in the arithmetic.
local function is_too_many(call, count, active)
  return count > call.max_share * active + 1e-6
end

-- How many jobs the check would recover, and of how many: exact up to the size of the sample.
local function would_recover(call)
  local queue = call.queue
  local active = redis.call("LLEN", queue.active)
  if not is_too_many(call, redis.call("SCARD", queue.stalled), active) then
    return 0, active
  end
  local parts, looked_at = sample_of(queue.active, active)
  local count = 0
  for _, ids in ipairs(parts) do
    count = count + count_stalled(call, ids)
  end
  return math.floor(count * active / looked_at + 0.5), active
end

-- Whether the hold that is on record has lasted for a round, and this is a sweep that may end it.
local function is_over(call, holder, since)
  return call.interval and holder ~= call.sweep and tonumber(call.timestamp) - since >= call.hold_interval / 2
end

-- Whether the check is held; then `held` of the call says how many jobs it would have recovered,
-- how many are active, and 1 when the hold begins with it. All sweepers know of a hold.
local function is_held(call)
  local count, active = would_recover(call)
  local holder, since = (attempt("GET", call.hold) or ""):match("^(.*)@(%d+)$")
  if not is_too_many(call, count, active) or holder and is_over(call, holder, tonumber(since)) then
    redis.call("DEL", call.hold)
    return false
  end
  if not holder then
    holder = call.sweep
    redis.call("SET", call.hold, holder .. "@" .. call.timestamp, "PX", math.ceil(call.hold_interval * 3))
  end
  call.held = { count, active, holder == call.sweep and 1 or 0 }
  return true
end
