-- Built by tools/build-lua from lua/src/commands/purgeQueue-1.lua: edit that file, not this one.
--[[
Removes jobs from a queue, whatever their state, and its job schedulers, a bounded number at a time.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 how many jobs and schedulers to remove at most

Returns how many were removed: 0 when the queue is empty, and then its marks, marker, counters, metrics,
rate limit under way, notes of checks and events are gone as well. The meta stays, which has the settings,
and so do the registrations of workers. With a job goes the key of its deduplication id, even one with a
TTL; one that a job which is gone has left ends by itself.

Cost: O(log N) for each job.
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

--- includes/queue/reserved.lua
-- Ids that are the names of keys of a queue. A job may not have one, yet strangers can write
-- anything into `completed` or `wait`; what is done to a job by its id must not be done to the
-- key of a queue. Needs:

-- Whether an id is the name of a key that is not a job's hash. Nearly all ids pass at once: names have a
-- colon or are short, and none of these is hexadecimal.
local function is_reserved(id)
  if #id > 16 and not id:find(":", 1, true) or id:find("^%x[%x-]*$") then
    return false
  end
  return rarely().is_name_of_key(id)
end

--- includes/queue/remove.lua
-- How a job is removed. Needs:

-- Removes the hashes of at most 1,000 jobs and what stands beside them, but for ids that are names
-- of keys of the queue. The lock is not among that: a job that is removed when it finishes has none any more.
-- Nor is its id removed from where it stands in the queue.
local function remove_jobs(queue, ids)
  local keys = {}
  for _, id in ipairs(ids) do
    if not is_reserved(id) then
      local key, size = queue.prefix .. id, #keys
      keys[size + 1], keys[size + 2], keys[size + 3] = key, key .. ":logs", key .. ":dependencies"
      keys[size + 4], keys[size + 5], keys[size + 6] = key .. ":processed", key .. ":failed", key .. ":unsuccessful"
    end
  end
  if #keys > 0 then
    redis.call("DEL", unpack(keys))
  end
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

    --- includes/queue/key_names.lua
    -- Which names the keys of a queue have. Needs no other include.

    local NAMES = " wait paused active delayed prioritized pc completed failed stalled stalled-check meta marker events "
      .. "id limiter priority repeat waiting-children "

    -- The parts before the first colon and after the last one that only keys of a queue have. A
    -- job of a scheduler is `repeat:<scheduler>:<ms>`, the scheduler itself `repeat:<scheduler>`. Other
    -- ids have no colon, or two: so says BullMQ.
    local FIRST_PARTS = " de dn echomq stalled-check "
    local LAST_PARTS = " lock released logs dependencies processed failed unsuccessful "

    local function is_one_of(names, name)
      return name:find("^[a-z-]+$") and names:find(" " .. name .. " ", 1, true) and true or false
    end

    -- Whether an id is the name of a key that is not a job's hash.
    local function is_name_of_key(id)
      local first = id:match("^([^:]*):")
      if not first then
        return id == "" or is_one_of(NAMES, id)
      elseif first == "repeat" then
        return not id:find(":%d+$")
      elseif first == "metrics" then
        return id:find("^metrics:%l+$") ~= nil or id:find("^metrics:%l+:data$") ~= nil
      end
      local _, colons = id:gsub(":", "")
      return is_one_of(FIRST_PARTS, first) or colons ~= 2 and is_one_of(LAST_PARTS, id:match("([^:]*)$"))
    end

    rare = {
      is_name_of_key = is_name_of_key,
      mistyped = mistyped,
    }
  end
  return rare
end

--- commands/purgeQueue-1.lua

local prefix, left = ARGV[1], number(ARGV[2])
local queue = queue_at(prefix)
local removed = 0

-- A job that was added meanwhile keeps others of its deduplication id away.
local function forget_deduplication(deduplication_id, id)
  local key = prefix .. "de:" .. deduplication_id
  local holder = attempt("GET", key)
  if holder and (holder == id or redis.call("EXISTS", prefix .. holder) == 0) then
    redis.call("DEL", key)
  end
  redis.call("DEL", prefix .. "dn:" .. deduplication_id)
end

local function remove(ids)
  for _, id in ipairs(ids or {}) do
    local deduplication_id = attempt("HGET", prefix .. id, "deid")
    if deduplication_id then
      forget_deduplication(deduplication_id, id)
    end
    remove_jobs(queue, { id })
    redis.call("DEL", prefix .. id .. ":lock", prefix .. id .. ":released")
  end
  removed = removed + #(ids or {})
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
for _, list in ipairs({ queue.wait, queue.paused, queue.active }) do
  if removed < left then
    remove(redis.call("RPOP", list, left - removed))
  end
end
for _, set in ipairs({ queue.delayed, queue.prioritized, queue.completed, queue.failed, queue["waiting-children"] }) do
  if removed < left then
    local ids = redis.call("ZRANGE", set, 0, left - removed - 1)
    remove(ids)
    for _, id in ipairs(ids) do
      redis.call("ZREM", set, id)
    end
  end
end
if removed < left then
  local schedulers = redis.call("ZRANGE", queue["repeat"], 0, left - removed - 1)
  for _, scheduler in ipairs(schedulers) do
    redis.call("ZREM", queue["repeat"], scheduler)
    redis.call("DEL", queue["repeat"] .. ":" .. scheduler)
  end
  removed = removed + #schedulers
end
if removed == 0 then
  local check, metrics = prefix .. "stalled-check", prefix .. "metrics:"
  redis.call("DEL", queue.stalled, queue.marker, queue.pc, queue.events, queue.limiter, prefix .. "id", check,
    check .. ":last", check .. ":hold", queue.untold, queue["untold-jobs"], metrics .. "completed",
    metrics .. "completed:data", metrics .. "failed", metrics .. "failed:data")
end
return removed
