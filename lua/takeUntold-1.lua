-- Built by tools/build-lua from lua/src/commands/takeUntold-1.lua: edit that file, not this one.
--[[
Takes the failures of stalled jobs that the middleware of Dramatiq is still to be told of, and
removes those that have been told. A failure that is taken and not told is taken again once its
lease has ended. A job that is not in `failed` any more, such as a retried one, is not told.

KEYS  1 stalled-check:untold
ARGV  1 key prefix of the queue, with its last colon  2 how many failures to take
      3 lease in ms: how long nobody else takes them  4 and on: ids of jobs that have been told

Returns a list of failures: id, reason, stalls, worker, name and data each.

Cost: O(log N) for each failure; one lookup without any.
--]]

local rarely -- returns what few calls need

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

--- commands/takeUntold-1.lua

local prefix, most, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local queue = queue_at(prefix)
local untold, jobs = KEYS[1], queue["untold-jobs"]

local function forget(id)
  redis.call("ZREM", untold, id)
  redis.call("HDEL", jobs, id)
end

-- The data of a job, or nil when there is nothing to tell of it.
local function data_of(id, recorded)
  if recorded ~= "" then
    return recorded
  end
  return redis.call("ZSCORE", queue.failed, id) and attempt("HGET", prefix .. id, "data")
end

local refused = refusal(queue, { untold, "zset", jobs, "hash", queue.failed, "zset" })
if refused then
  return refused
end
for at = 4, #ARGV do
  forget(ARGV[at])
end
local failures, now = {}, tonumber(time_in_ms(0))
for _, id in ipairs(redis.call("ZRANGEBYSCORE", untold, "-inf", digits(now), "LIMIT", 0, most)) do
  local recorded = redis.call("HGET", jobs, id)
  local reason, stalls, worker, name, data
  if recorded then
    reason, stalls, worker, name, data = unpack(cmsgpack.unpack(recorded))
    data = data_of(id, data)
  end
  if data then
    redis.call("ZADD", untold, digits(now + lease), id)
    failures[#failures + 1] = { id, reason, stalls, worker, name, data }
  else
    forget(id)
  end
end
return failures
