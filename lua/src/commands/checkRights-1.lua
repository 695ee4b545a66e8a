--[[
Finds out which commands the user may not run, before a script stops halfway at one of them.
Each is run in a way that changes nothing, on a key that holds a text for as long.

KEYS  1 any key of the queue
ARGV  the commands that a script may run; other words are left out

Returns the commands that are refused, or SET alone, which this takes. Nothing is tried for a script that only
reads, since it leaves nothing undone.

Cost: O(1).
--]]
local WRITES = true

-- By command: the arguments behind its key, none of which would matter, and whether it writes.
local COMMANDS = {
  DEL = { {}, WRITES }, UNLINK = { {}, WRITES }, PEXPIRE = { { "0" }, WRITES }, RENAME = { { "0" }, WRITES },
  EXISTS = { {} }, TYPE = { {} }, PTTL = { {} },
  GET = { {} }, MGET = { {} }, STRLEN = { {} }, SET = { { "0", "PX", "1" }, WRITES }, INCR = { {}, WRITES },
  INCRBY = { { "0" }, WRITES },
  HGET = { { "0" } }, HMGET = { { "0" } }, HLEN = { {} }, HEXISTS = { { "0" } }, HDEL = { { "0" }, WRITES },
  HSET = { { "0", "0" }, WRITES }, HINCRBY = { { "0", "0" }, WRITES },
  LINDEX = { { "0" } }, LLEN = { {} }, LPOS = { { "0" } }, LRANGE = { { "0", "0" } }, LPUSH = { { "0" }, WRITES },
  RPUSH = { { "0" }, WRITES }, LPOP = { {}, WRITES }, RPOP = { {}, WRITES }, LREM = { { "0", "0" }, WRITES },
  LMOVE = { { "0", "RIGHT", "LEFT" }, WRITES }, LSET = { { "0", "0" }, WRITES }, LTRIM = { { "0", "0" }, WRITES },
  SCARD = { {} }, SISMEMBER = { { "0" } }, SMISMEMBER = { { "0" } }, SADD = { { "0" }, WRITES },
  SREM = { { "0" }, WRITES },
  ZCARD = { {} }, ZSCORE = { { "0" } }, ZMSCORE = { { "0" } }, ZRANGE = { { "0", "0" } }, ZREVRANGE = { { "0", "0" } },
  ZRANGEBYSCORE = { { "0", "0" } }, ZREVRANGEBYSCORE = { { "0", "0" } }, ZADD = { { "0", "0" }, WRITES },
  ZREM = { { "0" }, WRITES }, ZPOPMIN = { {}, WRITES },
  XLEN = { {} }, XREVRANGE = { { "+", "-" } }, XADD = { { "*", "0", "0" }, WRITES },
  XTRIM = { { "MAXLEN", "0" }, WRITES },
}
local REMOVES = { DEL = true, UNLINK = true, PEXPIRE = true, RENAME = true }

local trial, absent, refused, writes = KEYS[1] .. ":rights", KEYS[1] .. ":rights:absent", {}, false

local function is_refused(command, ...)
  local reply = redis.pcall(command, ...)
  local problem = type(reply) == "table" and reply.err or ""
  return problem:find("permissions to run", 1, true) or problem:find("can't run", 1, true)
end

for _, word in ipairs(ARGV) do
  writes = writes or (COMMANDS[word] ~= nil and COMMANDS[word][2])
end
if not writes then
  return refused
end
if is_refused("SET", trial, "0", "PX", "1") then -- gone in 1 ms, even if it may not be deleted
  return { "SET" }
end
for _, word in ipairs(ARGV) do
  local command = COMMANDS[word]
  if word == "TIME" and is_refused("TIME")
    or command and is_refused(word, REMOVES[word] and absent or trial, unpack(command[1])) then
    refused[#refused + 1] = word
  end
end
redis.pcall("DEL", trial)
return refused
