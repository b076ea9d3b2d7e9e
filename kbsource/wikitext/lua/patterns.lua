-- find, match, gmatch and gsub, of bytes and of code points.
--
-- C's matcher is faster than ours: it takes the patterns whose worst case is small.
local kit = ...
local charge = kit.charge
local sub, len, find_c, match_c, gmatch_c, gsub_c = string.sub, string.len, string.find, string.match, string.gmatch, string.gsub
local type, error, select, tostring, tonumber, unpack, concat = type, error, select, tostring, tonumber, unpack, table.concat
local floor, huge, min = math.floor, math.huge, math.min

local MAX_STRING, MAX_PATTERN = 2097152, 10000 -- bytes that functions of code points take
kit.max_string, kit.max_pattern = MAX_STRING, MAX_PATTERN
kit.find_c = find_c
local CHEAP = 20000 -- steps that C's matcher may take in the worst case

-- Gives the worst number of steps that C's matcher takes, counting what repeats as if it were in each other.
local exponents, factors = {}, {} -- of patterns
local function worst(s, p)
    local exponent = exponents[p]
    if not exponent then
        local factor = len(p) + 1
        exponent = 1
        if find_c(p, '[*+%-?]') or find_c(p, '%[bf1-9]') then
            local _, many = gsub_c(p, '[*+-]', '')
            local _, maybe = gsub_c(p, '?', '')
            local _, special = gsub_c(p, '%%[b1-9]', '')
            local unanchored = sub(p, 1, 1) ~= '^' and 1 or 0
            exponent, factor = min(many + special + unanchored, 20), factor * 2 ^ min(maybe, 40)
        end
        exponents[p], factors[p] = exponent, factor
    end
    return factors[p] * (len(s) + 1) ^ exponent
end

local function checked(value, name, number)
    local kind = type(value)
    if kind == 'number' then
        return tostring(value)
    elseif kind ~= 'string' then
        error("bad argument #" .. number .. " to '" .. name .. "' (string expected, got " .. (value == nil and 'nil' or kind) .. ')', 4)
    end
    return value
end

-- Makes find, match, gmatch and gsub: of bytes, or of code points.
local function make(is_unicode)
    local programs = {}
    local function checked_pair(s, p, name)
        s, p = checked(s, name, 1), checked(p, name, 2)
        if is_unicode and len(s) > MAX_STRING then
            error(("bad argument #1 to '%s' (string is longer than %d bytes)"):format(name, MAX_STRING), 3)
        elseif is_unicode and len(p) > MAX_PATTERN then
            error(("bad argument #2 to '%s' (pattern is longer than %d bytes)"):format(name, MAX_PATTERN), 3)
        end
        return s, p
    end
    local function program_of(p, anchors)
        local key = (anchors and '^' or ' ') .. p
        local program = programs[key]
        if not program then
            program = is_unicode and kit.compile(kit.points_of(p), kit.classes_of_points, anchors)
                or kit.compile(kit.codes_of(p), kit.classes_of_bytes, anchors)
            programs[key] = program
        end
        return program
    end
    local function is_fast(s, p)
        if is_unicode and (find_c(s, '[\128-\255]') or find_c(p, '[\128-\255]') or find_c(p, '%p', 1, true) or find_c(p, '%P', 1, true)
            or find_c(p, '-%', 1, true)) then -- of code points, no range ends with an escaped character
            return false
        end
        local steps = worst(s, p)
        if steps > CHEAP then
            return false
        end
        charge(floor(steps / 50))
        return true
    end
    local function subject(s, name)
        charge(floor(len(s) / 8))
        if is_unicode then
            return kit.points_of(s, name)
        end
        return kit.codes_of(s)
    end
    local function piece(s, places, from, to)
        if places then
            return sub(s, places[from], places[to] - 1)
        end
        return sub(s, from, to - 1)
    end
    local function captures(program, s, places, from, to, starts, ends)
        if program.captures == 0 then
            return piece(s, places, from, to)
        end
        local out = {}
        for k = 1, program.captures do
            out[k] = ends[k] and piece(s, places, starts[k], ends[k]) or starts[k]
        end
        return unpack(out, 1, program.captures)
    end
    local function start_of(init, n)
        init = floor(tonumber(init) or 1)
        if init < 0 then
            init = init + n + 1
        end
        return init < 1 and 1 or init > n and n + 1 or init
    end
    local function search(program, a, n, init, starts, ends)
        local run = kit.run
        for i = init, program.anchored and init or n + 1 do
            local finish = run(program, a, n, i, 1, starts, ends)
            if finish then
                return i, finish
            end
        end
    end

    local functions = {}
    function functions.find(s, p, init, plain)
        s, p = checked_pair(s, p, 'find')
        if plain or not find_c(p, '[%^%$%*%+%?%.%(%)%[%%%-]') then
            if len(s) * len(p) > CHEAP then
                charge(floor(len(s) * len(p) / 50))
            end
            if not is_unicode or not find_c(s, '[\128-\255]') then
                return find_c(s, p, init, true)
            end
            local _, n, places = subject(s, 'find')
            local from, to = find_c(s, p, places[start_of(init, n)], true)
            if not from then
                return nil
            end
            local before = select(2, kit.points_of(sub(s, 1, from - 1)))
            return before + 1, before + select(2, kit.points_of(p))
        end
        if is_fast(s, p) then
            return find_c(s, p, init)
        end
        local program = program_of(p, true)
        local a, n, places = subject(s, 'find')
        local starts, ends = {}, {}
        local from, finish = search(program, a, n, start_of(init, n), starts, ends)
        if not from then
            return nil
        elseif program.captures == 0 then
            return from, finish - 1
        end
        return from, finish - 1, captures(program, s, places, from, finish, starts, ends)
    end
    function functions.match(s, p, init)
        s, p = checked_pair(s, p, 'match')
        if is_fast(s, p) then
            return match_c(s, p, init)
        end
        local program = program_of(p, true)
        local a, n, places = subject(s, 'match')
        local starts, ends = {}, {}
        local from, finish = search(program, a, n, start_of(init, n), starts, ends)
        if from then
            return captures(program, s, places, from, finish, starts, ends)
        end
        return nil
    end
    function functions.gmatch(s, p)
        s, p = checked_pair(s, p, 'gmatch')
        if is_fast(s, p) then
            return gmatch_c(s, p)
        end
        local program = program_of(p, false)
        local a, n, places = subject(s, 'gmatch')
        local i = 1
        return function()
            local starts, ends = {}, {}
            local from, finish = search(program, a, n, i, starts, ends)
            if not from then
                i = n + 2
                return nil
            end
            i = finish == from and finish + 1 or finish
            return captures(program, s, places, from, finish, starts, ends)
        end
    end
    local function replacement(repl, kind, whole, ...)
        local first_capture = ...
        if select('#', ...) == 0 then
            first_capture = whole
        end
        local value
        if kind == 'string' then
            local given = { ... }
            local count = select('#', ...)
            local out = gsub_c(repl, '%%(.?)', function(c)
                if c == '0' then
                    return whole
                elseif find_c(c, '^%d') then
                    local k = tonumber(c)
                    if count == 0 and k == 1 then
                        return whole
                    elseif k > count then
                        error(is_unicode and 'invalid capture index %' .. c .. ' in replacement string' or 'invalid capture index', 0)
                    end
                    return tostring(given[k])
                end
                return c
            end)
            return out
        elseif kind == 'table' then
            value = repl[first_capture]
        elseif select('#', ...) == 0 then
            value = repl(whole)
        else
            value = repl(...)
        end
        if value == nil or value == false then
            return whole
        elseif type(value) ~= 'string' and type(value) ~= 'number' then
            error('invalid replacement value (a ' .. type(value) .. ')', 0)
        end
        return tostring(value)
    end
    function functions.gsub(s, p, repl, limit)
        s, p = checked_pair(s, p, 'gsub')
        local kind = type(repl)
        if kind == 'number' then
            repl, kind = tostring(repl), 'string'
        end
        if kind ~= 'string' and kind ~= 'table' and kind ~= 'function' then
            error("bad argument #3 to 'gsub' (string/function/table expected, got " .. kind .. ')', 2)
        end
        if is_unicode and kind == 'string' and find_c(repl, '%', 1, true) then -- before what is no number it is itself
            repl = gsub_c(gsub_c(repl, '%%([^%d])', function(c)
                return c == '%' and '%%' or '%%' .. c
            end), '([^%%])%%$', '%1%%%%')
        end
        if is_fast(s, p) then
            return gsub_c(s, p, repl, limit)
        end
        limit = tonumber(limit) or huge
        local program = program_of(p, true)
        local a, n, places = subject(s, 'gsub')
        local starts, ends = {}, {}
        local out, i, count = {}, 1, 0
        while count < limit do
            local finish = kit.run(program, a, n, i, 1, starts, ends)
            if finish then
                count = count + 1
                local whole = piece(s, places, i, finish)
                if program.captures == 0 then
                    out[#out + 1] = replacement(repl, kind, whole)
                else
                    out[#out + 1] = replacement(repl, kind, whole, captures(program, s, places, i, finish, starts, ends))
                end
            end
            if finish and finish > i then
                i = finish
            elseif i <= n then
                out[#out + 1] = piece(s, places, i, i + 1)
                i = i + 1
            else
                break
            end
            if program.anchored then
                break
            end
        end
        out[#out + 1] = i <= n and piece(s, places, i, n + 1) or nil
        return concat(out), count
    end
    return functions
end

-- What the host says row by row, of which nothing is tried twice.
function kit.rows(text, pattern)
    charge(floor(len(text) / 8))
    return gmatch_c(text, pattern)
end
kit.of_bytes, kit.of_points = make(false), make(true)
for name, f in next, kit.of_bytes do
    string[name] = f
end
string.gfind = string.gmatch
