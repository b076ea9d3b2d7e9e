-- mw.uri.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#URI_library
local kit = ...
local ask, check = kit.ask, kit.util.checkType
local concat, find, format, gsub, match, sub = table.concat, string.find, string.format, string.gsub, string.match, string.sub
local type, error, rawget, rawset, tostring = type, error, rawget, rawset, tostring
local uri, methods, meta, computed, set = {}, {}, {}, {}, {}

local function escaped(c)
    return format('%%%02X', c:byte())
end
local function encode(s, blank)
    return (gsub(gsub(s, '[^%w_.~ -]', escaped), ' ', blank))
end
local function decode(s)
    return (gsub(s, '%%(%x%x)', function(code)
        return string.char(tonumber(code, 16))
    end))
end
function uri.encode(s, kind)
    s = type(s) == 'number' and tostring(s) or s
    check('encode', 1, s, 'string')
    kind = (kind or 'QUERY'):upper()
    if kind == 'WIKI' then
        return (gsub(gsub(s, ' ', '_'), '[^%w!$()*,./:;@~_-]', escaped))
    elseif kind == 'PATH' or kind == 'QUERY' then
        return encode(s, kind == 'PATH' and '%%20' or '+')
    end
    error("bad argument #2 to 'encode' (expected QUERY, PATH, or WIKI)", 2)
end
function uri.decode(s, kind)
    check('decode', 1, s, 'string')
    kind = (kind or 'QUERY'):upper()
    if kind == 'WIKI' then
        s = gsub(s, '_', ' ')
    elseif kind == 'QUERY' then
        s = gsub(s, '%+', ' ')
    elseif kind ~= 'PATH' then
        error("bad argument #2 to 'decode' (expected QUERY, PATH, or WIKI)", 2)
    end
    return decode(s)
end
function uri.anchorEncode(s)
    check('anchorEncode', 1, s, 'string')
    return (gsub(match(s, '^[%s_]*(.-)[%s_]*$'), '[%s_]+', '_'))
end

-- A query keeps the order in which its keys were set.
local function new_query()
    local keys, known = {}, {}
    return setmetatable({}, {
        __newindex = function(t, key, value)
            if not known[key] then
                keys[#keys + 1], known[key] = key, true
            end
            rawset(t, key, value)
        end,
        __pairs = function(t)
            local i = 0
            return function()
                repeat
                    i = i + 1
                until keys[i] == nil or rawget(t, keys[i]) ~= nil
                return keys[i], t[keys[i]]
            end
        end,
    })
end
function uri.parseQueryString(s, from, to)
    check('parseQueryString', 1, s, 'string')
    local out = new_query()
    for piece in gsub(gsub(sub(s, from or 1, to or -1), '^%?', ''), '%+', ' '):gmatch('[^&]+') do
        local name, value = match(piece, '^([^=]*)=(.*)$')
        name, value = decode(name or piece), value and decode(value) or false
        local had = out[name]
        if had == nil then
            out[name] = value
        elseif type(had) == 'table' then
            had[#had + 1] = value
        else
            out[name] = { had, value }
        end
    end
    return out
end
function uri.buildQueryString(query)
    check('buildQueryString', 1, query, 'table')
    local out = {}
    for name, values in pairs(query) do
        for _, value in ipairs(type(values) == 'table' and values or { values }) do
            out[#out + 1] = encode(tostring(name), '+') .. (value and '=' .. encode(tostring(value), '+') or '')
        end
    end
    return concat(out, '&')
end

function uri.new(value)
    local made = setmetatable({}, meta)
    if type(value) == 'table' then
        for i, key in ipairs({ 'protocol', 'user', 'password', 'host', 'port', 'path', 'fragment' }) do
            rawset(made, key, value[key])
        end
        if value.query then
            rawset(made, 'query', new_query())
            made:extend(value.query)
        end
        return made
    end
    check('new', 1, value, 'string', true)
    return made:parse(value or ask('url', 'canonicalUrl', ask('page_title'), ''))
end

-- What is wrong with the parts of an address, and where nothing is, true.
local texts = { protocol = '^[^:/?#]+$', user = '^[^:@/?#]*$', password = '^[^:@/?#]*$', host = '^[^:/?#]*$', path = '^[^?#]*$', fragment = '' }
function uri.validate(parts)
    check('validate', 1, parts, 'table')
    local wrong = {}
    for i, name in ipairs({ 'protocol', 'user', 'password', 'host', 'path', 'fragment' }) do
        local value = parts[name]
        if value and type(value) ~= 'string' then
            wrong[#wrong + 1] = '.' .. name .. ' must be a string, not ' .. type(value)
        elseif value and not find(value, texts[name]) and not (name == 'host' and find(value, '^%[[^/?#%[%]@]+%]$')) then
            wrong[#wrong + 1] = 'invalid .' .. name
        end
    end
    local port, path, query = parts.port, parts.path, parts.query
    if port and (type(port) ~= 'number' or port ~= math.floor(port)) then
        wrong[#wrong + 1] = '.port must be an integer, not ' .. type(port)
    elseif port and (port < 1 or port > 65535) then
        wrong[#wrong + 1] = 'invalid .port'
    end
    if not path then
        wrong[#wrong + 1] = 'missing .path'
    elseif type(path) == 'string' and path ~= '' then
        local is_rooted = find(path, '^/')
        local has_host = parts.user or parts.password or parts.host or port
        if has_host and not is_rooted or not has_host and find(path, '^//')
            or not has_host and not is_rooted and not parts.protocol and find(path, '^[^/]*:') then
            wrong[#wrong + 1] = 'invalid .path'
        end
    end
    if query and type(query) ~= 'table' then
        wrong[#wrong + 1] = '.query must be a table, not ' .. type(query)
    end
    return #wrong == 0, concat(wrong, '; ')
end
methods.validate = uri.validate

function computed:userInfo()
    local user, password = rawget(self, 'user'), rawget(self, 'password')
    return user and password and user .. ':' .. password or user
end
function computed:hostPort()
    local host, port = rawget(self, 'host'), rawget(self, 'port')
    return port and (host or '') .. ':' .. port or host
end
function computed:authority()
    return self.userInfo and self.userInfo .. '@' .. (self.hostPort or '') or self.hostPort
end
function computed:queryString()
    local query = rawget(self, 'query')
    return query and uri.buildQueryString(query)
end
function computed:relativePath()
    local query, fragment = self.queryString, rawget(self, 'fragment')
    return (rawget(self, 'path') or '') .. (query and '?' .. query or '') .. (fragment and '#' .. fragment or '')
end

function set.userInfo(self, value)
    local user, password = match(value or '', '^([^:]*):(.*)$')
    rawset(self, 'user', user or value)
    rawset(self, 'password', password)
end
function set.hostPort(self, value)
    local host, port = match(value or '', '^(%[[^/?#%[%]@]+%]):?(.*)$')
    if not host then
        host, port = match(value or '', '^([^:]*):(.*)$')
    end
    local number = tonumber(port)
    if port and port ~= '' and not number or port == '' and find(value, ':$') then
        error(("Invalid port in '%s'"):format(value), 3)
    end
    rawset(self, 'host', host or value)
    rawset(self, 'port', number)
end
function set.authority(self, value)
    local user, host = match(value or '', '^([^@]*)@(.*)$')
    set.userInfo(self, user)
    set.hostPort(self, host or value)
end
function set.queryString(self, value)
    rawset(self, 'query', value and uri.parseQueryString(value))
end
function set.relativePath(self, value)
    local path, fragment = match(value or '', '^([^#]*)#?(.*)$')
    local before, query = match(path, '^([^?]*)%?(.*)$')
    rawset(self, 'path', value and (before or path))
    rawset(self, 'query', query and uri.parseQueryString(query))
    rawset(self, 'fragment', find(value or '', '#', 1, true) and fragment or nil)
end

meta.__index = kit.reading(methods, computed)
function meta.__newindex(self, key, value)
    if set[key] then
        if value ~= nil and value ~= false and type(value) ~= 'string' then
            error(("value for index '%s' must be string, %s given"):format(key, type(value)), 2)
        end
        set[key](self, value or nil)
    elseif methods[key] then
        error("index '" .. key .. "' is read only", 2)
    else
        rawset(self, key, value)
    end
end
function meta.__pairs(self)
    local out = {}
    for key, value in next, self do
        out[key] = value
    end
    for key in next, computed do
        out[key] = self[key]
    end
    return next, out
end
function meta.__tostring(self)
    local protocol, authority = rawget(self, 'protocol'), self.authority
    return (protocol and protocol .. ':' or '') .. (authority and '//' .. authority or '') .. self.relativePath
end

function methods:parse(s)
    check('uri:parse', 1, s, 'string')
    local protocol, authority, path = match(s, '^([^:/?#]+)://([^/?#]*)(.*)$')
    if not protocol then
        authority, path = match(s, '^//([^/?#]*)(.*)$')
    end
    if not path then
        protocol, path = match(s, '^([^:/?#]+):(.*)$')
    end
    local parts = setmetatable({ protocol = protocol }, meta)
    if not pcall(set.authority, parts, authority) then
        error('Invalid port number in string', 2)
    end
    set.relativePath(parts, path or s)
    local is_valid, wrong = uri.validate(parts)
    if not is_valid then
        error(wrong, 2)
    end
    if parts.user or parts.password then -- which belong together
        rawset(self, 'user', nil)
        rawset(self, 'password', nil)
    end
    for key, value in next, parts do
        rawset(self, key, value)
    end
    return self
end
function methods:clone()
    return uri.new(self)
end
function methods:extend(parameters)
    check('uri:extend', 1, parameters, 'table')
    if not rawget(self, 'query') then
        rawset(self, 'query', new_query())
    end
    for name, value in pairs(parameters) do
        self.query[name] = value
    end
    return self
end

-- Addresses of pages of this wiki: the path, with the host, with the protocol.
for i, kind in ipairs({ 'localUrl', 'fullUrl', 'canonicalUrl' }) do
    uri[kind] = function(page, query)
        check(kind, 1, page, 'string')
        local url = ask('url', kind, page, type(query) == 'table' and uri.buildQueryString(query) or query or '')
        return url and uri.new(url)
    end
end

kit.uri = uri
