-- A Lua state that runs one module after another. It keeps only what no module can reach or change: Lua's own functions and the
-- compiled library. The tables and closures of the library are made anew for each run, with globals of their own.
--
-- A run must find nothing of an earlier one, and must cost the same in every state. So after each run everything it made is
-- collected, and the state is used again only if it is then exactly as large as before its first run. No part of it can be
-- smaller than it was then, so equal sizes mean that every part is equal.
local host = ...
local load, setfenv, next, pcall, type, unpack = loadstring, setfenv, next, pcall, type, unpack
local collect, sethook = collectgarbage, debug.sethook
local strings = getmetatable('') -- no module can get at it
local methods = strings.__index

local function copy_of(value)
    if type(value) ~= 'table' then
        return value
    end
    local out = {}
    for key, inside in next, value do
        out[key] = inside
    end
    return out
end
local lua = {}
for name, value in next, _G do
    if value ~= _G and name ~= 'package' then
        lua[name] = copy_of(value)
    end
end
local function new_globals()
    local globals = {}
    for name, value in next, lua do
        globals[name] = copy_of(value)
    end
    globals._G = globals
    return globals
end

local parts = {}
local function add(name, compiled)
    parts[name] = load(compiled)
end
local function run(module, name)
    local globals = new_globals()
    local kit = {
        strings = strings,
        part = function(part_name, environment)
            return setfenv(parts[part_name], environment)
        end,
    }
    setfenv(parts.sandbox, globals)(kit, host)
    setfenv(parts.patterns, globals)(kit)
    return setfenv(parts.frame, globals)(kit)(module, name)
end

-- Lua's buffer for joining strings is as large as the longest result so far, and each collection halves it. The table of all
-- strings and the stacks also grow by need and shrink by half. All of them are grown in advance, so that most runs do not change them.
local JOINED, STRINGS, DEPTH = ('x'):rep(4096), 2500, 100
local function descend(n)
    return n > 0 and descend(n - 1) + 1 or 0
end
local function grow()
    descend(DEPTH)
    local t = {}
    for i = 1, STRINGS do
        t[i] = 'string ' .. i
    end
    pcall(run, '', '') -- fails, as the host answers nothing yet
    collect('collect')
    collect('setstepmul', 0) -- one step is a whole collection, which takes half as long as a full one
end
local MAX_COLLECTIONS = 8
local size
local none, N_NONE = {}, 200 -- values on the stack during a collection, so that it does not become smaller
-- Removes what the last run left. Returns whether the state is as before its first run; the first call prepares it for that.
local function clean()
    if not size then
        grow()
    end
    sethook()
    strings.__index = methods
    for _, part in next, parts do
        setfenv(part, lua)
    end
    local now, last
    for _ = 1, MAX_COLLECTIONS do
        collect('step', 0, unpack(none, 1, N_NONE))
        collect('stop')
        local joined = JOINED .. JOINED
        now = collect('count')
        if now == size or now == last then
            break
        end
        last = now
    end
    size = size or now
    return now == size
end
return add, run, clean
