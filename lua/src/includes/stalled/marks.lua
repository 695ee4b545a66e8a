-- The marks of earlier checks and the jobs that a sweep has handled, while it runs. Needs no
-- other include but takes the `call` of stalled/call.

local STATE_TTL = 600000 -- ms that the state of a sweep outlives a dead sweeper

local function set_marks_aside(call)
  local queue, marks = call.queue, call.marks
  if call.step == 0 and redis.call("EXISTS", queue.stalled) == 1 and redis.call("EXISTS", marks) == 0 then
    redis.call("RENAME", queue.stalled, marks)
    redis.call("PEXPIRE", marks, STATE_TTL)
  end
end

-- Records those of the ids that were handled, for the next calls of the sweep. A long value, which is then
-- overwritten, makes the hash a table at once. Redis keeps short ones as lists, and searches those from end to
-- end for each id.
local function remember_handled(call, ids)
  local handled, pairs_of_these = call.handled, {}
  for at = 1, #ids do
    local id = ids[at]
    local size = #pairs_of_these
    if handled[id] then
      pairs_of_these[size + 1], pairs_of_these[size + 2] = id, handled[id]
    end
  end
  if #pairs_of_these > 0 then
    if redis.call("EXISTS", call.done) == 0 then
      redis.call("HSET", call.done, pairs_of_these[1], ("-"):rep(65))
    end
    redis.call("HSET", call.done, unpack(pairs_of_these))
  end
end

-- Marks left over at the end of a sweep name ids that are no longer in `active`.
local function release_marks(call, ended)
  if ended then
    redis.call("UNLINK", call.marks, call.done)
  else
    redis.call("PEXPIRE", call.done, STATE_TTL)
  end
end
