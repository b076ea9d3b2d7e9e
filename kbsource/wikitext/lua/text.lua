-- mw.text and mw.uri.
local kit = ...
local ask, charge, ustring = kit.ask, kit.charge, kit.ustring
local text = {}

local function given(value, name)
    if type(value) ~= 'string' and type(value) ~= 'number' then
        error("bad argument #1 to '" .. name .. "' (string expected, got " .. type(value) .. ')', 3)
    end
    return tostring(value)
end

local blanks = { [9] = true, [10] = true, [12] = true, [13] = true, [32] = true }
function text.trim(s, set)
    s = given(s, 'trim')
    if set then
        return (ustring.match(s, '^[' .. set .. ']*(.-)[' .. set .. ']*$'))
    end
    local from, to = 1, #s
    while blanks[s:byte(from)] do
        from = from + 1
    end
    while to >= from and blanks[s:byte(to)] do
        to = to - 1
    end
    return s:sub(from, to)
end

function text.gsplit(s, pattern, plain)
    s = given(s, 'gsplit')
    pattern = pattern or '%s'
    local of = (s .. pattern):find('[\128-\255]') and ustring or string
    local place, length = 1, of.len(s)
    return function()
        if not place then
            return nil
        end
        local from, to = of.find(s, pattern, place, plain)
        local out
        if from and to < from then -- what matches nothing splits every character off
            to = from
            out = of.sub(s, place, from)
            place = from < length and to + 1 or nil
        elseif from then
            out = of.sub(s, place, from - 1)
            place = to + 1
        else
            out = of.sub(s, place)
            place = nil
        end
        return out
    end
end

function text.split(s, pattern, plain)
    local out = {}
    for piece in text.gsplit(s, pattern, plain) do
        out[#out + 1] = piece
    end
    return out
end

function text.listToText(list, separator, conjunction)
    separator = separator or kit.messages['comma-separator']
    conjunction = conjunction or kit.messages['and'] .. kit.messages['word-separator']
    local n = #list
    if n < 2 then
        return list[1] and tostring(list[1]) or ''
    end
    return table.concat(list, separator, 1, n - 1) .. conjunction .. tostring(list[n])
end

local references = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;', ["'"] = '&#039;', ['\194\160'] = '&nbsp;' }
function text.encode(s, set)
    s = given(s, 'encode')
    return (ustring.gsub(s, '[' .. (set or '<>&"\'\194\160') .. ']', function(c)
        return references[c] or '&#' .. ustring.codepoint(c) .. ';'
    end))
end
function text.decode(s, named)
    s = given(s, 'decode')
    charge(#s * 10)
    return s:find('&', 1, true) and ask('decode', s, named and true or false) or s
end

-- Characters that wikitext could read as markup become references.
function text.nowiki(s)
    s = given(s, 'nowiki'):gsub('["&\'<=>%[%]{|}]', function(c)
        return '&#' .. c:byte() .. ';'
    end)
    s = ('\n' .. s):gsub('\n([#*: \n\r\t])', function(c)
        return '\n&#' .. c:byte() .. ';'
    end)
    s = s:gsub('\n%-%-%-%-', '\n&#45;---'):gsub('__', '_&#95;'):gsub('://', '&#58;//')
    return (s:sub(2))
end

function text.tag(name, attributes, content)
    if type(name) == 'table' then
        name, attributes, content = name.name, name.attrs, name.content
    end
    local out = { '<' .. name }
    for key, value in pairs(attributes or {}) do
        if value == true then
            out[#out + 1] = ' ' .. key
        elseif value then
            out[#out + 1] = ' ' .. key .. '="' .. text.encode(tostring(value)) .. '"'
        end
    end
    if content == false then
        out[#out + 1] = ' />'
    elseif content then
        out[#out + 1] = '>' .. tostring(content) .. '</' .. name .. '>'
    else
        out[#out + 1] = '>'
    end
    return table.concat(out)
end

function text.truncate(s, length, ellipsis, adjust)
    s = given(s, 'truncate')
    ellipsis = ellipsis or '…'
    local n = ustring.len(s)
    if n <= math.abs(length) then
        return s
    end
    local room = math.abs(length) - (adjust and ustring.len(ellipsis) or 0)
    if room <= 0 then
        return ellipsis
    end
    return length < 0 and ellipsis .. ustring.sub(s, -room) or ustring.sub(s, 1, room) .. ellipsis
end

local function same(s)
    return s
end
text.killMarkers, text.unstrip, text.unstripNoWiki = same, same, same

local uri = {}
local function escaped(c)
    return ('%%%02X'):format(c:byte())
end
function uri.encode(s, kind)
    s = given(s, 'encode')
    if kind == 'WIKI' then
        return (s:gsub(' ', '_'):gsub("[^%w_!%$%(%)%*,%-%./:;@~]", escaped))
    elseif kind == 'PATH' then
        return (s:gsub('[^%w_%-%.~]', escaped))
    end
    return (s:gsub('[^%w_%-%. ]', escaped):gsub(' ', '+'))
end
function uri.decode(s, kind)
    if kind ~= 'PATH' and kind ~= 'WIKI' then
        s = s:gsub('%+', ' ')
    end
    return (s:gsub('%%(%x%x)', function(code)
        return string.char(tonumber(code, 16))
    end))
end
function uri.anchorEncode(s)
    return (text.trim(s):gsub('%s+', '_'))
end
function uri.localUrl(page, query)
    return '/wiki/' .. uri.encode(page, 'WIKI') .. (query and '?' .. query or '')
end
function uri.fullUrl(page, query)
    return ask('host') .. uri.localUrl(page, query)
end
uri.canonicalUrl = uri.fullUrl

kit.text, kit.uri = text, uri
