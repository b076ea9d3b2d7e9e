-- The libraries "bit32" and "bit", and mw.hash.
--
-- Source: §6.7 of the reference manual of Lua 5.2; LuaBit 0.4, which Scribunto has for "bit".
local kit = ...
local ask = kit.ask
local floor = math.floor
local WORD = 4294967296

local function number(value, name, place)
    local n = tonumber(value)
    if not n then
        error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got " .. type(value) .. ')', 3)
    end
    return floor(n)
end

-- Combines two words, four bits at a time; what a pair of such bits gives is worked out once.
local function combining(rule)
    local known = {}
    return function(a, b)
        local out, unit = 0, 1
        for _ = 1, 8 do
            local x, y = a % 16, b % 16
            local pair = x * 16 + y
            local bits = known[pair]
            if not bits then
                bits = 0
                for place = 0, 3 do
                    local power = 2 ^ place
                    bits = bits + power * rule(floor(x / power) % 2, floor(y / power) % 2)
                end
                known[pair] = bits
            end
            out, unit = out + bits * unit, unit * 16
            a, b = (a - x) / 16, (b - y) / 16
        end
        return out
    end
end
local both = combining(function(x, y) return x * y end)
local either = combining(function(x, y) return x + y - x * y end)
local one_of = combining(function(x, y) return (x + y) % 2 end)

local bit32 = {}
local function folding(name, combine, first)
    return function(...)
        local out = first
        for i = 1, select('#', ...) do
            out = combine(out, number((select(i, ...)), name, i) % WORD)
        end
        return out
    end
end
bit32.band, bit32.bor, bit32.bxor = folding('band', both, WORD - 1), folding('bor', either, 0), folding('bxor', one_of, 0)
function bit32.btest(...) return bit32.band(...) ~= 0 end
function bit32.bnot(x) return WORD - 1 - number(x, 'bnot', 1) % WORD end
local function shifted(x, by) -- to the left; to the right where negative
    if by >= 32 or by <= -32 then
        return 0
    end
    return floor(x * 2 ^ by) % WORD
end
function bit32.lshift(x, by) return shifted(number(x, 'lshift', 1) % WORD, number(by, 'lshift', 2)) end
function bit32.rshift(x, by) return shifted(number(x, 'rshift', 1) % WORD, -number(by, 'rshift', 2)) end
function bit32.arshift(x, by)
    x, by = number(x, 'arshift', 1) % WORD, number(by, 'arshift', 2)
    if by <= 0 or x < WORD / 2 then
        return shifted(x, -by)
    end
    return by >= 32 and WORD - 1 or shifted(x, -by) + WORD - 2 ^ (32 - by)
end
function bit32.lrotate(x, by)
    x, by = number(x, 'lrotate', 1) % WORD, number(by, 'lrotate', 2) % 32
    return shifted(x, by) + floor(x / 2 ^ (32 - by))
end
function bit32.rrotate(x, by) return bit32.lrotate(x, -number(by, 'rrotate', 2)) end
local function field(name, from, width)
    from, width = number(from, name, 2), number(width or 1, name, 3)
    if from < 0 or width < 1 or from + width > 32 then
        error('trying to access non-existent bits', 3)
    end
    return 2 ^ from, 2 ^ width
end
function bit32.extract(x, from, width)
    local unit, size = field('extract', from, width)
    return floor(number(x, 'extract', 1) % WORD / unit) % size
end
function bit32.replace(x, value, from, width)
    local unit, size = field('replace', from, width)
    x = number(x, 'replace', 1) % WORD
    return x + (number(value, 'replace', 2) % size - floor(x / unit) % size) * unit
end

local bit = { bnot = bit32.bnot, blshift = bit32.lshift, blogic_rshift = bit32.rshift }
function bit.brshift(n, by) return (n < 0 and bit32.arshift or bit32.rshift)(n, by) end
function bit.band(a, b) return bit32.band(a, b) end
function bit.bor(a, b) return bit32.bor(a, b) end
function bit.bxor(a, b) return bit32.bxor(a, b) end
-- The bits of a number, the lowest first, and back.
function bit.tobits(n)
    n = number(n, 'tobits', 1)
    local out, rest = {}, n < 0 and n % WORD or n
    while rest > 0 do
        out[#out + 1] = rest % 2
        rest = floor(rest / 2)
    end
    return out
end
function bit.tonumb(bits)
    local out = 0
    for i = 1, #bits do
        out = out + bits[i] * 2 ^ (i - 1)
    end
    return out
end

local hash = {}
function hash.listAlgorithms()
    local out = {}
    for name in ask('hash_names'):gmatch('%S+') do
        out[#out + 1] = name
    end
    return out
end
function hash.hashValue(algorithm, value)
    local place = type(algorithm) ~= 'string' and 1 or type(value) ~= 'string' and 2
    if place then
        local wrong = ({ algorithm, value })[place]
        error("bad argument #" .. place .. " to 'hashValue' (string expected, got " .. type(wrong) .. ')', 2)
    end
    return ask('hash', algorithm, value) or error('Unknown hashing algorithm: ' .. algorithm, 2)
end

kit.bit32, kit.bit, kit.hash = bit32, bit, hash
