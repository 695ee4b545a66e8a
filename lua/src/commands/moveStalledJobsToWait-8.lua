--[[
Finds the jobs of dead workers in a queue: marks them, and requeues or fails those that
an earlier check has marked. See "Stalled recovery" in the EchoMQ protocol.

KEYS  1 stalled  2 wait  3 active  4 failed  5 stalled-check  6 meta  7 paused  8 marker
ARGV  1 key prefix of the queue, with or without its last colon
      2 max_stalled_count: how many stalls a job survives; `maxStalledCount` of its opts goes first
      3 the time in ms, or 0 for the server's

With these three it does one whole check, at once and unthrottled. The rest is optional:

      4 interval in ms: skip the check when another sweeper made one less than that ago
      5 id of the sweep, "<sweeper>/<number>": makes a call that is sent twice count once,
        and ties the calls of a sweep together
      6 how many ids to look at in this call; the reply says where the next one goes on
      7 number of this call in its sweep, from 0
      8 and 9 where the last call stopped: its offset and its anchor
      10 write nothing, and for "report" describe each job and what a check would do to it; for "verdicts" say
         what it would do to each job without a lock
      11 how many ms failed jobs are kept whose opts do not say so: the last call removes up to 1,000. Empty for all
      12 how many ids are still to be looked at, as the last reply said
      13 the share of the active jobs, up to 1, that may be recovered at once: a check that would
         recover more is held, and the next sweep goes through. Empty for all
      14 how many ms there are between two sweeps
      15 in a report, the only id to look at. Empty for all

Returns a list:
      1 recovered  2 failed  3 ms until the throttle ends, or -1 when the check was made
      4 marked  5 dropped  6 the ids recovered, one right after the other
      7 jobs failed: id, reason, stalls, worker, name and data each; the data only of a job that was removed
      8 oddities: id and what is odd about it
      9 offset of the next call, or -1 after the last one  10 anchor of the next call
      11 in a report, texts about some ids each, which protocol/active_jobs.py reads
      12 how many ids are still to be looked at, once the sweep has moved some; else empty
      13 for each id recovered, as big-endian numbers: its length as an I4, and as an i8 the ms since a worker
         fetched it, or -1 where no `processedOn` says so
      14 of a check that was held: how many it would have recovered, how many are active, 1 if it is the first

Cost: O(1) for each id in `active`, and O(log N) in the jobs finished or prioritized for each
that is stalled. A call of a command costs more than what it does, so most are made once for
many ids. Stalled ids become tombstones that one LREM takes away, since an LREM for each of
them would make the check quadratic. With a limit (ARGV 6) a call ends after about 5 ms. In a
long list whose old end is healthy, ids that were looked at move to the new end, where they
do not stand between that end and the stalled ones.

The marks of earlier checks are set aside while a sweep runs: that tells them from its own
marks, and those left over at the end name ids that are no longer in `active`.
--]]
--- include values
--- include queue/types
--- include queue/meta
--- include queue/events
--- include queue/full
--- include queue/lists
--- include queue/wake
--- include finish/prune
--- include stalled/call
--- include stalled/throttle
--- include rarely stalled/hold
--- include stalled/cursor
--- include stalled/marks
--- include stalled/reply
--- include stalled/apply
--- include rarely stalled/report

local call = read_call()
local queue = call.queue

local function check()
  trim_events(queue)
  set_marks_aside(call)
  resume(call)
  local left_in_paused = not queue.is_paused and redis.call("EXISTS", queue.paused) == 1
  waiting_list(queue) -- which brings back what another runtime's resume has left in `paused`
  local ended = walk(call, apply_verdicts)
  if left_in_paused then
    wake(queue)
  end
  wake_for_what_changed(call)
  release_marks(call, ended)
  if ended then
    prune(queue, queue.failed, call.keep_failed, call.timestamp)
    note_unthrottled(call)
  end
  return recorded(call, reply(call, -1, ended))
end

if not call.max_stalled_count or not number(call.timestamp) then
  return redis.error_reply("ECHOMQ refuses the call: max_stalled_count (ARGV 2) and timestamp (ARGV 3) must be numbers")
end
local refused = refusal(queue, types_of(queue, call.throttle, "string"))
if refused then
  return refused
end
if call.is_report then
  return reply(call, -1, report(call))
end
local answer = recorded_reply(call)
if answer then
  return answer
end
write_although_full(queue)
local waits = call.interval and call.step == 0 and throttled(call)
if waits then
  return reply(call, waits, true)
end
if call.max_share and call.step == 0 and is_held(call) then
  return reply(call, -1, true)
end
return check()
