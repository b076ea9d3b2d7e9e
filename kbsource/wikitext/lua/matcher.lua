-- Matches Lua patterns on arrays of code points or bytes; written in Lua, so that the limits hold while it runs.
--
-- Source: lstrlib.c of Lua 5.1; https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#Ustring_patterns
local kit = ...
local ask = kit.ask
local byte, sub, len, find_c, gmatch_c = string.byte, string.sub, string.len, string.find, string.gmatch
local error, setmetatable = error, setmetatable

local SINGLE, OPEN, CLOSE, PLACE, BALANCE, FRONTIER, BACK, FINISH = 1, 2, 3, 4, 5, 6, 7, 8

local categories = {}
local function category(c)
    local found = categories[c]
    if not found then
        found = ask('category', c)
        categories[c] = found
    end
    return found
end
kit.category = category

-- What %a and its like mean, of bytes and of code points.
local function byte_class(letter)
    local pattern = '^%' .. letter
    return function(c)
        return c < 256 and find_c(string.char(c), pattern) ~= nil
    end
end
local function first(letters)
    return function(c)
        return letters[sub(category(c), 1, 1)] == true
    end
end
local function exactly(name)
    return function(c)
        return category(c) == name
    end
end
local unicode = {
    a = first({ L = true }),
    c = exactly('Cc'),
    d = exactly('Nd'),
    l = exactly('Ll'),
    p = first({ P = true }),
    s = function(c)
        return (c >= 9 and c <= 13) or sub(category(c), 1, 1) == 'Z'
    end,
    u = exactly('Lu'),
    w = function(c)
        return category(c) == 'Nd' or sub(category(c), 1, 1) == 'L'
    end,
    x = function(c)
        return (c >= 48 and c <= 57) or (c >= 65 and c <= 70) or (c >= 97 and c <= 102)
            or (c >= 0xFF10 and c <= 0xFF19) or (c >= 0xFF21 and c <= 0xFF26) or (c >= 0xFF41 and c <= 0xFF46)
    end,
    z = function(c)
        return c == 0
    end,
}
local bytes = {}
for letter in gmatch_c('acdlpsuwxz', '.') do
    bytes[letter] = byte_class(letter)
end

-- A set remembers what it was asked: set[c].
local function set_of(test, negated)
    return setmetatable({}, {
        __index = function(t, c)
            local is_in = test(c) ~= negated
            t[c] = is_in
            return is_in
        end,
    })
end

local function class(c, classes)
    local letter = c < 128 and string.char(c) or ''
    local test = classes[letter:lower()]
    if test then
        return test, letter:lower() ~= letter
    end
end

-- Reads one set: a class, a character or what stands in brackets, at place i; gives it and the place behind it.
local function read_set(p, i, classes)
    local c, first_place = p[i], i
    local function unclosed()
        error(classes == unicode and 'Missing close-bracket for character set beginning at pattern character ' .. first_place
            or "malformed pattern (missing ']')", 0)
    end
    if c == 37 then -- %
        c = p[i + 1] or error('malformed pattern (ends with \'%\')', 0)
        local test, negated = class(c, classes)
        if test then
            return set_of(test, negated), i + 2
        end
        return { [c] = true }, i + 2
    elseif c == 46 then -- .
        return set_of(function() return true end, false), i + 1
    elseif c ~= 91 then -- [
        return { [c] = true }, i + 1
    end
    i = i + 1
    local negated = p[i] == 94
    if negated then
        i = i + 1
    end
    local singles, ranges, tests = {}, {}, {}
    local is_first = true
    while is_first or p[i] ~= 93 do
        is_first = false
        c = p[i] or unclosed()
        if c == 37 then
            c = p[i + 1] or unclosed()
            local test, is_not = class(c, classes)
            if test then
                tests[#tests + 1] = { test, is_not }
            else
                singles[c] = true
            end
            i = i + 2
        elseif p[i + 1] == 45 and p[i + 2] and p[i + 2] ~= 93 and not (p[i + 2] == 37 and classes == unicode) then
            ranges[#ranges + 1] = { c, p[i + 2] }
            i = i + 3
        else
            singles[c] = true
            i = i + 1
        end
    end
    return set_of(function(code)
        if singles[code] then
            return true
        end
        for k = 1, #ranges do
            if ranges[k][1] <= code and code <= ranges[k][2] then
                return true
            end
        end
        for k = 1, #tests do
            if tests[k][1](code) ~= tests[k][2] then
                return true
            end
        end
        return false
    end, negated), i + 1
end

local quantifiers = { [42] = '*', [43] = '+', [45] = '-', [63] = '?' }

-- Compiles a pattern, an array of codes, to an array of nodes.
local function compile(p, classes, anchors)
    local program = { captures = 0, anchored = anchors and p[1] == 94 }
    local i = program.anchored and 2 or 1
    local open = {}
    local closed = {}
    while p[i] do
        local c = p[i]
        local node
        if c == 40 then
            program.captures = program.captures + 1
            if program.captures > 32 then
                error('too many captures', 0)
            end
            if p[i + 1] == 41 then
                node = { op = PLACE, capture = program.captures }
                closed[program.captures] = true
                i = i + 2
            else
                node = { op = OPEN, capture = program.captures }
                open[#open + 1] = program.captures
                i = i + 1
            end
        elseif c == 41 then
            node = { op = CLOSE, capture = table.remove(open) or error('invalid pattern capture', 0) }
            closed[node.capture] = true
            i = i + 1
        elseif c == 36 and not p[i + 1] then
            node = { op = FINISH }
            i = i + 1
        elseif c == 37 and p[i + 1] == 98 then
            if not p[i + 3] then
                error('unbalanced pattern', 0)
            end
            node = { op = BALANCE, from = p[i + 2], to = p[i + 3] }
            i = i + 4
        elseif c == 37 and p[i + 1] == 102 then
            if p[i + 2] ~= 91 then
                error("missing '[' after '%f' in pattern", 0)
            end
            local set
            set, i = read_set(p, i + 2, classes)
            node = { op = FRONTIER, set = set }
        elseif c == 37 and p[i + 1] and p[i + 1] >= 48 and p[i + 1] <= 57 then
            node = { op = BACK, capture = p[i + 1] - 48 }
            if not closed[node.capture] then
                error('invalid capture index', 0)
            end
            i = i + 2
        else
            local set
            set, i = read_set(p, i, classes)
            node = { op = SINGLE, set = set, quantifier = quantifiers[p[i]] }
            if node.quantifier then
                i = i + 1
            end
        end
        program[#program + 1] = node
    end
    if #open > 0 then
        error('unfinished capture', 0)
    end
    return program
end

-- Matches nodes from k on at place i of the codes; gives the place behind the match, and fills starts and ends.
local function run(program, a, n, i, k, starts, ends)
    while true do
        local node = program[k]
        if not node then
            return i
        end
        local op = node.op
        if op == SINGLE then
            local set, quantifier = node.set, node.quantifier
            if not quantifier then
                if i > n or not set[a[i]] then
                    return nil
                end
                i = i + 1
            elseif quantifier == '?' then
                if i <= n and set[a[i]] then
                    local finish = run(program, a, n, i + 1, k + 1, starts, ends)
                    if finish then
                        return finish
                    end
                end
            elseif quantifier == '-' then
                while true do
                    local finish = run(program, a, n, i, k + 1, starts, ends)
                    if finish then
                        return finish
                    end
                    if i > n or not set[a[i]] then
                        return nil
                    end
                    i = i + 1
                end
            else
                local low = quantifier == '+' and i + 1 or i
                local j = i
                while j <= n and set[a[j]] do
                    j = j + 1
                end
                while j >= low do
                    local finish = run(program, a, n, j, k + 1, starts, ends)
                    if finish then
                        return finish
                    end
                    j = j - 1
                end
                return nil
            end
        elseif op == OPEN then
            starts[node.capture] = i
        elseif op == CLOSE then
            ends[node.capture] = i
        elseif op == PLACE then
            starts[node.capture], ends[node.capture] = i, false
        elseif op == FINISH then
            return i == n + 1 and i or nil
        elseif op == BALANCE then
            if a[i] ~= node.from or i > n then
                return nil
            end
            local depth, j = 1, i + 1
            while j <= n and depth > 0 do
                if a[j] == node.to then
                    depth = depth - 1
                elseif a[j] == node.from then
                    depth = depth + 1
                end
                j = j + 1
            end
            if depth > 0 then
                return nil
            end
            i = j
        elseif op == FRONTIER then
            if node.set[a[i - 1] or 0] or not node.set[a[i] or 0] then
                return nil
            end
        else -- BACK
            local from, to = starts[node.capture], ends[node.capture]
            if not to then
                return nil
            end
            for j = from, to - 1 do
                if a[i] ~= a[j] then
                    return nil
                end
                i = i + 1
            end
        end
        k = k + 1
    end
end

-- Captures are settled after the fact: a node that is passed again on another way overwrites what it wrote, and
-- no alternatives exist, so at the end each holds what the way that matched wrote.

-- Gives an array of the bytes of a text, or of its code points with the place of each.
local function codes_of(s)
    local a = {}
    for i = 1, len(s), 4000 do
        local part = { byte(s, i, i + 3999) }
        for j = 1, #part do
            a[i + j - 1] = part[j]
        end
    end
    return a, #a
end
local lowest = { 0x80, 0x800, 0x10000 } -- code points by the number of bytes that follow the first
local function points_of(s, name, number)
    local function refuse()
        error(("bad argument #%d to '%s' (string is not UTF-8)"):format(number or 1, name or 'ustring'), 0)
    end
    local a, places = {}, {}
    local n, i, size = 0, 1, len(s)
    while i <= size do
        local c = byte(s, i)
        n = n + 1
        places[n] = i
        if c < 0x80 then
            i = i + 1
        else
            local extra = c >= 0xF0 and 3 or c >= 0xE0 and 2 or c >= 0xC0 and 1 or refuse()
            local is_too_large = c >= 0xF8
            c = c % (extra == 3 and 8 or extra == 2 and 16 or 32)
            for j = 1, extra do
                local follower = byte(s, i + j)
                if not follower or follower < 0x80 or follower > 0xBF then
                    refuse()
                end
                c = c * 64 + follower % 64
            end
            if is_too_large or c < lowest[extra] or c > 0x10FFFF or (c >= 0xD800 and c <= 0xDFFF) then
                refuse()
            end
            i = i + extra + 1
        end
        a[n] = c
    end
    places[n + 1] = size + 1
    return a, n, places
end
kit.points_of = points_of
kit.codes_of, kit.compile, kit.run, kit.classes_of_bytes, kit.classes_of_points = codes_of, compile, run, bytes, unicode
