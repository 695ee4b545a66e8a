-- Which finished jobs are kept, and for how long. Needs:
--- include rarely finish/own_retention

-- What the opts of a job say about it, under the names that the runtimes write; else what `rules` say of the target,
-- "completed" or "failed".
local function retention_of(target, opts, rules)
  local own
  if target == "failed" then
    own = opts.removeOnFail or opts.rof or opts.remove_on_fail
  else
    own = opts.removeOnComplete or opts.roc or opts.remove_on_complete
  end
  return own and own_retention(own, rules[target]) or rules[target]
end
