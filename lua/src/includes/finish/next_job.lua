-- What the end of a job means to its deduplication id: the key that keeps a second job away is
-- released, and the job that came meanwhile (keepLastIfActive) is added. Needs:
--- include values
--- include rarely types
--- include rarely queue/types
--- include queue/reserved
--- include rarely queue/add
--- include queue/wake
--- include finish/deduplication

local function is_free(queue, id)
  return not is_reserved(id) and redis.call("EXISTS", queue.prefix .. id) == 0
end

-- The id that the job was given when it came, unless a job has it by now: then one that is free.
local function id_of_next(queue, id)
  local count, step = counter(redis.call("GET", queue.prefix .. "id")) + 1, 1
  redis.call("SET", queue.prefix .. "id", digits(count))
  if id and is_free(queue, id) then
    return id
  end
  while not is_free(queue, digits(count)) do -- the counter was lost: find the end of the ids soon
    count, step = count + step, step * 2
  end
  redis.call("SET", queue.prefix .. "id", digits(count))
  return digits(count)
end

-- Lets the next job keep others away in its turn.
local function hold_deduplication(queue, deduplication_id, id, opts)
  local rule = type(opts.de) == "table" and opts.de or {}
  local ttl = rule.keepLastIfActive ~= true and number(rule.ttl) or 0
  redis.call("SET", queue.prefix .. "de:" .. deduplication_id, id, unpack(ttl >= 1 and { "PX", digits(math.floor(ttl)) } or {}))
end

-- The fields that only some jobs have.
local function optional_fields(deduplication_id, parent_key, parent, scheduler)
  local fields = { "deid", deduplication_id }
  for name, value in pairs({ parentKey = parent_key, parent = parent, rjk = scheduler }) do
    if value then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  return fields
end

-- Adds the job that waits under `dn:<deduplication id>`, if there is one. Returns why it
-- stays there when it cannot be added.
local function add_next_job(queue, deduplication_id, timestamp)
  local stored = queue.prefix .. "dn:" .. deduplication_id
  if redis.call("EXISTS", stored) == 0 then
    return nil
  end
  local fault = mistyped(types_of(queue, stored, "hash", queue.prefix .. "id", "string"))
  if fault then
    return "the job that waits for its end was not added: " .. fault
  end
  local name, data, opts_text, parent_key, parent, dependencies, scheduler, own_id = unpack(
    redis.call("HMGET", stored, "name", "data", "opts", "pk", "pd", "pdk", "rjk", "jid"))
  local opts, id = object(opts_text), id_of_next(queue, own_id)
  local delay_of_job, priority = math.max(number(opts.delay) or 0, 0), math.max(number(opts.priority) or 0, 0)
  hold_deduplication(queue, deduplication_id, id, opts)
  redis.call("HSET", queue.prefix .. id, "name", name or "", "data", data or "{}", "opts", opts_text or "{}",
    "timestamp", timestamp, "delay", digits(delay_of_job), "priority", digits(priority),
    unpack(optional_fields(deduplication_id, parent_key, parent, scheduler)))
  if add_to_queue(queue, id, name or "", priority, delay_of_job > 0 and timestamp + delay_of_job or 0,
    opts.lifo == true) then
    wake(queue)
  end
  if dependencies and parent_key and attempt("EXISTS", parent_key) == 1 then
    attempt("SADD", dependencies, queue.prefix .. id)
  end
  redis.call("DEL", stored)
  return nil
end

-- To be called when a job with a deduplication id has ended, in whichever way. Returns what went
-- wrong, if anything did.
local function end_deduplication(queue, deduplication_id, id, timestamp)
  if not deduplication_id then
    return nil
  end
  release_deduplication(queue, deduplication_id, id)
  return add_next_job(queue, deduplication_id, timestamp)
end
