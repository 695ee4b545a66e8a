-- What the meta of a queue says, and why a script may refuse the queue. Needs:
--- include values
--- include rarely types

-- Reads what the queue's meta says, once for a script. Returns false when it is no hash.
local function read_meta(queue)
  local meta = attempt("HMGET", queue.meta, "paused", "concurrency", "opts.maxLenEvents", "version", "max", "duration")
  local is_hash = meta ~= nil
  meta = meta or {}
  queue.is_paused = meta[1] and true or false
  queue.concurrency = number(meta[2])
  local max_events = math.floor(number(meta[3]) or 10000)
  queue.max_events = max_events > 0 and digits(max_events) or max_events == 0 and "0" or "10000" -- not "-0"
  queue.version = meta[4] or ""
  queue.rate_limit = { max = number(meta[5]), duration = number(meta[6]) }
  return is_hash
end

-- Why nothing may be done to a queue, or nil. EchoMQ 2 is another protocol under the same
-- prefix. `types` are the keys that will be written, with their types.
local function refusal(queue, types)
  local fault = #types > 0 and mistyped(types) or not read_meta(queue) and mistyped({ queue.meta, "hash" })
  if fault then
    return "refuses the queue: " .. fault .. ". Nothing was written. Repair or remove that key."
  end
  if queue.version:sub(1, 8) == "echomq:2" then
    return "refuses the queue: " .. queue.meta .. " says version " .. queue.version
      .. ", and only EchoMQ 1 is understood. Nothing was written. Use a prefix that EchoMQ 2 does not use."
  end
  return nil
end
