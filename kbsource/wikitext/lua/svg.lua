-- mw.svg: pictures that a module draws, of which a reader of text sees nothing.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#SVG_library
local kit = ...
local check, encode = kit.util.checkType, kit.text.encode

local methods = {}
local meta = { __index = methods }
local function setting(method, part)
    methods[method] = function(self, name, value)
        check(method, 1, name, 'string')
        check(method, 2, value, 'string')
        if not name:find('^[%a_][%w:._-]*$') then
            error('Invalid attribute name: ' .. name, 2)
        end
        self[part][name] = value
        return self
    end
end
setting('setAttribute', 'attributes')
setting('setImgAttribute', 'imgAttributes')
function methods:setContent(content)
    check('setContent', 1, content, 'string')
    self.content = content
    return self
end
function methods:toString()
    local values, names, out = { xmlns = 'http://www.w3.org/2000/svg' }, {}, {}
    for name, value in pairs(self.attributes) do
        values[name] = value
    end
    for name in pairs(values) do
        names[#names + 1] = name
    end
    table.sort(names)
    for i = 1, #names do
        out[i] = ' ' .. names[i] .. '="' .. encode(values[names[i]]) .. '"'
    end
    return '<svg' .. table.concat(out) .. '>' .. self.content .. '</svg>'
end
function methods:toImage() return '' end

kit.svg = {
    new = function()
        return setmetatable({ attributes = {}, imgAttributes = {}, content = '' }, meta)
    end,
}
