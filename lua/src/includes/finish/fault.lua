-- Whose matter an error is that comes up while a job finishes. Needs no other include.

-- What went wrong with one job: a key of the wrong type. What else goes wrong is the server's, and the client sends
-- the call again.
local function fault_of_job(err)
  local fault = type(err) == "table" and err.err or err
  if not fault:find("WRONGTYPE", 1, true) then
    error(err, 0)
  end
  return fault
end
