-- Which finished jobs are kept, and for how long, where a job says it itself. Needs:
--- include values

-- How many finished jobs to keep, from removeOnComplete or removeOnFail: a table that may
-- have `count` and `age` (seconds), or `keep` when neither is said. The job's own `count` or `age` alone leaves no
-- other bound.
local function own_retention(value, keep)
  if value == true then
    return { count = 0 }
  end
  local rule = type(value) == "table" and value or { count = value }
  local count, age = number(rule.count), number(rule.age)
  return (count or age) and { count = count and math.floor(count), age = age } or keep
end
