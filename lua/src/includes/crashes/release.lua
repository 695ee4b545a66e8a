-- What becomes of the jobs of workers that are gone. Needs:
--- include values

local KEPT_FOR = 600000 -- ms for which a lock that was released is remembered

-- The worker that made a token.
local function worker_of(token)
  return token and token:match("^([^:]+):")
end

-- Takes a job from its worker: it has no lock and is marked, as if a check had found it so. The
-- token is remembered, so that its owner cannot come back as one that was only paused.
local function release(queue, id, token)
  local key = queue.prefix .. id
  redis.call("SADD", queue.stalled, id)
  redis.call("SET", key .. ":released", token, "PX", KEPT_FOR)
  redis.call("DEL", key .. ":lock")
end

-- The worker from which a job without a lock was released, if no check has seen to it since.
local function released_from(queue, id)
  if redis.call("SMISMEMBER", queue.stalled, id)[1] == 0 then
    return nil
  end
  return worker_of(attempt("GET", queue.prefix .. id .. ":released"))
end
