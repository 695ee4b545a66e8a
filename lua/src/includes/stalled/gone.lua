-- What the check does about jobs whose hashes are gone. Takes the `call` of stalled/call. Needs:
--- include finish/gone
--- include stalled/call

-- Adds the jobs that wait for the end of others whose hashes are gone. The events are read once a call.
local function follow_gone_jobs(call, ids)
  call.waited_for = call.waited_for or deduplication_ids(call.queue)
  for _, id in ipairs(ids) do
    local fault = follow_gone_job(call.queue, id, call.waited_for[id], call.timestamp)
    if fault then
      note(call, id, fault)
    end
  end
end
