-- mw.ustring: the string functions on code points instead of bytes.
local kit = ...
local ask, points_of = kit.ask, kit.points_of
local char, floor, len, sub = string.char, math.floor, string.len, string.sub

local ustring = { maxStringLength = kit.max_string, maxPatternLength = kit.max_pattern }
for name, f in pairs(kit.of_points) do
    ustring[name] = f
end
ustring.rep, ustring.byte, ustring.format = string.rep, string.byte, string.format -- which count bytes

local function text(value, name)
    if type(value) ~= 'string' and type(value) ~= 'number' then
        error("bad argument #1 to '" .. name .. "' (string expected, got " .. type(value) .. ')', 3)
    end
    return tostring(value)
end

function ustring.len(s)
    s = text(s, 'len')
    if not s:find('[\128-\255]') then
        return len(s)
    end
    return ask('length', s)
end

function ustring.sub(s, i, j)
    s = text(s, 'sub')
    if not s:find('[\128-\255]') then
        return sub(s, i or 1, j or -1)
    end
    return ask('sub', s, i or 1, j or -1)
end

local function folding(name)
    return function(s)
        s = text(s, name)
        if not s:find('[\128-\255]') then
            return string[name](s)
        end
        return ask(name, s)
    end
end
ustring.upper, ustring.lower = folding('upper'), folding('lower')
for i, form in ipairs({ 'NFC', 'NFD', 'NFKC', 'NFKD' }) do
    ustring['to' .. form] = function(s)
        return ask('normalise', form, text(s, 'to' .. form))
    end
end

local function encode(given, i)
    local c = floor(tonumber(given) or error("bad argument #" .. i .. " to 'char' (number expected, got " .. type(given) .. ')', 3))
    if c < 0 or c > 0x10FFFF or (c >= 0xD800 and c <= 0xDFFF) then
        error("bad argument #" .. i .. " to 'char' (value out of range)", 3)
    elseif c < 0x80 then
        return char(c)
    elseif c < 0x800 then
        return char(0xC0 + floor(c / 64), 0x80 + c % 64)
    elseif c < 0x10000 then
        return char(0xE0 + floor(c / 4096), 0x80 + floor(c / 64) % 64, 0x80 + c % 64)
    end
    return char(0xF0 + floor(c / 262144), 0x80 + floor(c / 4096) % 64, 0x80 + floor(c / 64) % 64, 0x80 + c % 64)
end

function ustring.char(...)
    local out = {}
    for i = 1, select('#', ...) do
        out[i] = encode((select(i, ...)), i)
    end
    return table.concat(out)
end

function ustring.codepoint(s, i, j)
    i = i or 1
    return unpack((points_of(ustring.sub(s, i, j or i), 'codepoint')))
end

function ustring.gcodepoint(s, i, j)
    local points = points_of(ustring.sub(s, i or 1, j or -1), 'gcodepoint')
    local k = 0
    return function()
        k = k + 1
        return points[k]
    end
end

function ustring.isutf8(s)
    return ask('same', text(s, 'isutf8')) == s -- what is no UTF-8 comes back as U+FFFD
end

function ustring.byteoffset(s, l, i)
    local _, n, places = points_of(text(s, 'byteoffset'), 'byteoffset')
    i = i or 1
    i = i < 0 and len(s) + i + 1 or i
    if i < 1 or i > len(s) then
        return nil
    end
    local k = n + 1
    while k > 1 and (places[k] > i) do
        k = k - 1
    end
    l = l or 1
    local wanted = k + l - (l > 0 and places[k] == i and 1 or 0)
    return wanted >= 1 and wanted <= n and places[wanted] or nil
end

kit.ustring = ustring
