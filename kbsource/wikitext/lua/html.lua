-- mw.html: builds HTML as a tree.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#HTML_library
local kit = ...
local check, check_any, ustring = kit.util.checkType, kit.util.checkTypeMulti, kit.ustring
local concat, find, gsub = table.concat, string.find, string.gsub
local SCALAR, TEXT = { 'string', 'number', 'nil' }, { 'string', 'number' }

local references = { ['<'] = '&lt;', ['>'] = '&gt;', ['&'] = '&amp;', ['"'] = '&quot;' }
local function encode(s) -- but the marks of what was put aside stay as they are
    if not find(s, '[<>&"]') then
        return s
    end
    s = gsub(s, '[<>&"]', references)
    return (gsub(s, '\127\'&quot;`UNIQ%-(.-)%-QINU`&quot;\'\127', '\127\'"`UNIQ-%1-QINU`"\'\127'))
end
local function encode_css(s)
    if not find(s, '[^\32-9<-\127]') then
        return s
    end
    return (ustring.gsub(s, '[^\32-9<-\127]', function(c)
        return ('\\%X '):format(ustring.codepoint(c))
    end))
end

local methods = {}
local meta = { __index = methods }
local closed = { area = true, base = true, br = true, col = true, command = true, embed = true, hr = true, img = true, input = true,
    keygen = true, link = true, meta = true, param = true, source = true, track = true, wbr = true }

local function make(name, options)
    if name and not name:find('^%w+$') then
        error("invalid tag name '" .. name .. "'", 3)
    end
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
                styles[i] = pair[2] and encode_css(pair[1]) .. ':' .. encode_css(pair[2]) or pair[1]
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
        if type(child) == 'table' and child.nodes then
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
-- Sets each of a table of names and values.
local function each(self, method, names, value, described)
    if value ~= nil then
        error("bad argument #2 to '" .. method .. "' (if argument #1 is a table, argument #2 must be left empty)", 3)
    end
    local is_done = pcall(function()
        for name, inside in pairs(names) do
            self[method](self, name, inside)
        end
    end)
    if not is_done then
        error("bad argument #1 to '" .. method .. "' (" .. described .. ')', 3)
    end
    return self
end
local function add(self, value, level)
    if self.closes then
        error("self-closing tags can't have child nodes", level + 1)
    end
    self.nodes[#self.nodes + 1] = value
    return self
end

function methods:node(child)
    return add(self, child, 2)
end
function methods:wikitext(...)
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        if value == nil then
            break
        end
        check_any('wikitext', i, value, TEXT)
        add(self, value, 2)
    end
    return self
end
function methods:newline()
    return self:wikitext('\n')
end
function methods:tag(name, options)
    check('tag', 1, name, 'string')
    check('tag', 2, options, 'table', true)
    local child = make(name, options)
    child.parent = self
    add(self, child, 2)
    return child
end
function methods:attr(name, value)
    if type(name) == 'table' then
        return each(self, 'attr', name, value, 'table keys must be strings, and values must be strings or numbers')
    end
    check('attr', 1, name, 'string')
    check_any('attr', 2, value, SCALAR)
    if name == 'style' then
        self.styles = value and { { value } } or {}
    elseif not name:find('^[%a_:][%w_.:-]*$') then
        error("bad argument #1 to 'attr' (invalid attribute name '" .. name .. "')", 2)
    else
        set(self.attributes, name, value)
    end
    return self
end
function methods:getAttr(name)
    check('getAttr', 1, name, 'string')
    for i = 1, #self.attributes do
        if self.attributes[i][1] == name then
            return self.attributes[i][2]
        end
    end
end
function methods:addClass(class)
    check_any('addClass', 1, class, SCALAR)
    if class then
        local had = self:getAttr('class')
        set(self.attributes, 'class', had and had .. ' ' .. class or class)
    end
    return self
end
function methods:css(name, value)
    if type(name) == 'table' then
        return each(self, 'css', name, value, 'table keys and values must be strings or numbers')
    end
    check_any('css', 1, name, TEXT)
    check_any('css', 2, value, SCALAR)
    set(self.styles, name, value)
    return self
end
function methods:cssText(css)
    check_any('cssText', 1, css, SCALAR)
    self.styles[#self.styles + 1] = css and { css } or nil
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
        check('mw.html.create', 1, name, 'string', true)
        check('mw.html.create', 2, options, 'table', true)
        return make(name ~= '' and name or nil, options)
    end,
}
