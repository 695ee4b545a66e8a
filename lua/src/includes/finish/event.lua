-- The events of a job's end. Each may carry a result or a reason, and the stream holds some
-- 10,000 of them: one that is too large stays in the job's hash alone. Needs:
--- include values
--- include queue/events

-- The first bytes of a text, without a part of a character at the end.
local function first_bytes(text, count)
  if (text:byte(count + 1) or 0) < 128 or text:byte(count + 1) > 191 then
    return text:sub(1, count)
  end
  return (text:sub(1, count):gsub("[\192-\255][\128-\191]*$", ""))
end

-- `returnvalue` must be JSON, or listeners of BullMQ break: in place of a result of more bytes
-- than `most` they get null, and its length under another name.
local function emit_completed(queue, id, value, most)
  if #value <= most then
    emit(queue, "completed", id, "returnvalue", value, "prev", "active")
  else
    emit(queue, "completed", id, "returnvalue", "null", "returnvalueBytes", #value, "prev", "active")
  end
end

local function emit_failed(queue, id, reason, most, attempts_made)
  emit(queue, "failed", id, "failedReason", #reason <= most and reason or first_bytes(reason, most), "prev", "active")
  emit(queue, "retries-exhausted", id, "attemptsMade", digits(attempts_made))
end
