--[[
Tells whether a job sits in `active` and has no lock.

KEYS  1 active  2 the job's lock
ARGV  1 the job's id

Returns 1 or 0. Cost: O(N) in `active` for a job without a lock, else O(1).
--]]
--- include types

local fault = mistyped({ KEYS[1], "list" })
if fault then
  return redis.error_reply("ECHOMQ refuses the queue: " .. fault .. ". Repair or remove that key.")
end
if redis.call("EXISTS", KEYS[2]) == 1 then
  return 0
end
return redis.call("LPOS", KEYS[1], ARGV[1]) and 1 or 0
