-- The event of a job that completed. It carries the result, and the stream holds some 10,000 of them:
-- one that is too large stays in the job's hash alone. Needs:
--- include queue/events

-- `returnvalue` must be JSON, or listeners of BullMQ break: in place of a result of more bytes
-- than `most` they get null, and its length under another name.
local function emit_completed(queue, id, value, most)
  if #value <= most then
    emit(queue, "completed", id, "returnvalue", value, "prev", "active")
  else
    emit(queue, "completed", id, "returnvalue", "null", "returnvalueBytes", #value, "prev", "active")
  end
end
