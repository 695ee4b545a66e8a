-- The way through `active`, from its old end, over as many calls as it takes. Takes the `call`
-- of stalled/call. Needs:
--- include queue/position
--- include stalled/lookup

local CHUNK = 250 -- most ids looked at together; they take about 3 ms if all are stalled
local FIRST_CHUNK = 50 -- of a call, which tells how many more there is time for: three times less while Redis rehashes
local LEAST_CHUNK = 25 -- for fewer, a call is not prolonged
local CHUNK_OF_JOBS = 50 -- ids described together, whose data may be large
local BUDGET = 3.5 -- ms after which a call takes no further chunk; with all that is around it, it takes about 4.5
local DEEP = 4000 -- ids from the old end, beyond which a list is slow to change
local ROTATED_AT_ONCE = 1000 -- ids moved together; Lua unpacks no more than 8,000

-- A clock in ms. Inside a script TIME stands still from Redis 7.2 on, and before that there is no os.clock.
local function make_clock()
  local there, cpu_time = pcall(function() return os.clock end)
  if there and cpu_time then
    return function() return cpu_time() * 1000 end
  end
  return function()
    local now = redis.call("TIME")
    return now[1] * 1000 + now[2] / 1000
  end
end

-- Finds where the last call stopped.
local function resume(call)
  call.offset = position_of(call.queue.active, call.offset, call.anchor) or math.max(call.offset - CHUNK, 0)
end

-- Moves ids that were looked at from the old end of `active` to its new end, so that what comes
-- next is near an end. What a call takes out from deep within the list costs as much as the
-- list is long, for each call.
local function rotate(call)
  local active = call.queue.active
  call.remaining = call.remaining or redis.call("LLEN", active) - call.offset
  local ids = redis.call("LRANGE", active, -math.min(call.offset, ROTATED_AT_ONCE), -1)
  local oldest_first = {}
  for at = #ids, 1, -1 do
    oldest_first[#oldest_first + 1] = ids[at]
  end
  redis.call("LPUSH", active, unpack(oldest_first))
  redis.call("LTRIM", active, 0, -#ids - 1)
  call.offset = call.offset - #ids
  call.has_rotated = true
end

-- Calls `look_at(call, ids)`, which returns how many left `active`, for the ids of this call.
-- Returns true when there are none beyond them.
local function walk(call, look_at)
  local left, clock = call.limit, make_clock()
  local most = call.mode == "report" and CHUNK_OF_JOBS or CHUNK
  local chunk = math.min(most, FIRST_CHUNK)
  local looked_at = clock()
  local ends_at = looked_at + BUDGET
  repeat
    local size = math.min(left, chunk, call.remaining or chunk)
    local ids = redis.call("LRANGE", call.queue.active, -(call.offset + size), -(call.offset + 1))
    if call.offset > DEEP and not call.is_report and #ids > 0 and #lockless_places(call, ids) > 0 then
      rotate(call)
    else
      if #ids > 0 then
        call.offset = call.offset + #ids - look_at(call, ids)
        call.remaining = call.remaining and call.remaining - #ids
      end
      if #ids < size or call.remaining == 0 then
        return true
      end
      left = left - size
    end
    if call.limit < math.huge then
      local before = looked_at
      looked_at = clock()
      local fitting = math.floor(size * (ends_at - looked_at) / (looked_at - before + 0.001))
      if fitting < LEAST_CHUNK then
        return false
      end
      chunk = math.min(most, fitting)
    end
  until left <= 0
  return false
end
