-- Redis at its maxmemory.
--
-- It refuses every command that may need memory, with one exception: a script that has written
-- before is let go on to its end, so as not to leave half of its work (Redis 6.2, 7 and Valkey
-- do the same). So a script that keeps, ends or gives back a job begins with a write that needs
-- no memory: it is by such scripts that memory becomes free. One that adds a job does not.

-- Removes a key that there is not.
local function write_though_memory_is_full(prefix)
  redis.call("DEL", prefix .. "no-such-key")
end
