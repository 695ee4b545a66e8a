-- The reply of a call, and how a call that is sent twice gets the same one. Takes the `call` of
-- stalled/call. Needs (for STATE_TTL):
--- include values
--- include stalled/marks

local FACTS_AT_ONCE = 2000 -- Lua unpacks no more than 8,000

-- What is told of the jobs recovered beside their ids, as one text: one for each would cost clients far more.
local function facts_of_recovered(call)
  local ids, since, now, facts, parts = call.recovered_ids, call.recovered_since, call.now, {}, {}
  for number = 1, #ids do
    local started_at = since[number]
    facts[2 * number - 1] = #ids[number]
    facts[2 * number] = not started_at and -1 or started_at < now and now - started_at or 0
  end
  for first = 1, #facts, FACTS_AT_ONCE do
    local last = math.min(first + FACTS_AT_ONCE - 1, #facts)
    parts[#parts + 1] = struct.pack(">" .. ("I4i8"):rep((last - first + 1) / 2), unpack(facts, first, last))
  end
  return table.concat(parts)
end

local function reply(call, waits, ended)
  local counts = call.counts
  local next_offset = ended and -1 or call.offset
  local next_anchor = next_offset > 0 and redis.call("LINDEX", call.queue.active, -call.offset) or ""
  return {
    counts.recovered, counts.failed, waits, counts.marked, counts.dropped, table.concat(call.recovered_ids),
    call.failed_jobs, call.oddities, next_offset, next_anchor, call.reports, call.remaining or "",
    facts_of_recovered(call), call.held or {},
  }
end

-- The reply of this very call when it has been made before, or nil.
local function recorded_reply(call)
  local recorded = call.sweep ~= "" and redis.call("GET", call.record)
  local step = call.step .. ":"
  if recorded and recorded:sub(1, #step) == step then
    return cmsgpack.unpack(recorded:sub(#step + 1))
  end
  return nil
end

-- Records a reply and returns it. A call that changed nothing may as well be made again.
local function recorded(call, answer)
  local counts = call.counts
  local has_changed = counts.recovered + counts.failed + counts.marked + counts.dropped > 0 or call.has_rotated
  if call.sweep ~= "" and has_changed then
    redis.call("SET", call.record, call.step .. ":" .. cmsgpack.pack(answer), "PX", STATE_TTL)
  end
  return answer
end
