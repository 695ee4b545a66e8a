-- The reply of a call, and how a call that is sent twice gets the same one. Takes the `call` of
-- stalled/call. Needs (for STATE_TTL):
--- include stalled/marks

local function reply(call, waits, ended)
  local counts = call.counts
  local next_offset = ended and -1 or call.offset
  local next_anchor = next_offset > 0 and redis.call("LINDEX", call.queue.active, -call.offset) or ""
  return {
    counts.recovered, counts.failed, waits, counts.marked, counts.dropped, call.recovered_ids, call.failed_jobs,
    call.oddities, next_offset, next_anchor, call.reports, call.remaining or "",
    call.recovered_ages, call.held or {},
  }
end

-- The reply of this very call when it has been made before, or nil.
local function recorded_reply(call)
  local recorded = call.sweep ~= "" and redis.call("GET", call.record)
  if recorded then
    local made = cmsgpack.unpack(recorded)
    if made[1] == call.step then
      return made[2]
    end
  end
  return nil
end

-- Records a reply and returns it. A call that changed nothing may as well be made again.
local function recorded(call, answer)
  local counts = call.counts
  local has_changed = counts.recovered + counts.failed + counts.marked + counts.dropped > 0 or call.has_rotated
  if call.sweep ~= "" and has_changed then
    redis.call("SET", call.record, cmsgpack.pack({ call.step, answer }), "PX", STATE_TTL)
  end
  return answer
end
