-- The stack traces that a failed job keeps. Needs:
--- include values

local MOST_TRACES = 100 -- of a job whose opts set no limit
local LARGEST_LIMIT = 1000

-- The field `stacktrace` after one more failure, a JSON list of texts. `earlier` is the field
-- before it. The opts may say how many are kept at most (stackTraceLimit), even none.
local function stacktrace_of(opts, earlier, latest)
  local limit = math.min(math.floor(number(opts.stackTraceLimit) or MOST_TRACES), LARGEST_LIMIT)
  if limit == 0 then
    return "[]"
  elseif limit < 0 then
    limit = MOST_TRACES
  end
  local is_list, traces = pcall(cjson.decode, earlier or "[]")
  if not is_list or type(traces) ~= "table" or #traces == 0 then
    return latest
  end
  traces[#traces + 1] = cjson.decode(latest)[1]
  local is_json, kept = pcall(cjson.encode, { unpack(traces, math.max(#traces - limit + 1, 1)) })
  return is_json and kept or latest -- others may have written numbers that are none in JSON
end
