-- How a job comes to have one place in its queue, and the right one. The queue's meta must have been
-- read. Needs:
--- include values
--- include queue/events
--- include queue/line
--- include queue/wake
--- include inspect/page

-- Takes an id out of all its places but one. Its mark goes with its place in `active`.
local function leave_in(queue, id, places, kept)
  local seen = false
  for at = #places, 1, -1 do
    local place = places[at]
    if place == kept and not seen then
      seen = true
    elseif READ_FROM[place] == "list" then
      redis.call("LREM", queue[place], 1, id)
    else
      redis.call("ZREM", queue[place], id)
    end
  end
  if kept ~= "active" then
    redis.call("SREM", queue.stalled, id)
  end
end

local function holds(places, wanted)
  for _, place in ipairs(places) do
    if place == wanted then
      return true
    end
  end
  return false
end

-- The place that a job should have: where it runs, where it has finished, or where it waits to run.
local function right_place(places, fields, is_locked)
  local order = { "wait", "paused", "prioritized", "delayed", "waiting-children", "active", "failed", "completed" }
  if is_locked then
    order = { "active", unpack(order) }
  elseif fields[3] then
    order = { "completed", "failed", unpack(order) }
  end
  for _, place in ipairs(order) do
    if holds(places, place) then
      return place
    end
  end
end

-- Gives a job a place that has none: among the finished ones, or where it waits. `fields` are its
-- name, data, finishedOn, failedReason and priority.
local function give_place(queue, id, fields, timestamp)
  if fields[3] then
    redis.call("ZADD", fields[4] and queue.failed or queue.completed, digits(number(fields[3]) or 0), id)
  elseif (attempt("SCARD", queue.prefix .. id .. ":dependencies") or 0) > 0 then
    redis.call("ZADD", queue["waiting-children"], timestamp, id)
  else
    make_available(queue, id, number(fields[5]) or 0, "LPUSH")
    wake(queue)
    emit(queue, "waiting", id)
  end
end
