-- How idle workers learn of what is there, when nobody may know of it: a queue is resumed, or the worker that took the
-- marker was killed. The queue's meta must have been read. Needs:
--- include queue/wake_for_waiting
--- include queue/mark_due

-- Wakes an idle worker for the jobs that wait, and tells when the next delayed one is due.
local function put_markers_back(queue)
  wake_for_waiting(queue)
  mark_next_due(queue)
end
