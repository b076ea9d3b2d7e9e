-- Frames, modules and what else stands in mw; runs the function that is invoked.
local kit = ...
local ask, charge, next = kit.ask, kit.charge, kit.next
local select, tostring, concat, getmetatable = select, tostring, table.concat, getmetatable

-- Parts of the library are loaded when they are first asked for: most modules need few.
local home = { points_of = 'matcher', codes_of = 'matcher', compile = 'matcher', run = 'matcher', classes_of_bytes = 'matcher',
    classes_of_points = 'matcher', util = 'util', ustring = 'ustring', text = 'text', uri = 'uri', html = 'html', title = 'pages', site = 'pages',
    wikibase = 'pages', language = 'language', message = 'language', encode_json = 'json', decode_json = 'json', load_data = 'data', load_json = 'data',
    bit32 = 'bits', bit = 'bits', hash = 'bits', svg = 'svg' }
local open = { ustring = true, text = true, uri = true, html = true, title = true, site = true, wikibase = true, language = true, message = true,
    hash = true, svg = true }
local load, setfenv, rawget, rawset = kit.load, kit.setfenv, rawget, rawset
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
local untouched = {} -- the globals as they are before a module can change them
for name, value in next, _G do
    untouched[name] = copy_of(value)
end
setmetatable(kit, {
    __index = function(_, name)
        if home[name] then
            kit.part(home[name], untouched)(kit)
            return rawget(kit, name)
        end
    end,
})

-- Methods of strings, those of ustring among them; what a module does to "string" does not change them.
local unicode_methods = { isutf8 = 'isutf8', byteoffset = 'byteoffset', codepoint = 'codepoint', gcodepoint = 'gcodepoint', toNFC = 'toNFC',
    toNFD = 'toNFD', uchar = 'char', ulen = 'len', usub = 'sub', uupper = 'upper', ulower = 'lower', ufind = 'find', umatch = 'match',
    ugmatch = 'gmatch', ugsub = 'gsub' }
local function of_ustring(_, name)
    return unicode_methods[name] and kit.ustring[unicode_methods[name]]
end
kit.strings.__index = setmetatable(untouched.string, { __index = of_ustring })
setmetatable(string, { __index = of_ustring })

local lazily = {
    __index = function(t, name)
        if open[name] then
            rawset(t, name, kit[name])
            return rawget(t, name)
        end
    end,
}
mw = setmetatable({ ext = {} }, lazily)
function mw.getContentLanguage() return kit.language.getContentLanguage() end
function mw.getLanguage(code) return kit.language.new(code) end

local function nothing() end
mw.log, mw.logObject = nothing, nothing
function mw.incrementExpensiveFunctionCount()
    if not ask('expensive') then
        error('too many expensive function calls', 0)
    end
end
function mw.addWarning(text)
    if type(text) ~= 'string' then
        error("bad argument #1 to 'addWarning' (string expected)", 0)
    end
end
function mw.dumpObject(value) return tostring(value) end
function mw.isSubsting() return false end
function mw.allToString(...)
    local out = {}
    for i = 1, select('#', ...) do
        out[i] = tostring((select(i, ...)))
    end
    return concat(out, '\t')
end
local function clone(value, known)
    if type(value) ~= 'table' then
        return value
    elseif not known[value] then
        local copy = {}
        known[value] = copy
        for key, inside in pairs(value) do
            copy[clone(key, known)] = clone(inside, known)
        end
        local meta = getmetatable(value)
        setmetatable(copy, meta and not meta.mw_loadData and clone(meta, known) or nil) -- a copy of data can be changed
    end
    return known[value]
end
function mw.clone(value) return clone(value, {}) end

-- Arguments as a module sees them, read when first asked for: numbered ones first, then in the order written.
local find_c, sub = kit.find_c, string.sub
local function arguments_of(id)
    local values, order
    local function read()
        if not values then
            values, order = {}, {}
            local packed = ask('arguments', id) -- each as its length, a colon and the text
            local place = 1
            local function take()
                local colon = find_c(packed, ':', place, true)
                local from = place
                place = colon + 1 + tonumber(sub(packed, from, colon - 1))
                return sub(packed, colon + 1, place - 1)
            end
            while place <= #packed do
                local key = take()
                if #key < 15 and find_c(key, '^[1-9]%d*$') then
                    key = tonumber(key)
                end
                values[key] = take()
                order[#order + 1] = key
            end
        end
        return values
    end
    return setmetatable({}, {
        __index = function(_, key)
            if type(key) == 'string' and find_c(key, '^[1-9]%d*$') then
                key = tonumber(key)
            end
            return read()[key]
        end,
        __pairs = function(t)
            read()
            local i = 0
            return function()
                i = i + 1
                local key = order[i]
                if key ~= nil then
                    return key, t[key]
                end
            end
        end,
    })
end

-- Arguments that a module gives, as key and value in turn.
local function flattened(name, arguments)
    local out = {}
    for key, value in pairs(arguments or {}) do
        local kind, of_value = type(key), type(value)
        if kind ~= 'string' and kind ~= 'number' then
            error(name .. ': arg keys must be strings or numbers, ' .. kind .. ' given', 3)
        elseif of_value == 'boolean' then
            value = value and '1' or ''
        elseif of_value ~= 'string' and of_value ~= 'number' then
            error(name .. ': invalid type ' .. of_value .. " for arg '" .. key .. "'", 3)
        end
        out[#out + 1], out[#out + 2] = tostring(key), tostring(value)
    end
    return unpack(out)
end

local frame_methods = {}
local frame_meta = { __index = frame_methods }
local frames = {}
local function frame_of(id)
    if not frames[id] then
        frames[id] = setmetatable({ args = arguments_of(id) }, frame_meta)
        rawset(frames[id], 'id', id)
    end
    return frames[id]
end
local current = frame_of(0)
function mw.getCurrentFrame() return current end
function frame_methods:getParent() return self.parent or self.id == 0 and ask('has_parent') and frame_of(1) or nil end
function frame_methods:getTitle() return ask('frame_title', self.id) end
function frame_methods:preprocess(given)
    local wikitext = type(given) == 'table' and given.text or given
    return ask('preprocess', self.id, tostring(wikitext))
end
function frame_methods:expandTemplate(given)
    return ask('expand', self.id, tostring(given.title), flattened('frame:expandTemplate', given.args))
end
local function text_or_number(value, message)
    if type(value) ~= 'string' and type(value) ~= 'number' then
        error(message, 3)
    end
    return tostring(value)
end
function frame_methods:callParserFunction(name, arguments, ...)
    if type(name) == 'table' then
        name, arguments = name.name, name.args
    elseif type(arguments) ~= 'table' then
        arguments = { arguments, ... }
    end
    if type(arguments) ~= 'table' then
        arguments = { arguments }
    end
    if name == nil then
        error('frame:callParserFunction: a function name is required', 2)
    end
    name = text_or_number(name, 'frame:callParserFunction: function name must be a string or number')
    local given, first = name:match('^([^:]*):(.*)$')
    if given then
        name = given
        local moved = { first:match('^%s*(.-)%s*$') }
        for key, value in pairs(arguments) do
            moved[type(key) == 'number' and key + 1 or key] = value
        end
        arguments = moved
    end
    if arguments[1] == nil then
        error('callParserFunction: At least one unnamed parameter (the parameter that comes after the colon in wikitext) must be provided', 0)
    end
    return ask('expand', self.id, name .. ':', flattened('frame:callParserFunction', arguments))
end
function frame_methods:extensionTag(name, content, attributes)
    if type(name) == 'table' then
        name, content, attributes = name.name, name.content, name.args
    end
    if name == nil then
        error('frame:extensionTag: a function name is required', 2)
    end
    name = text_or_number(name, 'frame:extensionTag: tag name must be a string or number')
    local values = { name, text_or_number(content == nil and '' or content, 'frame:extensionTag: content must be a string or number') }
    if attributes ~= nil and type(attributes) ~= 'table' then
        attributes = { text_or_number(attributes, 'frame:extensionTag: args must be a string, number, or table') }
    end
    for key, value in pairs(attributes or {}) do
        values[type(key) == 'number' and key + 2 or key] = value
    end
    return ask('expand', self.id, '#tag:', flattened('frame:extensionTag', values))
end
function frame_methods:argument(key)
    local value = self.args[type(key) == 'table' and key.name or key]
    return { expand = function() return value end }
end
function frame_methods:getArgument(key) return self:argument(key) end
function frame_methods:argumentPairs() return pairs(self.args) end
function frame_methods:newParserValue(given)
    local wikitext = type(given) == 'table' and given.text or given
    return { expand = function() return self:preprocess(wikitext) end }
end
function frame_methods:newTemplateParserValue(given)
    return { expand = function() return self:expandTemplate(given) end }
end
function frame_methods:newChild(given)
    kit.util.checkType('frame:newChild', 1, given, 'table')
    local child = frame_of(ask('child', self.id, tostring(given.title or ''), flattened('frame:newChild', given.args)))
    rawset(child, 'parent', self)
    return child
end
mw.ext.ParserFunctions = {
    expr = function(expression)
        return current:callParserFunction('#expr', expression)
    end,
}
mw.ext.data = { get = function() return false end } -- no dump of a Wikipedia holds pages of data
mw.ext.FlaggedRevs, mw.ext.TitleBlacklist = { getStabilitySettings = nothing }, { test = nothing }

-- Modules.
local libraries = {}
local function chunk_of(name, globals)
    local compiled, problem = ask('module', name)
    if not compiled then
        error(problem or "module '" .. tostring(name) .. "' not found", 3)
    end
    charge(100)
    return setfenv(load(compiled), globals)
end
-- From then on a global that was not set is an error, and so is setting one.
function libraries.strict(globals)
    local meta = getmetatable(globals) or {}
    function meta.__index(_, name)
        if name ~= 'arg' then
            error("variable '" .. tostring(name) .. "' is not declared", 2)
        end
    end
    function meta.__newindex(t, name, value)
        if name ~= 'arg' then
            error("assign to undeclared variable '" .. tostring(name) .. "'", 2)
        end
        rawset(t, name, value)
    end
    setmetatable(globals, meta)
    return true
end
function libraries.libraryUtil() return kit.util end
function libraries.bit() return kit.bit end
function libraries.bit32() return kit.bit32 end
function libraries.ustring() return kit.ustring end
for name in next, open do
    libraries['mw.' .. name] = function(globals) return globals.mw[name] end
end
-- Gives globals their own "package" and "require". Source: package.lua of Scribunto.
local standard = { 'coroutine', 'math', 'mw', 'os', 'string', 'table' }
local function add_packages(globals)
    local loaded, preload = { _G = globals }, {}
    globals.package = { loaded = loaded, preload = preload }
    loaded.package = globals.package
    for i = 1, #standard do
        loaded[standard[i]] = globals[standard[i]]
    end
    function globals.package.seeall(module)
        local meta = getmetatable(module) or {}
        meta.__index = globals
        setmetatable(module, meta)
    end
    local function loading() end
    function globals.require(name)
        if type(name) ~= 'string' then
            error("bad argument #1 to 'require' (string expected, got " .. type(name) .. ')', 2)
        elseif loaded[name] == loading then
            error("loop or previous error loading module '" .. name .. "'", 2)
        elseif loaded[name] == nil then
            loaded[name] = loading
            local value
            if type(preload[name]) == 'function' then
                value = preload[name](name)
            elseif libraries[name] then
                value = libraries[name](globals)
            else
                value = chunk_of(name, globals)(name)
            end
            if value ~= nil then
                loaded[name] = value
            elseif loaded[name] == loading then
                loaded[name] = true
            end
        end
        return loaded[name]
    end
end
add_packages(_G)

-- Modules of data have globals of their own and see no frame.
local library
function kit.data_of(name)
    local globals = {}
    for key, value in next, untouched do
        globals[key] = copy_of(value)
    end
    setmetatable(globals.string, { __index = of_ustring })
    globals._G, globals.mw = globals, setmetatable(copy_of(library), lazily)
    add_packages(globals)
    function globals.mw.getCurrentFrame() return frame_of(ask('empty_frame')) end
    return chunk_of(name, globals)(name)
end
function mw.loadData(name) return kit.load_data(name) end
function mw.loadJsonData(name) return kit.load_json(name) end
library = copy_of(mw)

-- What a function returns is what stands before its first nil. Source: mw.executeFunction of Scribunto.
local function finished(...)
    local out = {}
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        if value == nil then
            break
        end
        out[i] = tostring(value)
    end
    out = concat(out)
    kit.flush()
    return out
end
return function(module, name)
    kit.begin()
    local value = chunk_of(module, _G)(module)
    if type(value) ~= 'table' then
        error('module returns no table', 0)
    end
    local f = value[name]
    if type(f) ~= 'function' and not (type(f) == 'table' and getmetatable(f) and getmetatable(f).__call) then
        error('module has no such function', 0)
    end
    return finished(f(current))
end
