-- Built by tools/build-lua from lua/src/commands/extendLocks-1.lua: edit that file, not this one.
--[[
Renews the locks that a worker process holds in a queue, and removes the marks of their jobs.

KEYS  1 stalled
ARGV  1 key prefix of the queue, with or without its last colon
      2 tokens, a msgpack list  3 ids, a msgpack list  4 lock duration in ms
      5 optional: the `ats` with which each job was fetched, a msgpack list. With it an owner
        that was only paused comes back: a job that is still in `active`, has no lock and
        was fetched by nobody since gets its lock again; unless it was released, since the
        connection of its worker was gone.

Returns the ids that could not be renewed. With the fifth argument, a list of
      1 the tokens of the locks that are lost: tokens, since a process may have lost a job and
        fetched it again
      2 the smallest TTL that was left of a lock in ms, -1 when none was renewed
      3 the tokens of the locks that Redis refused to renew, and 4 the first reason, or ""

A job whose keys are odd keeps no other one from being renewed. It works when Redis is at its
maxmemory.

Cost: O(1) for each lock, O(N) in `active` for one that is to come back.
--]]

--- includes/queue/full.lua
-- What scripts can do while Redis is at its `maxmemory` and may evict nothing. Needs no other
-- include.

-- Redis then refuses a command that may take more memory, but only until the script has written
-- something: it stops none in the middle. A script whose purpose is to finish, give back, recover
-- or hold up jobs goes on when the first command that writes may not take more, as this one, which
-- changes nothing, whatever `meta` is. A script that adds jobs must not start so.
local function write_although_full(queue)
  local reply = redis.pcall("HDEL", queue.meta, "")
  if type(reply) == "table" and not reply.err:find("WRONGTYPE", 1, true) then
    redis.call("HDEL", queue.meta, "") -- on a replica, say: the script ends with its error
  end
end

--- commands/extendLocks-1.lua

local prefix = ARGV[1]:sub(-1) == ":" and ARGV[1] or ARGV[1] .. ":"
local tokens, ids, duration = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3]), ARGV[4]
local started = ARGV[5] and cmsgpack.unpack(ARGV[5])
local lost, refused, reason, failed_ids, smallest_ttl = {}, {}, "", {}, -1

local function may_come_back(at)
  return started and redis.pcall("HGET", prefix .. ids[at], "ats") == started[at]
    and redis.pcall("GET", prefix .. ids[at] .. ":released") ~= tokens[at]
    and type(redis.pcall("LPOS", prefix .. "active", ids[at])) == "number"
end

-- Returns the TTL that was left, false for a lock that is lost, or why Redis refused it, as text.
local function renew(at)
  local lock = prefix .. ids[at] .. ":lock"
  local held = redis.pcall("GET", lock)
  if held == tokens[at] then
    local left = redis.call("PTTL", lock)
    local renewed = redis.pcall("PEXPIRE", lock, duration)
    return type(renewed) == "table" and "PEXPIRE: " .. renewed.err or (left < 0 and tonumber(duration) or left)
  end
  if held or not may_come_back(at) then
    return false
  end
  local renewed = redis.pcall("SET", lock, tokens[at], "PX", duration)
  return renewed.err and "SET: " .. renewed.err or 0
end

write_although_full({ meta = prefix .. "meta" })
for at, id in ipairs(ids) do
  local left = renew(at)
  if type(left) == "number" then
    redis.pcall("SREM", KEYS[1], id)
    smallest_ttl = smallest_ttl == -1 and left or math.min(smallest_ttl, left)
  elseif left then
    refused[#refused + 1] = tokens[at]
    reason = reason == "" and left or reason
  else
    lost[#lost + 1] = tokens[at]
  end
  if type(left) ~= "number" then
    failed_ids[#failed_ids + 1] = id
  end
end
return started and { lost, smallest_ttl, refused, reason } or failed_ids
