-- Which jobs the newest events tell of. Needs:
--- include queue/newest_events

-- The ids of those to which this has happened, as keys of a table.
local function ids_told_of(queue, event)
  local ids = {}
  for _, entry in ipairs(newest_events(queue)) do
    if entry[2][2] == event and entry[2][4] then
      ids[entry[2][4]] = true
    end
  end
  return ids
end
