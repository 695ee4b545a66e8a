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

-- The job that is stored under a key: its fields, opts, delay and priority, and what names it to others.
local function read_stored(stored)
  local found = redis.call("HMGET", stored, "name", "data", "opts", "pk", "pd", "pdk", "rjk", "jid")
  local opts = object(found[3])
  return {
    name = found[1] or "", data = found[2] or "{}", opts_text = found[3] or "{}", opts = opts,
    parent_key = found[4], parent = found[5], dependencies = found[6], scheduler = found[7], own_id = found[8],
    delay = math.max(number(opts.delay) or 0, 0), priority = math.max(number(opts.priority) or 0, 0),
  }
end

-- Writes the hash of a job.
local function write_next(key, job, deduplication_id, timestamp)
  redis.call("HSET", key, "name", job.name, "data", job.data, "opts", job.opts_text, "timestamp", timestamp,
    "delay", digits(job.delay), "priority", digits(job.priority), "deid", deduplication_id)
  for name, value in pairs({ parentKey = job.parent_key, parent = job.parent, rjk = job.scheduler }) do
    if value then
      redis.call("HSET", key, name, value)
    end
  end
end

-- Lets a job keep others away in its turn.
local function hold_deduplication(queue, deduplication_id, id, opts)
  local key, rule = queue.prefix .. "de:" .. deduplication_id, type(opts.de) == "table" and opts.de or {}
  local ttl = rule.keepLastIfActive ~= true and number(rule.ttl) or 0
  if ttl >= 1 then
    redis.call("SET", key, id, "PX", digits(math.floor(ttl)))
  else
    redis.call("SET", key, id)
  end
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
  local job = read_stored(stored)
  local id = id_of_next(queue, job.own_id)
  local key, due = queue.prefix .. id, job.delay > 0 and timestamp + job.delay or 0
  hold_deduplication(queue, deduplication_id, id, job.opts)
  write_next(key, job, deduplication_id, timestamp)
  if add_to_queue(queue, id, job.name, job.priority, due, job.opts.lifo == true) then
    wake(queue)
  end
  if job.dependencies and job.parent_key and attempt("EXISTS", job.parent_key) == 1 then
    attempt("SADD", job.dependencies, key)
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
