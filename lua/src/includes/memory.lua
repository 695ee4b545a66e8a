-- A Redis at its maxmemory refuses every command that may need memory, unless the script has
-- written before: then it lets the script get to its end. What keeps, ends or gives back a job
-- begins with a write that needs none, since it is by such scripts that memory becomes free.
local function write_though_memory_is_full(prefix)
  redis.call("DEL", prefix .. "no-such-key")
end
