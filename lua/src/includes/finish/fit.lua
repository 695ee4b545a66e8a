-- How a call sees to it that a key of the wrong type is found before it writes anything: those that it writes
-- without having read them. Those of jobs and parents are looked at apart. Needs:
--- include values
--- include queue/meta
--- include rarely finish/types_to_write

-- The error of a call that only fetches jobs and may not write, or nil. The trim of the events goes first of all
-- writes: it raises when that is no stream, and Redis does it although it is full, and then what follows.
local function unfit_to_fetch(queue)
  if not (attempt("LLEN", queue.active) and attempt("ZCARD", queue.marker)) then
    return refusal(queue, types_to_write(queue))
  end
  redis.call("XTRIM", queue.events, "MAXLEN", "~", queue.max_events)
  queue.is_trimmed = true
  return nil
end

-- The error of a call that finishes jobs and may not write, or nil. What the looks tell is of use later. Takes the
-- `how` of finish/job.
local function unfit_to_finish(queue, how)
  local marks, sizes = attempt("SCARD", queue.stalled), how.sizes
  sizes.completed, sizes.failed = attempt("ZCARD", queue.completed), attempt("ZCARD", queue.failed)
  if not (marks and sizes.completed and sizes.failed) then
    return refusal(queue, types_to_write(queue))
  end
  queue.has_marks = marks > 0
  return unfit_to_fetch(queue)
end
