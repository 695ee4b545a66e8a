-- The keys of the queue with a prefix that ends in a colon.
local function queue_at(prefix)
  return {
    prefix = prefix, wait = prefix .. "wait", paused = prefix .. "paused", active = prefix .. "active",
    delayed = prefix .. "delayed", prioritized = prefix .. "prioritized", pc = prefix .. "pc",
    completed = prefix .. "completed", failed = prefix .. "failed", stalled = prefix .. "stalled",
    meta = prefix .. "meta", marker = prefix .. "marker", events = prefix .. "events",
    ["waiting-children"] = prefix .. "waiting-children", ["repeat"] = prefix .. "repeat",
  }
end

-- All keys of a queue with their types.
local function types_of(queue, ...)
  return {
    queue.wait, "list", queue.paused, "list", queue.active, "list", queue.delayed, "zset",
    queue.prioritized, "zset", queue.pc, "string", queue.completed, "zset", queue.failed, "zset",
    queue.stalled, "set", queue.meta, "hash", queue.marker, "zset", queue.events, "stream",
    queue["waiting-children"], "zset", queue["repeat"], "zset", ...,
  }
end

-- Reads what the queue's meta says, once for a script.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version") or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = number(meta[2])
  local max_events = number(meta[3])
  queue.max_events = max_events and max_events >= 0 and digits(math.floor(max_events)) or "10000"
  queue.version = meta[4] or ""
end

-- Why nothing may be done to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types.
local function refusal(queue, types)
  local fault = mistyped(types)
  if fault then
    return "refuses the queue: " .. fault .. ". Nothing was written. Repair or remove that key."
  end
  read_meta(queue)
  if queue.version:sub(1, 8) == "echomq:2" then
    return "refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use."
  end
  return nil
end

local function is_maxed(queue)
  return queue.concurrency ~= nil and redis.call("LLEN", queue.active) >= queue.concurrency
end

-- Wakes an idle worker, unless none may take a job now.
local function wake(queue)
  if not queue.is_paused and not is_maxed(queue) then
    redis.call("ZADD", queue.marker, 0, "0")
  end
end

local function trim_events(queue)
  redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
end

local function emit(queue, event, id, ...)
  redis.call("XADD", queue.events, "*", "event", event, "jobId", id, ...)
end

-- Emits the last event of a script that emits few, and trims the stream with it.
local function emit_last(queue, event, id, ...)
  redis.call("XADD", queue.events, "MAXLEN", "~", queue.max_events, "*", "event", event, "jobId", id, ...)
end

-- Jobs of one priority are taken in the order in which they came.
local function priority_score(queue, priority)
  local count = counter(redis.call("GET", queue.pc)) + 1
  redis.call("SET", queue.pc, digits(count))
  return digits(priority * 2 ^ 32 + count % 2 ^ 32)
end

-- Makes a job available. LPUSH joins the back of the line, RPUSH jumps to its front.
local function make_available(queue, id, priority, push)
  if priority > 0 then
    redis.call("ZADD", queue.prioritized, priority_score(queue, priority), id)
  else
    redis.call(push, queue.is_paused and queue.paused or queue.wait, id)
  end
end

-- Tells idle workers when the next delayed job is due.
local function mark_next_due(queue)
  local score = redis.call("ZRANGE", queue.delayed, 0, 0, "WITHSCORES")[2]
  if score then
    redis.call("ZADD", queue.marker, digits(math.floor(tonumber(score) / 4096)), "1")
  end
end

-- Delays a job. Jobs that are due in the same ms keep their order, up to 4,096 of them.
local function delay(queue, id, due)
  local lowest, highest = due * 4096, due * 4096 + 4095
  local last = redis.call("ZREVRANGEBYSCORE", queue.delayed, digits(highest), digits(lowest),
    "WITHSCORES", "LIMIT", 0, 1)[2]
  local score = last and math.min(tonumber(last) + 1, highest) or lowest
  redis.call("ZADD", queue.delayed, digits(score), id)
  emit(queue, "delayed", id, "delay", digits(due))
  mark_next_due(queue)
end
