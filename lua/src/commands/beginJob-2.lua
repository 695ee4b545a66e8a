--[[
Records that a worker starts a job which it had fetched before. If the worker dies from now
on, the job has stalled.

KEYS  1 the job  2 its lock
ARGV  1 token of the lock

Returns 1, or 0 when the worker does not hold the job any more. Cost: O(1).
--]]
if redis.call("GET", KEYS[2]) == ARGV[1] then
  return redis.call("HDEL", KEYS[1], "unbegun")
end
return 0
