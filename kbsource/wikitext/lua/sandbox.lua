-- What a module may use of Lua itself, and what all of it costs. Called with what the others share, and the host.
--
-- Costs are counted in instructions. A hook counts what runs; what C functions do is charged before they do it, or by
-- what they made; what is allocated is charged as it grows, which is exact because nothing is collected unseen. The host
-- charges for what it is asked.
local kit, host = ...
local rawnext, rawpcall, rawset, rawget, type, error = next, pcall, rawset, rawget, type, error
local select, old_unpack, tonumber, getmetatable, setmetatable = select, unpack, tonumber, getmetatable, setmetatable
local collect, sethook, getlocal, floor, abs, max, min = collectgarbage, debug.sethook, debug.getlocal, math.floor, math.abs, math.max, math.min
local string_rep, string_find, string_len, string_sub, string_lower = string.rep, string.find, string.len, string.sub, string.lower

local PERIOD = 1000 -- instructions between two looks at what was spent, on the average
local SHORT_PERIOD = 100 -- the same where there may be strings so long that one instruction on them is much work
local INSTRUCTIONS_A_KILOBYTE = 25 -- what an allocated kilobyte is charged
local LARGE = 8192 -- kilobytes from which every period costs more, as instructions on long strings do
local collect_at = 4096 -- kilobytes
local ROOM_FROM = 24 * 1024 -- kilobytes that may be taken when the host is asked, so that its answer has room
local stopped = false
local pending = 0
local base, live = 0, 0 -- kilobytes that the library takes, and those of the run after the last look

local function stop()
    stopped = true
    error('stopped', 0)
end

-- Charges what was allocated since the last time; gives the kilobytes.
local function weigh_growth()
    local now = collect('count') - base
    local grown = max(now - live, 0)
    pending = pending + floor(grown * INSTRUCTIONS_A_KILOBYTE)
    live = now
    return grown
end

local function tidy()
    weigh_growth()
    collect('collect')
    collect('stop') -- a full collection starts the automatic one again
    live = collect('count') - base
    collect_at = live * 2 + 4096
end

-- Asks the host; it gives texts that no module can make where the page has nothing left, or it takes no such values.
local STOP, FAULT = '\0stop\0', '\0fault\0'
local function answer(first, ...)
    if first == STOP then
        stop()
    elseif first == FAULT then
        error((...), 0)
    end
    return first, ...
end
-- Nothing may fail for want of memory while the host is at work, and no table or function leaves this state.
local passes = { string = true, number = true, boolean = true, ['nil'] = true }
local function ask(name, ...)
    local given = { ... }
    for i = 1, select('#', ...) do
        if not passes[type(given[i])] then
            error("bad argument to '" .. name .. "' (string or number expected, got " .. type(given[i]) .. ')', 0)
        end
    end
    if collect('count') > ROOM_FROM then
        tidy()
        if collect('count') > ROOM_FROM then
            stop()
        end
    end
    return answer(host(name, ...))
end

local function flush()
    local n = pending
    pending = 0
    ask('spend', n)
end

local function charge(n)
    pending = pending + (n < 1e15 and n or 1e15) -- which is for what is no number as well
    if pending > 10000 then
        flush()
    end
end

-- Instructions on long strings are much work that takes no memory: sums of digits, comparisons, joining again what is
-- there. They cannot be counted; what the function that runs has at hand tells of them, looked at often enough.
local SHORT = 16384 -- bytes; an instruction on a shorter string is not much work, unless it is read as a number
local EXPOSURE = 2 ^ 30 -- instructions times bytes of the longest string there may be, after which it is time to look
local period, longest, unseen = PERIOD, 0, 0
local n_next = PERIOD -- instructions until the next look
local step = 1
local function is_number(s)
    local head = string_lower(string_sub(s, 1, 64))
    return string_find(head, '^[%s%d.+-]*$') or string_find(head, '^%s*[+-]?0x') or string_find(head, '^%s*[+-]?nan%(')
end
local function weigh_strings(n)
    local cost, other = 0, nil
    for i = 1, 250 do
        local name, value = getlocal(3, i)
        if not name then
            break
        elseif type(value) == 'string' and string_len(value) > 256 then
            local size = string_len(value)
            if is_number(value) then
                cost = max(cost, size / 16)
            elseif size > SHORT then
                if other and other ~= value
                    and (string_sub(other, 1, 64) == string_sub(value, 1, 64) or string_sub(other, -64) == string_sub(value, -64)) then
                    cost = max(cost, min(size, string_len(other)) / 256)
                end
                other = value
            end
        end
    end
    pending = pending + floor(n * cost)
end

local function look()
    if stopped then
        error('stopped', 0)
    end
    local n = n_next
    unseen = unseen + n
    longest = max(longest, weigh_growth() * 1024) -- none is longer than what was allocated at once
    if unseen * longest > EXPOSURE then
        weigh_strings(unseen)
        unseen = 0
        period = longest > 2 ^ 19 and SHORT_PERIOD or PERIOD
    end
    if live > collect_at then
        tidy()
    end
    charge(n + (live > LARGE and floor((live - LARGE) / 4 * n / PERIOD) or 0))
    step = step * 16807 % 2147483647 -- so that no loop is in step with the looks
    n_next = period / 2 + step % period
    sethook(look, '', n_next)
end

local function begin()
    collect('stop')
    base, live = collect('count'), 0
    sethook(look, '', PERIOD)
end

-- Errors that a module may catch, and those that it may not.
local function caught(ok, ...)
    if not ok then
        local problem = ...
        if stopped or type(problem) == 'userdata' or (type(problem) == 'string' and string_find(problem, 'not enough memory', 1, true)) then
            stop()
        end
    end
    return ok, ...
end
local function safe_pcall(f, ...)
    return caught(rawpcall(f, ...))
end
function pcall(f, ...)
    return safe_pcall(f, ...)
end
-- The handler runs after the stack is unwound: within it no hook would count.
function xpcall(f, handler)
    local function finish(ok, ...)
        if ok then
            return ok, ...
        end
        return false, handler((...))
    end
    return finish(safe_pcall(f))
end

local create, resume, status, running, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.running, coroutine.yield
local function safe_create(f)
    local made = create(f)
    sethook(made, look, '', PERIOD)
    return made
end
local function safe_resume(made, ...)
    return caught(resume(made, ...))
end
local function wrapped(ok, ...)
    if not ok then
        error((...), 0)
    end
    return ...
end
for name in pairs(coroutine) do
    coroutine[name] = nil
end
coroutine.create, coroutine.resume, coroutine.status, coroutine.running, coroutine.yield = safe_create, safe_resume, status, running, yield
function coroutine.wrap(f)
    local made = safe_create(f)
    return function(...)
        return wrapped(safe_resume(made, ...))
    end
end

-- Keys that are tables or functions stand in an order of addresses. Other keys stand in Lua's own order, which is the
-- same everywhere and what modules were written with; among addresses no order can be told, so it is refused.
local unordered = { table = true, ['function'] = true, thread = true, userdata = true }
local function in_order(t)
    charge(floor(live / 4) + (live > 1024 and floor((live - 1024) * 40) or 0)) -- empty places of large tables are passed over
    local objects, n = 0, 0
    for key in rawnext, t do
        n = n + 1
        if unordered[type(key)] then
            objects = objects + 1
        end
    end
    if objects > 0 and n > 1 then
        error('the order of keys that are tables or functions is not known', 3)
    end
end
local looked_at
function next(t, key)
    if type(t) ~= 'table' then
        error("bad argument #1 to 'next' (table expected, got " .. type(t) .. ')', 2)
    end
    if key == nil or not rawequal(t, looked_at) then
        in_order(t)
        looked_at = t
    else
        charge(floor(live / 64))
    end
    return rawnext(t, key)
end
function pairs(t)
    local meta = getmetatable(t)
    if type(meta) == 'table' and meta.__pairs then
        local f, state, first = meta.__pairs(t)
        return f, state, first
    end
    if type(t) ~= 'table' then
        error("bad argument #1 to 'pairs' (table expected, got " .. type(t) .. ')', 2)
    end
    in_order(t)
    return rawnext, t, nil
end
local function next_index(t, i)
    i = i + 1
    local value = t[i]
    if value ~= nil then
        return i, value
    end
end
function ipairs(t)
    if type(t) ~= 'table' then
        error("bad argument #1 to 'ipairs' (table expected, got " .. type(t) .. ')', 2)
    end
    local meta = getmetatable(t)
    if type(meta) == 'table' and meta.__ipairs then
        local f, state, first = meta.__ipairs(t)
        return f, state, first
    end
    return next_index, t, 0
end

local rawtostring = tostring
local function safe_tostring(value)
    local kind = type(value)
    if unordered[kind] then
        local meta = getmetatable(value)
        if type(meta) == 'table' and meta.__tostring then
            return meta.__tostring(value)
        end
        return kind -- never its address
    end
    return rawtostring(value)
end
tostring = safe_tostring

_G.getmetatable = function(t)
    if type(t) == 'table' then
        return getmetatable(t)
    end
    return nil
end

function string.rep(s, n)
    n = floor(tonumber(n) or error("bad argument #2 to 'rep' (number expected)", 2))
    if n > 0 then
        charge(n + floor(n * string_len(s) / 64))
    end
    return string_rep(s, n)
end
local function priced(out)
    charge(floor(string_len(out) / 8))
    return out
end
for i, name in ipairs({ 'upper', 'lower', 'reverse', 'format' }) do
    local f = string[name]
    string[name] = function(...)
        return priced(f(...))
    end
end
string.dump = nil
string.gfind = nil

local insert, remove, sort, concat, maxn = table.insert, table.remove, table.sort, table.concat, table.maxn
function table.insert(t, ...)
    if select('#', ...) > 1 and type(t) == 'table' then
        charge(abs(#t - (tonumber((...)) or 0)))
    end
    return insert(t, ...)
end
function table.remove(t, ...)
    if select('#', ...) > 0 and type(t) == 'table' then
        charge(abs(#t - (tonumber((...)) or 0)))
    end
    return remove(t, ...)
end
-- An order in Lua, so that what C compares is counted.
local function is_less(a, b)
    if type(a) == 'string' and type(b) == 'string' then
        charge(floor(min(string_len(a), string_len(b)) / 64))
    end
    return a < b
end
function table.sort(t, order)
    charge(type(t) == 'table' and #t * 10 or 0)
    return sort(t, order == nil and is_less or order)
end
function table.concat(t, separator, first, last)
    if type(t) == 'table' then
        local n = (tonumber(last) or #t) - (tonumber(first) or 1)
        charge(n > 0 and floor(min(n, #t) * (4 + string_len(tostring(separator or '')) / 64)) or 0)
    end
    return priced(concat(t, separator, first, last))
end
local MAX_VALUES = 8000 -- side by side. Source: LUAI_MAXCSTACK of Lua 5.1
function unpack(t, first, last)
    local n = (tonumber(last) or type(t) == 'table' and #t or 0) - (tonumber(first) or 1)
    if not (n < MAX_VALUES) then -- C counts them in too small a number
        error('too many results to unpack', 2)
    end
    charge(max(n, 0))
    return old_unpack(t, first, last)
end
function table.maxn(t)
    charge(floor(live))
    return maxn(t)
end
table.foreach, table.foreachi, table.setn = nil, nil, nil

-- Random numbers are the same in every run: Park and Miller's generator, Communications of the ACM 31 (1988).
local seed = 1
function math.randomseed(n)
    seed = floor(abs(tonumber(n) or 0)) % 2147483646 + 1
end
function math.random(low, high)
    seed = seed * 16807 % 2147483647
    local r = (seed - 1) / 2147483646
    if not low then
        return r
    end
    if not high then
        low, high = 1, low
    end
    if low > high then
        error("bad argument to 'random' (interval is empty)", 2)
    end
    return floor(low) + floor(r * (floor(high) - floor(low) + 1))
end

-- Time is that of the page's revision.
local days = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 }
local function seconds(t)
    local month = (t.month or 1) - 1
    local year = (t.year or 1970) + floor(month / 12)
    month = month % 12 + 1
    local before = year - 1
    local n = before * 365 + floor(before / 4) - floor(before / 100) + floor(before / 400) - 719162 + days[month] + (t.day or 1) - 1
    if month > 2 and (year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)) then
        n = n + 1
    end
    return n * 86400 + (t.hour or 12) * 3600 + (t.min or 0) * 60 + (t.sec or 0)
end
local function now()
    return ask('now') or error('the time of the page is not known', 0)
end
os = {
    clock = function() return 0 end,
    difftime = function(a, b) return a - (b or 0) end,
    time = function(t) return t and seconds(t) or now() end,
    date = function(form, moment)
        form = form or '%c'
        if form:sub(1, 1) == '!' then
            form = form:sub(2)
        end
        local out = ask('date', form, moment or now())
        if form ~= '*t' then
            return out
        end
        local t = { isdst = false }
        for name, value in out:gmatch('(%a+)=(%d+)') do
            t[name] = tonumber(value)
        end
        return t
    end,
}

kit.ask, kit.charge, kit.flush, kit.begin, kit.pcall = ask, charge, flush, begin, safe_pcall
kit.load, kit.setfenv, kit.next, kit.getmetatable = loadstring, setfenv, rawnext, getmetatable
local absent = { 'io', 'debug', 'package', 'module', 'require', 'load', 'loadstring', 'loadfile', 'dofile', 'collectgarbage', 'gcinfo',
    'newproxy', 'getfenv', 'setfenv', 'print', 'python' }
for i = 1, #absent do
    _G[absent[i]] = nil
end
