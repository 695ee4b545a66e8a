-- What is told of a job with which something went wrong. Needs no other include.

-- What went wrong, of what may have.
local function faults_of(...)
  local faults = {}
  for at = 1, select("#", ...) do
    faults[#faults + 1] = select(at, ...) or nil
  end
  return faults
end
