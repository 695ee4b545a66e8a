-- Whether keys have the types that they should have. Needs:
--- include values

-- What answers with a number if and only if a key has the type, or is not there. That costs
-- half of what TYPE costs.
local SIZE = { list = "LLEN", zset = "ZCARD", set = "SCARD", hash = "HLEN", stream = "XLEN", string = "STRLEN" }

-- What is wrong with the first key that holds something else than it should, or nil.
-- `types` is a list of a key, its type, a key, its type …
local function mistyped(types)
  for at = 1, #types, 2 do
    local key, should_be = types[at], types[at + 1]
    local size = redis.pcall(SIZE[should_be], key)
    if type(size) ~= "number" then
      if not size.err:find("WRONGTYPE", 1, true) then
        return key .. " may not be used by this user, or not from here"
      end
      local found = attempt("TYPE", key)
      return key .. " is " .. (found and "a " .. found.ok or "something else") .. " and should be a " .. should_be
    end
  end
  return nil
end
