-- mw.text.
local kit = ...
local ask, ustring = kit.ask, kit.ustring
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
    separator = separator or ask('message', 'comma-separator', ask('code'))
    conjunction = conjunction or ask('message', 'and', ask('code')) .. ask('message', 'word-separator', ask('code'))
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
    return s:find('&', 1, true) and ask('decode', s, named and true or false) or s
end

-- Characters that wikitext could read as markup become references.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#mw.text.nowiki; $wgUrlProtocols of MediaWiki 1.39.
local function reference(c)
    return '&#' .. c:byte() .. ';'
end
local schemes = { bitcoin = true, geo = true, magnet = true, mailto = true, matrix = true, news = true, sip = true, sips = true, sms = true,
    tel = true, urn = true, xmpp = true }
function text.nowiki(s)
    s = given(s, 'nowiki'):gsub('["&\'<=>%[%]{|};]', reference)
    s = ('\n' .. s):gsub('([\r\n])([!#*: \n\r\t])', function(before, c)
        return before .. reference(c)
    end)
    s = s:gsub('([\r\n])%-%-%-%-', '%1&#45;---'):sub(2)
    s = s:gsub('!!', '&#33;!'):gsub('__', '_&#95;'):gsub('://', '&#58;//'):gsub('~~~', '~~&#126;'):gsub('＿', '&#xFF3F;')
    s = s:gsub('^[%-+_~]', reference):gsub('[_~\r\n\t]$', reference)
    for i, name in ipairs({ 'ISBN', 'RFC', 'PMID' }) do
        s = s:gsub('(' .. name .. ')(%s)', function(before, c)
            return before .. reference(c)
        end)
    end
    s = s:gsub('(%a+):', function(word)
        return schemes[word:lower():match('%a*$')] and word .. '&#58;' or nil
    end)
    return s
end

function text.tag(name, attributes, content)
    if type(name) == 'table' then
        name, attributes, content = name.name, name.attrs, name.content
    end
    kit.util.checkType('tag', 1, name, 'string')
    kit.util.checkType('tag', 2, attributes, 'table', true)
    kit.util.checkTypeMulti('tag', 3, content or '', { 'string', 'number', 'nil' })
    local out = { '<' .. name }
    for key, value in pairs(attributes or {}) do
        local kind = type(value)
        if type(key) ~= 'string' or key:find('[\t\r\n\f /<>"\'=]') then
            error("bad named argument attrs to 'tag' (invalid key '" .. tostring(key) .. "')", 2)
        elseif kind == 'string' or kind == 'number' then
            out[#out + 1] = ' ' .. key .. '="' .. text.encode(value) .. '"'
        elseif kind ~= 'boolean' then
            error("bad named argument attrs to 'tag' (value for key '" .. key .. "' may not be " .. kind .. ')', 2)
        elseif value then
            out[#out + 1] = ' ' .. key
        end
    end
    if content then
        out[#out + 1] = '>' .. content .. '</' .. name .. '>'
    else
        out[#out + 1] = content == false and ' />' or '>'
    end
    return table.concat(out)
end

function text.truncate(s, length, ellipsis, adjust)
    s = given(s, 'truncate')
    ellipsis = ellipsis or ask('message', 'ellipsis', ask('code'))
    local n, room = ustring.len(s), math.abs(length)
    if n <= room then
        return s
    end
    room = room - (adjust and ustring.len(ellipsis) or 0)
    local out = room <= 0 and ellipsis or length < 0 and ellipsis .. ustring.sub(s, -room) or ustring.sub(s, 1, room) .. ellipsis
    return ustring.len(out) < n and out or s
end

function text.jsonEncode(value, flags) return kit.encode_json(value, flags) end
function text.jsonDecode(s, flags) return kit.decode_json(given(s, 'mw.text.jsonDecode'), flags) end
text.JSON_PRESERVE_KEYS, text.JSON_TRY_FIXING, text.JSON_PRETTY = 1, 2, 4

-- What was put aside is known by a mark, which goes. What nowiki holds is not put aside: it stands there in characters that
-- are no markup.
function text.killMarkers(s)
    return (given(s, 'killMarkers'):gsub('\127\'"`UNIQ%-.-%-QINU`"\'\127', ''):gsub('[\1\2]', ''))
end
function text.unstripNoWiki(s)
    return ask('unstrip', given(s, 'unstripNoWiki'))
end
function text.unstrip(s)
    return text.killMarkers(text.unstripNoWiki(given(s, 'unstrip')))
end

kit.text = text
