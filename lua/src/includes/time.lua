-- Times for people. Needs no other include.

-- The ISO 8601 form of seconds since the epoch, without the Z.
local function iso_second(whole)
  local days, second = math.floor(whole / 86400), whole % 86400
  -- Years that begin in March have their leap day at the end; 400 of them are 146,097 days.
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524)
    - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local from_march = math.floor((5 * of_year + 2) / 153)
  local day = of_year - math.floor((153 * from_march + 2) / 5) + 1
  local month = from_march < 10 and from_march + 3 or from_march - 9
  return string.format("%04d-%02d-%02dT%02d:%02d:%02d", year + era * 400 + (month <= 2 and 1 or 0), month, day,
    math.floor(second / 3600), math.floor(second / 60) % 60, second % 60)
end

local DIGITS = { [0] = "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }
local iso_seconds = {} -- since the jobs of a call began, or stalled, at about the same time

-- The ISO 8601 form of ms since the epoch, in parts: up to the second, and each digit of the ms. Whoever joins
-- them puts a "." before the digits and a "Z" after them. To turn a number into text takes longer.
local function iso_parts(ms)
  local rest = ms % 1000
  local whole = (ms - rest) / 1000
  local text = iso_seconds[whole]
  if not text then
    text = iso_second(whole)
    iso_seconds[whole] = text
  end
  local tens, ones = rest % 100, rest % 10
  return text, DIGITS[(rest - tens) / 100], DIGITS[(tens - ones) / 10], DIGITS[ones - ones % 1]
end

-- The ISO 8601 form of ms since the epoch, in UTC: "2023-11-14T22:13:20.000Z".
local function iso_time(ms)
  local second, hundreds, tens, ones = iso_parts(ms)
  return second .. "." .. hundreds .. tens .. ones .. "Z"
end

-- The ms since the epoch of a time in that form.
local function ms_of(iso)
  local year, month, day, hour, minute, second, ms = iso:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)%.?(%d*)Z$")
  if not year then
    return 0
  end
  local from_march, since = (month + 9) % 12, year - (month + 0 <= 2 and 1 or 0)
  local days = since * 365 + math.floor(since / 4) - math.floor(since / 100) + math.floor(since / 400)
    + math.floor((from_march * 153 + 2) / 5) + day - 1 - 719468
  return ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000 + (tonumber(ms) or 0)
end
