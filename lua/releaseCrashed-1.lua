-- Built by tools/build-lua from lua/src/commands/releaseCrashed-1.lua: edit that file, not this one.
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

local rarely -- returns what few calls need

--- includes/queue/full.lua
-- What scripts can do while Redis is at its `maxmemory` and may evict nothing. Needs no other
-- include.

-- Redis then refuses a command that may take more memory, but only until the script has written
-- something: it stops none in the middle. A script whose purpose is to finish, give back, recover
-- or hold up jobs goes on when the first command that writes may not take more, as this one, which
-- changes nothing, whatever `meta` is. A script that adds jobs must not start so.
local function write_although_full(queue)
  local reply = redis.pcall("HDEL", queue.meta, "")
  if type(reply) == "table" and not reply.err:find("WRONGTYPE", 1, true) then
    redis.call("HDEL", queue.meta, "") -- on a replica, say: the script ends with its error
  end
end

--- includes/queue/common_keys.lua
-- The keys of a queue that scripts need which run for each message. Each costs something in each call. Needs no
-- other include.

-- Those that all of them need, with a prefix that ends in a colon.
local function common_keys(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    is_paused = false, concurrency = nil, max_events = "", version = "", -- queue/meta: room for these costs least here
  }
end

--- includes/queue/job_keys.lua
-- The other keys of a queue in which jobs stand, or that say something about them. Needs no other include.

-- Adds these keys to those that are common. What only jobs need that are delayed or have a priority costs the others
-- nothing so.
local function add_job_keys(queue)
  local prefix = queue.prefix
  queue.delayed, queue.prioritized = prefix .. "delayed", prefix .. "prioritized"
  queue.completed, queue.failed, queue.stalled = prefix .. "completed", prefix .. "failed", prefix .. "stalled"
  queue.limiter = prefix .. "limiter"
end

--- includes/queue/keys.lua
-- The keys of a queue, in one table that the other includes take as `queue`; queue/meta adds what the meta says to
-- the same table. Needs:

-- All keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  local queue = common_keys(prefix)
  add_job_keys(queue)
  queue.pc, queue["repeat"] = prefix .. "pc", prefix .. "repeat"
  queue["waiting-children"] = prefix .. "waiting-children"
  queue.untold, queue["untold-jobs"] = prefix .. "stalled-check:untold", prefix .. "stalled-check:untold:jobs"
  return queue
end

--- includes/queue/types.lua
-- The types of a queue's keys, for what looks at them before it writes. Needs no other include.

-- All keys of a queue with their types.
local function types_of(queue, ...)
  local prefix = queue.prefix
  return {
    queue.wait, "list", queue.paused, "list", queue.active, "list", queue.delayed, "zset",
    queue.prioritized, "zset", prefix .. "pc", "string", queue.completed, "zset", queue.failed, "zset",
    queue.stalled, "set", queue.meta, "hash", queue.marker, "zset", queue.events, "stream",
    prefix .. "waiting-children", "zset", prefix .. "repeat", "zset", ...,
  }
end

--- includes/values.lua
-- Values as they come out of Redis and JSON: whatever another program has written there, a
-- script goes on with a sensible value. Needs no other include.

-- A counter as a job's hash holds it; what is no whole number counts as 0, and one too
-- large to count on as the largest.
local function counter(value)
  if value and type(value) == "string" and value:find("^%-?%d+$") then
    return math.max(math.min(tonumber(value), 2 ^ 53), -2 ^ 53)
  end
  return 0
end

-- A whole number as text, however large it is.
local function digits(number)
  if number > -2 ^ 31 and number < 2 ^ 31 and number % 1 == 0 then
    return string.format("%d", number) -- which costs half
  end
  return string.format("%.0f", number)
end

-- A number out of JSON, as number or as digits; nil for all else.
local function number(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    return nil
  end
  value = tonumber(value)
  if value and value > -2 ^ 53 and value < 2 ^ 53 then -- which NaN is not
    return value
  end
  return nil
end

-- The table of a JSON object. A field that is absent is an empty one; for text that is
-- no JSON object the second value is false.
local function object(text)
  if not text or text == "" or text == "{}" then
    return {}, true
  end
  local decoded, value = pcall(cjson.decode, text)
  if decoded and type(value) == "table" and value[1] == nil then
    return value, true
  end
  return {}, false
end

-- The reply of a command, or nil when the command failed.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    return nil
  end
  return reply
end

--- includes/queue/meta.lua
-- What the meta of a queue says, and why a script may refuse the queue. Needs:

-- Reads what the queue's meta says, once for a script. Returns false when it is no hash.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version", "max", "duration")
  local is_hash = meta ~= nil
  meta = meta or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = meta[2] and number(meta[2]) or nil
  local most = meta[3] and meta[3] ~= "10000" and number(meta[3]) -- which BullMQ writes into most queues
  queue.max_events = most and most >= 0 and digits(math.floor(most)) or "10000"
  queue.version = meta[4] or ""
  if meta[5] and meta[6] then
    queue.rate_limit = { max = number(meta[5]), duration = number(meta[6]) }
  end
  return is_hash
end

-- The error that a script returns which may do nothing to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types, or nil.
local function refusal(queue, types)
  local fault = types and rarely().mistyped(types) or not read_meta(queue) and rarely().mistyped({ queue.meta, "hash" })
  if fault then
    return redis.error_reply("ECHOMQ refuses the queue: " .. fault
      .. ". Nothing was written. Repair or remove that key.")
  end
  if queue.version ~= "" and queue.version:sub(1, 8) == "echomq:2" then
    return redis.error_reply("ECHOMQ refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use.")
  end
  return nil
end

--- includes/queue/wake.lua
-- The marker, on which idle workers block: a member "0" for a job that they may fetch, "1" for
-- the time at which the next delayed one is due. The queue's meta must have been read. Needs no other include.

-- Wakes an idle worker, unless none may fetch a job now: the queue is paused, or as many jobs are active as its global
-- concurrency allows.
local function wake(queue)
  local is_maxed = queue.concurrency and redis.call("LLEN", queue.active) >= queue.concurrency
  if not queue.is_paused and not is_maxed then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

--- includes/queue/wake_for_waiting.lua
-- How an idle worker is woken where it is not known whether any job waits. The queue's meta must have been read. Needs:

-- Wakes one if jobs wait. Those in `paused` count as well, where a resume has left them: no worker of a paused queue is
-- woken.
local function wake_for_waiting(queue)
  if redis.call("EXISTS", queue.wait, queue.paused, queue.prioritized) > 0 then
    wake(queue)
  end
end

--- includes/queue/due.lua
-- When the next delayed job is due. Needs no other include.

-- When it is due in ms, or nil without one. Delays may be of any length, and then the score may be infinite.
local function next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  return score and math.max(math.min(math.floor(tonumber(score) / 4096), 2 ^ 53), 0)
end

-- In how many ms a job is due, or -1 for none. Jobs may be due at a time that no integer holds.
local function how_soon(due, timestamp)
  return due and math.max(math.min(due - timestamp, 2 ^ 31), 0) or -1
end

--- includes/queue/mark_due.lua
-- How idle workers learn when the next delayed job is due. Needs:

local function mark_next_due(queue)
  local due = next_due(queue)
  if due then
    redis.call("ZADD", queue.marker, digits(due), "1")
  end
end

--- includes/queue/put_markers.lua
-- How idle workers learn of what is there, when nobody may know of it: a queue is resumed, or the worker that took the
-- marker was killed. The queue's meta must have been read. Needs:

-- Wakes an idle worker for the jobs that wait, and tells when the next delayed one is due.
local function put_markers_back(queue)
  wake_for_waiting(queue)
  mark_next_due(queue)
end

--- includes/queue/time.lua
-- The time that a script goes by. Needs:

-- The time in ms, as text: the one that the caller gave, or the server's for 0 or none. The clocks of
-- workers differ, so only tests and other runtimes give one.
local function time_in_ms(given)
  if given and given ~= "0" and number(given) ~= 0 then
    return given
  end
  local time = redis.call("TIME")
  return time[1] .. ("00000" .. time[2]):sub(-6, -4) -- seconds, and microseconds in as many digits as they need
end

--- includes/crashes/release.lua
-- What becomes of the jobs of workers that are gone. Needs:

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

--- includes/queue/position.lua
-- Where a walk through `active`, from its old end, goes on that takes several calls. Needs no other include.

-- How many ids are behind it, although some may have gone since the last call stopped at `offset` with the `anchor` as
-- the last id; nil when that cannot be told.
local function position_of(active, offset, anchor)
  if offset == 0 or redis.call("LINDEX", active, -offset) == anchor then
    return offset
  end
  local position = redis.call("LPOS", active, anchor, "RANK", -1, "MAXLEN", offset)
  return position and redis.call("LLEN", active) - position
end

--- includes/crashes/walk.lua
-- The way through `active`, from its old end, over as many calls as it takes. Needs:

local CHUNK = 250 -- ids looked at together

-- Calls `look_at(ids)` for at most so many ids. Where it cannot tell where the last call stopped, it starts anew: to
-- look at a job twice does no harm. Returns where to go on: an offset, which is -1 at the end, and an anchor.
local function walk_active(active, limit, offset, anchor, look_at)
  offset = position_of(active, offset, anchor) or 0
  while limit > 0 do
    local size = math.min(limit, CHUNK)
    local ids = redis.call("LRANGE", active, -(offset + size), -(offset + 1))
    if #ids > 0 then
      look_at(ids)
    end
    if #ids < size then
      return -1, ""
    end
    offset, limit = offset + size, limit - size
  end
  return offset, redis.call("LINDEX", active, -offset) or ""
end

local rare
rarely = function()
  if not rare then
    --- includes/types.lua
    -- Whether keys have the types that they should have. Needs:

    -- What answers with a number if and only if a key has the type, or is not there. That costs
    -- half of what TYPE costs.
    local SIZE = { list = "LLEN", zset = "ZCARD", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN" }

    -- What is wrong with the first key that holds something else than it should, or nil.
    -- `types` is a list of a key, its type, a key, its type …
    local function mistyped(types)
      for at = 1, #types, 2 do
        local key, should_be = types[at], types[at + 1]
        local size = redis.pcall(SIZE[should_be], key)
        if type(size) ~= "number" then
          if not size.err:find("WRONGTYPE", 1, true) then
            return key .. " may not be used by this user, or not from here"
          end
          local found = attempt("TYPE", key)
          return key .. " is " .. (found and "a " .. found.ok or "something else") .. " and should be a " .. should_be
        end
      end
      return nil
    end

    rare = {
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/releaseCrashed-1.lua

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
