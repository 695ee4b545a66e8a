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

local PAIRS_AT_ONCE = 1000 -- Lua unpacks no more than 8,000 values

-- Records the jobs that this call has handled. A long value, which is then overwritten, makes the hash a table
-- at once. Redis keeps short ones as lists, and searches those from end to end for each id.
local function remember_handled(call)
  local done, fields = call.done, {}
  local function write()
    if redis.call("EXISTS", done) == 0 then
      redis.call("HSET", done, fields[1], ("-"):rep(65))
    end
    redis.call("HSET", done, unpack(fields))
    fields = {}
  end
  for id, attempts_started in pairs(call.handled) do
    fields[#fields + 1], fields[#fields + 2] = id, attempts_started
    if #fields == 2 * PAIRS_AT_ONCE then
      write()
    end
  end
  if #fields > 0 then
    write()
  end
  redis.call("PEXPIRE", done, STATE_TTL)
end

-- Ends the sweep, or leaves what its next call is to know. Marks left over at its end name ids that are no
-- longer in `active`.
local function release_marks(call, ended)
  if ended then
    redis.call("UNLINK", call.marks, call.done)
  else
    remember_handled(call)
  end
end
