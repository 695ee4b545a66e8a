-- The other keys of a queue in which jobs stand, or that say something about them. Needs no other include.

-- Adds these keys to those that are common. What only jobs need that are delayed or have a priority costs the others
-- nothing so.
local function add_job_keys(queue)
  local prefix = queue.prefix
  queue.delayed, queue.prioritized = prefix .. "delayed", prefix .. "prioritized"
  queue.completed, queue.failed, queue.stalled = prefix .. "completed", prefix .. "failed", prefix .. "stalled"
  queue.limiter = prefix .. "limiter"
end
