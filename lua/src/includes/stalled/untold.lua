-- The failures that the middleware of Dramatiq is still to be told of. Whoever made the check
-- tells it; should that process die before it does, the next one to look at the queue does.
-- Takes the `call` of stalled/call. Needs:
--- include values

local UNTOLD_KEPT = 10000 -- of a queue; the oldest go first
local UNTOLD_TTL = 604800000 -- ms without a failure after which all go, when nobody tells them: 7 days

-- Whether data may be a message of Dramatiq's. JSON that names no actor is a job of another
-- runtime; what is no JSON was made by an encoder of the application.
local function is_message(data)
  if data:find('^%s*[%[{"%d-]') then
    return data:find('"actor_name"', 1, true) ~= nil
  end
  return data ~= "" and data ~= "true" and data ~= "false" and data ~= "null"
end

-- Adds a failed job. Its data goes along when others may remove the job before it is told.
local function add_untold(call, id, job, reason, stalls, data, may_go)
  local queue = call.queue
  if not data or not is_message(data) or not attempt("ZADD", queue.untold, call.timestamp, id) then
    return
  end
  local failure = { reason, stalls, job.worker or "", job.name or "", may_go and data or "" }
  attempt("HSET", queue["untold-jobs"], id, cmsgpack.pack(failure))
  local excess = redis.call("ZCARD", queue.untold) - UNTOLD_KEPT
  local popped = excess > 0 and redis.call("ZPOPMIN", queue.untold, excess) or {}
  for at = 1, #popped, 2 do
    attempt("HDEL", queue["untold-jobs"], popped[at])
  end
  redis.call("PEXPIRE", queue.untold, UNTOLD_TTL)
  redis.call("PEXPIRE", queue["untold-jobs"], UNTOLD_TTL)
end
