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
