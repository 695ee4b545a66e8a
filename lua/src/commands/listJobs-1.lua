--[[
Lists jobs of one state of a queue, a page at a time. Writes nothing.

KEYS  1 meta
ARGV  1 key prefix of the queue, with its last colon  2 state: wait, paused, active, delayed, prioritized,
        waiting-children, completed or failed
      3 offset  4 how many ids to look at, or fewer when their jobs are large
      5 "newest" for those that came last first, else those that come next, or finished last, first
      6 a text: only the jobs that have it in their id, name, data or failedReason; "" for all
      7 the most bytes of data to return of a job; the rest is left out

Returns a list:
      1 how many ids the state has  2 how many were looked at
      3 for each job: its id, 1 (or 0 without a hash, -1 for another type), TTL of its lock in ms, score or "", size of
        its data, the fields of inspect/row, and for one that waits for a worker since when, in ms, and 1 if that is
        known, 0 if it may be later

Cost: O(1) for each id that is looked at, beyond what it takes to get to the offset.
--]]
--- include values
--- include queue/keys
--- include queue/types
--- include queue/meta
--- include queue/time
--- include inspect/page
--- include inspect/row

local MOST_BYTES = 4000000 -- of jobs after which a call looks at no further one: that takes some 5 ms, or 15 to search

local prefix, state, offset, count = ARGV[1], ARGV[2], number(ARGV[3]), number(ARGV[4])
local newest, needle = ARGV[5] == "newest", ARGV[6]:lower()
local queue = queue_at(prefix)

local function matches(id, fields)
  for _, text in ipairs({ id, fields[1] or "", fields[2] or "", fields[13] or "" }) do
    if text:lower():find(needle, 1, true) then
      return true
    end
  end
  return false
end

local function bytes_of(fields)
  local bytes = 0
  for at = 1, #ROW_FIELDS do
    bytes = bytes + (fields[at] and #fields[at] or 0)
  end
  return bytes
end

local refused = refusal(queue, types_of(queue))
if refused then
  return refused
end
local look = { now = tonumber(time_in_ms()), most_data = number(ARGV[7]), events = 0 }
local ids, scores = ids_of(queue, state, offset, count, newest)
local rows, looked_at, bytes = {}, 0, 0
for _, id in ipairs(ids) do
  if bytes > MOST_BYTES then
    break
  end
  local fields, there = read_row_fields(queue, id)
  looked_at, bytes = looked_at + 1, bytes + bytes_of(fields)
  if needle == "" or matches(id, fields) then
    rows[#rows + 1] = describe_row(queue, id, state, scores[id], fields, there, look)
  end
end
return { count_of(queue, state), looked_at, rows }
