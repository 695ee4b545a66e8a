-- What the end of a job whose hash is gone means: somebody removed it while it ran, or Redis has evicted it. Needs:
--- include values
--- include queue/drop
--- include queue/newest_events
--- include rarely finish/next_job

-- The value that follows a name in the fields of an event, or nil.
local function value_in(fields, name)
  for at = 1, #fields, 2 do
    if fields[at] == name then
      return fields[at + 1]
    end
  end
  return nil
end

-- The deduplication ids of the jobs for whose end others wait, by the ids of these jobs: the events of
-- those that came meanwhile name both.
local function deduplication_ids(queue)
  local found = {}
  for _, entry in ipairs(newest_events(queue)) do
    local fields = entry[2]
    if fields[2] == "deduplicated" and fields[4] and not found[fields[4]] then
      found[fields[4]] = value_in(fields, "deduplicationId")
    end
  end
  return found
end

-- Adds the job that waits for the end of one that is gone. Returns what went wrong, if anything did.
local function follow_gone_job(queue, id, deduplication_id, timestamp)
  if deduplication_id and attempt("GET", queue.prefix .. "de:" .. deduplication_id) == id then
    return end_deduplication(queue, deduplication_id, id, timestamp)
  end
  return nil
end

-- Takes a job that is gone out of `active`, and adds the one that waits for its end. Returns whether
-- it was there, and what went wrong, if anything did.
local function end_gone_job(queue, id, timestamp)
  return drop_from_active(queue, id), follow_gone_job(queue, id, deduplication_ids(queue)[id], timestamp)
end
