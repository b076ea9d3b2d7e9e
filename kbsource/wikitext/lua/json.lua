-- JSON to tables and back, as PHP's arrays would have them.
--
-- Source: RFC 8259; TextLibrary of Scribunto: keys that are whole numbers are numbers, lists begin with 1.
local kit = ...
local charge = kit.charge
local byte, char, find, format, gsub, match, sub = string.byte, string.char, string.find, string.format, string.gsub, string.match, string.sub
local concat, floor, huge, sort = table.concat, math.floor, math.huge, table.sort
local KEEP_KEYS, FIX, PRETTY = 1, 2, 4

local function has(flags, flag)
    return floor((flags or 0) / flag) % 2 == 1
end
local function number_of(key) -- keys that PHP keeps as whole numbers
    return (key == '0' or find(key, '^%-?[1-9]%d*$')) and #key < 16 and tonumber(key) or key
end

local function shifted(t, n)
    local out = {}
    for i = 0, n - 1 do
        out[i + 1] = t[i]
    end
    return out
end

-- A list that begins with 0 begins with 1 instead.
local function from_one(t, n)
    for i = 0, n - 1 do
        if t[i] == nil then
            return t
        end
    end
    return shifted(t, n)
end

local escapes = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/' }
local words = { ['true'] = true, ['false'] = false }
local MAX_DEPTH = 512 -- json_decode of PHP

function kit.decode_json(s, flags)
    local is_kept, is_fixed = has(flags, KEEP_KEYS), has(flags, FIX)
    local place, depth = 1, 0
    charge(floor(#s / 8))

    local function fail()
        error('mw.text.jsonDecode: Syntax error', 0)
    end
    local function skip()
        place = match(s, '^[ \t\r\n]*()', place)
    end
    local function take(c)
        skip()
        if byte(s, place) == c then
            place = place + 1
            return true
        end
    end
    local function point(digits)
        local code = digits and tonumber(digits, 16) or fail()
        if code >= 0xD800 and code < 0xDC00 then
            local low = match(s, '^\\u([dD][c-fC-F]%x%x)', place) or fail()
            place = place + 6
            code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00
        elseif code >= 0xDC00 and code < 0xE000 then
            fail()
        end
        return kit.ustring.char(code)
    end
    local function text()
        local out = {}
        while true do
            local plain, mark, behind = match(s, '^([^"\\%c]*)(["\\\127])()', place)
            if not plain then
                fail()
            end
            out[#out + 1] = plain
            place = behind
            if mark == '"' then
                return concat(out)
            elseif mark == '\127' then
                out[#out + 1] = mark
            else
                local kind = sub(s, place, place)
                place = place + 1
                if kind == 'u' then
                    local digits = match(s, '^%x%x%x%x', place)
                    place = place + 4
                    out[#out + 1] = point(digits)
                else
                    out[#out + 1] = escapes[kind] or fail()
                end
            end
        end
    end
    local value
    local function list(closer, is_object)
        local out, n, is_array = {}, 0, true
        depth = depth + 1
        if depth > MAX_DEPTH then
            error('mw.text.jsonDecode: Maximum stack depth exceeded', 0)
        end
        if not take(closer) then
            repeat
                if is_fixed and n > 0 and take(closer) then
                    place = place - 1
                    break
                end
                local key = n
                if is_object then
                    key = take(34) and number_of(text()) or fail()
                    if not take(58) then
                        fail()
                    end
                    is_array = is_array and key == n
                end
                out[key] = value()
                n = n + 1
            until not take(44)
            if not take(closer) then
                fail()
            end
        end
        depth = depth - 1
        if is_kept or not is_array then
            return out
        elseif is_object then
            return from_one(out, n)
        end
        return shifted(out, n)
    end
    function value()
        skip()
        local c = sub(s, place, place)
        if c == '{' or c == '[' then
            place = place + 1
            return list(c == '{' and 125 or 93, c == '{')
        elseif c == '"' then
            place = place + 1
            return text()
        end
        local word, behind = match(s, '^([%w%.+-]+)()', place)
        place = behind or fail()
        if word == 'null' then
            return nil
        elseif words[word] ~= nil then
            return words[word]
        end
        local whole, rest = match(word, '^%-?(%d+)(.*)$')
        if not whole or (#whole > 1 and byte(whole) == 48) or not (find(rest, '^%.?%d*$') or find(rest, '^%.?%d*[eE][+-]?%d+$')) or find(rest, '^%.%D') or rest == '.' then
            fail()
        end
        return tonumber(word)
    end

    local out = value()
    skip()
    if place <= #s then
        fail()
    end
    return out
end

local signs = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }
local function quoted(s)
    s = gsub(s, '["\\%c]', function(c)
        return signs[c] or c ~= '\127' and format('\\u%04x', byte(c)) or c
    end)
    return '"' .. gsub(gsub(s, '\226\128\168', '\\u2028'), '\226\128\169', '\\u2029') .. '"'
end
local function written(n)
    if n ~= n or n == huge or n == -huge then
        error('mw.text.jsonEncode: Cannot encode non-finite numbers', 0)
    elseif n == floor(n) and n < 1e15 and n > -1e15 then
        return format('%d', n)
    end
    for digits = 14, 17 do
        local out = format('%.' .. digits .. 'g', n)
        if tonumber(out) == n then
            return out
        end
    end
end

-- Keys in PHP's order: as numbers, where those that are none count as 0; and whether they make a list.
local function ordered(t, is_kept)
    local keys, values, rank, is_list = {}, {}, {}, true
    for key, value in pairs(t) do
        if type(key) == 'number' and (key == huge or key == -huge) then
            error("mw.text.jsonEncode: Cannot use 'inf' as a table key", 0)
        elseif type(key) ~= 'number' and type(key) ~= 'string' then
            error("mw.text.jsonEncode: Cannot use type '" .. type(key) .. "' as a table key", 0)
        end
        keys[#keys + 1] = key
        values[key], rank[key] = value, #keys
    end
    if not is_kept then
        sort(keys, function(a, b)
            local x, y = tonumber(a) or 0, tonumber(b) or 0
            return x == y and rank[a] < rank[b] or x < y
        end)
    end
    local first = keys[1] ~= nil and not is_kept and tonumber(keys[1]) == 1 and 1 or 0
    for i = 1, #keys do
        local key = type(keys[i]) == 'string' and number_of(keys[i]) or keys[i]
        is_list = is_list and key == i - 1 + first
    end
    return keys, values, is_list
end

function kit.encode_json(given, flags)
    local is_kept, is_pretty = has(flags, KEEP_KEYS), has(flags, PRETTY)
    local out, within = {}, {}
    local function line(depth)
        if is_pretty then
            out[#out + 1] = '\n' .. ('    '):rep(depth)
        end
    end
    local function write(value, depth)
        local kind = type(value)
        if kind == 'string' then
            out[#out + 1] = quoted(value)
        elseif kind == 'number' then
            out[#out + 1] = written(value)
        elseif kind == 'boolean' or value == nil then
            out[#out + 1] = value == nil and 'null' or tostring(value)
        elseif kind ~= 'table' then
            error("mw.text.jsonEncode: Cannot encode type '" .. kind .. "'", 0)
        elseif within[value] then
            error('mw.text.jsonEncode: Cannot use recursive tables', 0)
        else
            within[value] = true
            local keys, values, is_list = ordered(value, is_kept)
            out[#out + 1] = is_list and '[' or '{'
            for i = 1, #keys do
                line(depth + 1)
                if not is_list then
                    out[#out + 1] = quoted(tostring(keys[i])) .. (is_pretty and ': ' or ':')
                end
                write(values[keys[i]], depth + 1)
                out[#out + 1] = i < #keys and ',' or nil
            end
            if #keys > 0 then
                line(depth)
            end
            out[#out + 1] = is_list and ']' or '}'
            within[value] = nil
        end
    end
    write(given, 0)
    return concat(out)
end
