-- mw.html: builds HTML as a tree.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#HTML_library
local kit = ...
local encode = kit.text.encode
local concat = table.concat

local methods = {}
local meta = { __index = methods }
local closed = { area = true, base = true, br = true, col = true, command = true, embed = true, hr = true, img = true, input = true,
    keygen = true, link = true, meta = true, param = true, source = true, track = true, wbr = true }

local function make(name, options)
    local node = { name = name, nodes = {}, attributes = {}, styles = {}, closes = options and options.selfClosing or closed[name] or false }
    return setmetatable(node, meta)
end

local function build(node, out)
    if node.name then
        out[#out + 1] = '<' .. node.name
        for i = 1, #node.attributes do
            local pair = node.attributes[i]
            out[#out + 1] = ' ' .. pair[1] .. '="' .. encode(pair[2]) .. '"'
        end
        if #node.styles > 0 then
            local styles = {}
            for i = 1, #node.styles do
                local pair = node.styles[i]
                styles[i] = pair[2] and pair[1] .. ':' .. pair[2] or pair[1]
            end
            out[#out + 1] = ' style="' .. encode(concat(styles, ';')) .. '"'
        end
        if node.closes then
            out[#out + 1] = ' />'
            return
        end
        out[#out + 1] = '>'
    end
    for i = 1, #node.nodes do
        local child = node.nodes[i]
        if type(child) == 'table' and getmetatable(child) == meta then
            build(child, out)
        else
            out[#out + 1] = tostring(child)
        end
    end
    if node.name then
        out[#out + 1] = '</' .. node.name .. '>'
    end
end
function meta.__tostring(node)
    local out = {}
    build(node, out)
    return concat(out)
end
function meta.__concat(a, b)
    return tostring(a) .. tostring(b)
end

local function set(list, name, value)
    for i = 1, #list do
        if list[i][1] == name then
            if value == nil then
                table.remove(list, i)
            else
                list[i][2] = value
            end
            return
        end
    end
    if value ~= nil then
        list[#list + 1] = { name, value }
    end
end
local function each(values, add)
    for name, value in pairs(values) do
        add(name, value)
    end
end

function methods:node(child)
    if child ~= nil then
        self.nodes[#self.nodes + 1] = child
    end
    return self
end
function methods:wikitext(...)
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        if value == nil then
            break
        end
        self.nodes[#self.nodes + 1] = tostring(value)
    end
    return self
end
function methods:newline()
    return self:wikitext('\n')
end
function methods:tag(name, options)
    local child = make(name, options)
    child.parent = self
    self.nodes[#self.nodes + 1] = child
    return child
end
function methods:attr(name, value)
    if type(name) == 'table' then
        each(name, function(key, given)
            self:attr(key, given)
        end)
    elseif name == 'style' then
        self.styles = value and { { tostring(value) } } or {}
    else
        set(self.attributes, name, value ~= nil and tostring(value) or nil)
    end
    return self
end
function methods:getAttr(name)
    for i = 1, #self.attributes do
        if self.attributes[i][1] == name then
            return self.attributes[i][2]
        end
    end
end
function methods:addClass(class)
    if class then
        local had = self:getAttr('class')
        set(self.attributes, 'class', had and had .. ' ' .. class or tostring(class))
    end
    return self
end
function methods:css(name, value)
    if type(name) == 'table' then
        each(name, function(key, given)
            self:css(key, given)
        end)
    else
        set(self.styles, name, value ~= nil and tostring(value) or nil)
    end
    return self
end
function methods:cssText(css)
    if css then
        self.styles[#self.styles + 1] = { tostring(css) }
    end
    return self
end
function methods:done()
    return self.parent or self
end
function methods:allDone()
    while self.parent do
        self = self.parent
    end
    return self
end

kit.html = {
    create = function(name, options)
        return make(name ~= '' and name or nil, options)
    end,
}
