-- Built by tools/build-lua from lua/src/commands/extendLocks-1.lua: edit that file, not this one.
--[[
Renews the locks that a worker process holds in a queue, and removes the marks of their jobs.

KEYS  1 stalled
ARGV  1 key prefix of the queue, with or without its last colon
      2 tokens, a msgpack list  3 ids, a msgpack list  4 lock duration in ms
      5 optional: the `ats` with which each job was fetched, a msgpack list. With it an owner
        that was only paused comes back: a job that is still in `active`, has no lock and
        was fetched by nobody since gets its lock again.

Returns the ids that could not be renewed; with the fifth argument a list of their tokens, since a
process may have lost a job and fetched it again, and of the smallest TTL that was left of a lock in
ms (-1 when none was renewed).

Cost: O(1) for each lock, O(N) in `active` for one that is to come back.
--]]
local prefix = ARGV[1]:sub(-1) == ":" and ARGV[1] or ARGV[1] .. ":"
local tokens, ids, duration = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3]), ARGV[4]
local started = ARGV[5] and cmsgpack.unpack(ARGV[5])
local lost, smallest_ttl = {}, -1

local function may_come_back(at)
  return started and redis.call("HGET", prefix .. ids[at], "ats") == started[at]
    and redis.call("LPOS", prefix .. "active", ids[at])
end

for at, id in ipairs(ids) do
  local lock = prefix .. id .. ":lock"
  local held = redis.call("GET", lock)
  if held == tokens[at] then
    local ttl = redis.call("PTTL", lock)
    smallest_ttl = smallest_ttl == -1 and ttl or math.min(smallest_ttl, ttl)
  end
  if held == tokens[at] or (not held and may_come_back(at)) then
    smallest_ttl = held and smallest_ttl or 0
    redis.call("SET", lock, tokens[at], "PX", duration)
    redis.call("SREM", KEYS[1], id)
  else
    lost[#lost + 1] = started and tokens[at] or id
  end
end
if started then
  return { lost, smallest_ttl }
end
return lost
