-- mw.language and mw.message.
-- Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual#Language_library
local kit = ...
local ask, ustring, check = kit.ask, kit.ustring, kit.util.checkType
local language, methods = { FALLBACK_MESSAGES = 'FALLBACK_MESSAGES', FALLBACK_STRICT = 'FALLBACK_STRICT' }, {}
local meta = { __index = methods }

function language.new(code)
    if code == nil then
        error('too few arguments to mw.language.new()', 2)
    end
    check('language.new', 1, code, 'string')
    return setmetatable({ code = code }, meta)
end
function language.getContentLanguage() return language.new(ask('code')) end
function language.isValidCode(code)
    check('isValidCode', 1, code, 'string')
    return not code:find('[%c:/\\&<>\'"#%[%]{|}_]') and code ~= ''
end
function language.isValidBuiltInCode(code)
    check('isValidBuiltInCode', 1, code, 'string')
    return code:find('^[a-z0-9-][a-z0-9-]+$') ~= nil
end
function language.fetchLanguageName(code, inside)
    check('fetchLanguageName', 1, code, 'string')
    check('fetchLanguageName', 2, inside, 'string', true)
    return ask('language_name', code, inside or '') or ''
end
function language.fetchLanguageNames(inside)
    check('fetchLanguageNames', 1, inside, 'string', true)
    local out = {}
    for code, name in kit.rows(ask('language_names', inside or ''), '([^\t]*)\t([^\n]*)\n') do
        out[code] = name
    end
    return out
end
function language.isKnownLanguageTag(code) return language.fetchLanguageName(code) ~= '' end
language.isSupportedLanguage = language.isKnownLanguageTag
function language.getFallbacksFor(code, mode)
    check('getFallbacksFor', 1, code, 'string')
    local out = {}
    for other in kit.rows(ask('fallbacks', code), '%S+') do
        out[#out + 1] = other
    end
    if code ~= 'en' and mode ~= language.FALLBACK_STRICT and out[#out] ~= 'en' and language.isValidBuiltInCode(code) then
        out[#out + 1] = 'en'
    end
    return out
end

-- The code of a language that is one.
local function valid(self)
    if not language.isValidCode(self.code) then
        error("language code '" .. self.code .. "' is invalid", 3)
    end
    return self.code
end
local function given(list, ...) -- forms, one by one or in a table
    return type(list) == 'table' and list or { list, ... }
end

function methods:getCode() return self.code end
-- Codes of MediaWiki's own. Source: LanguageCode of MediaWiki 1.39.
local bcp47 = { als = 'gsw', ['bat-smg'] = 'sgs', ['be-x-old'] = 'be-tarask', ['cbk-zam'] = 'cbk', eml = 'egl', ['fiu-vro'] = 'vro',
    ['map-bms'] = 'jv-x-bms', mo = 'ro-Cyrl-MD', no = 'nb', nrm = 'nrf', ['roa-rup'] = 'rup', ['roa-tara'] = 'nap-x-tara',
    simple = 'en-simple', ['sr-ec'] = 'sr-Cyrl', ['sr-el'] = 'sr-Latn', ['zh-classical'] = 'lzh', ['zh-min-nan'] = 'nan', ['zh-yue'] = 'yue',
    ['zh-cn'] = 'zh-Hans-CN', ['zh-hk'] = 'zh-Hant-HK', ['zh-mo'] = 'zh-Hant-MO', ['zh-my'] = 'zh-Hans-MY', ['zh-sg'] = 'zh-Hans-SG',
    ['zh-tw'] = 'zh-Hant-TW', ['de-formal'] = 'de-x-formal', ['hu-formal'] = 'hu-x-formal', ['nl-informal'] = 'nl-x-informal' }
function methods:toBcp47Code()
    local known = bcp47[self.code:lower()]
    if known then
        return known
    end
    local out, before = {}, nil
    for part in self.code:lower():gmatch('[^-]+') do
        if before and before ~= 'x' and #part == 4 then
            part = part:sub(1, 1):upper() .. part:sub(2)
        elseif before and before ~= 'x' and #part == 2 then
            part = part:upper()
        end
        out[#out + 1], before = part, part
    end
    return table.concat(out, '-')
end
local function cased(name, change)
    methods[name] = function(self, s)
        valid(self)
        check(name, 1, s, 'string')
        return change(s, self.code)
    end
end
cased('lc', ustring.lower)
cased('uc', ustring.upper)
cased('caseFold', ustring.upper)
cased('ucfirst', function(s, code) return ask('upper_first', s, code) end)
cased('lcfirst', function(s) return ustring.lower(ustring.sub(s, 1, 1)) .. ustring.sub(s, 2) end)

function methods:formatNum(n, options)
    local code = valid(self)
    check('formatNum', 1, n, 'number')
    check('formatNum', 2, options, 'table', true)
    if n ~= n or n == math.huge or n == -math.huge then
        error("bad argument #1 to 'formatNum' (" .. (n ~= n and 'NaN' or 'infinite') .. ')', 2)
    end
    return ask('format_number', ('%.14g'):format(n), code, not (options and options.noCommafy))
end
function methods:parseFormattedNumber(s)
    return tonumber((ask('plain_number', type(s) == 'number' and tostring(s) or type(s) == 'string' and s or '', valid(self))))
end
function methods:formatDate(form, moment)
    local code = valid(self)
    check('formatDate', 1, form, 'string')
    moment = type(moment) == 'number' and tostring(moment) or moment
    check('formatDate', 2, moment, 'string', true)
    return ask('format_date', form, moment or '', code) or error("bad argument #2 to 'formatDate': invalid timestamp '" .. moment .. "'", 2)
end

-- Lengths in seconds, the longest first; weeks count only where they are asked for. Source: Language of MediaWiki 1.39.
local intervals = { { 'millennia', 31556952000 }, { 'centuries', 3155695200 }, { 'decades', 315569520 }, { 'years', 31556952 },
    { 'weeks', 604800 }, { 'days', 86400 }, { 'hours', 3600 }, { 'minutes', 60 }, { 'seconds', 1 } }
local function parts_of(seconds, chosen)
    local wanted, out, last = {}, {}, nil
    for i = 1, #intervals do
        wanted[intervals[i][1]] = (not chosen or next(chosen) == nil) and intervals[i][1] ~= 'weeks'
    end
    for _, name in pairs(chosen or {}) do
        wanted[name] = true
    end
    for i = 1, #intervals do
        last = wanted[intervals[i][1]] and intervals[i] or last
    end
    for i = 1, #intervals do
        local n = math.floor(seconds / intervals[i][2])
        if wanted[intervals[i][1]] and (n > 0 or (intervals[i] == last and #out == 0)) then
            out[#out + 1] = { intervals[i][1], n }
            seconds = seconds - n * intervals[i][2]
        end
    end
    return out
end
function methods:getDurationIntervals(seconds, chosen)
    valid(self)
    check('getDurationIntervals', 1, seconds, 'number')
    check('getDurationIntervals', 2, chosen, 'table', true)
    local out = {}
    for i, part in ipairs(parts_of(seconds, chosen)) do
        out[part[1]] = part[2]
    end
    return out
end
function methods:formatDuration(seconds, chosen)
    local code = valid(self)
    check('formatDuration', 1, seconds, 'number')
    check('formatDuration', 2, chosen, 'table', true)
    local out = {}
    for i, part in ipairs(parts_of(seconds, chosen)) do
        local forms = kit.text.split(ask('message', 'duration-' .. part[1], code), '|', true)
        local n = self:formatNum(part[2]):gsub('%%', '%%%%')
        out[i] = self:convertPlural(part[2], forms):gsub('%$1', n)
    end
    return kit.text.listToText(out, ask('message', 'comma-separator', code), ask('message', 'and', code) .. ask('message', 'word-separator', code))
end

function methods:isRTL() return ask('is_rtl', valid(self)) end
function methods:getDir() return ask('is_rtl', valid(self)) and 'rtl' or 'ltr' end
function methods:getDirMark(opposite)
    return ask('is_rtl', valid(self)) ~= (opposite or false) and '\226\128\143' or '\226\128\142'
end
function methods:getDirMarkEntity(opposite)
    return ask('is_rtl', valid(self)) ~= (opposite or false) and '&rlm;' or '&lrm;'
end
local arrows = { left = '←', right = '→', up = '↑', down = '↓' }
function methods:getArrow(direction)
    direction = direction or 'forwards'
    check('getArrow', 1, direction, 'string')
    if direction == 'forwards' or direction == 'backwards' then
        return ask('is_rtl', valid(self)) == (direction == 'forwards') and '←' or '→'
    end
    return arrows[direction]
end
function methods:convertPlural(n, ...)
    local code = valid(self)
    check('convertPlural', 1, n, 'number')
    local forms = given(...)
    for i = 1, #forms do
        forms[i] = tostring(forms[i])
    end
    return ask('plural', code, tostring(n), unpack(forms))
end
methods.plural = methods.convertPlural
function methods:convertGrammar(word, case)
    local code = valid(self)
    check('convertGrammar', 1, word, 'string')
    check('convertGrammar', 2, case, 'string')
    return ask('grammar', word, case, code)
end
function methods:grammar(case, word) return self:convertGrammar(word, case) end
function methods:gender(person, ...) -- nobody's gender is known, but the word itself says it
    valid(self)
    check('gender', 1, person, 'string')
    local forms = given(...)
    return forms[person == 'female' and 2 or person ~= 'male' and 3 or 1] or forms[1] or ''
end
function methods:getFallbackLanguages(mode) return language.getFallbacksFor(self.code, mode) end

local message, said, value_meta = {}, {}, {}
local said_meta = { __index = said }
function value_meta.__tostring(value) return tostring(value.raw or value.num) end

local function scalar(value, name, number, is_any)
    local kind, known = type(value), getmetatable(value)
    if is_any and known == value_meta then
        return value
    elseif kind == 'table' and known and known.__tostring then
        return tostring(value)
    elseif kind ~= 'string' and kind ~= 'number' then
        error(("bad argument #%d to '%s' (string or number expected, got %s)"):format(number, name, kind), 4)
    end
    return value
end
-- Adds values, one by one or in a table, each as what "wrap" makes of it.
local function add(self, name, wrap, ...)
    local first = ...
    local known = getmetatable(first)
    local is_list = type(first) == 'table' and not (known and known.__tostring)
    if is_list and select('#', ...) > 1 then
        error("bad arguments to '" .. name .. "' (pass either a table of params or params as individual arguments)", 3)
    end
    local values = is_list and first or { ... }
    for i = 1, is_list and table.maxn(first) or select('#', ...) do
        local value = scalar(values[i], 'params', i, not wrap)
        self.given[#self.given + 1] = wrap and setmetatable({ [wrap] = value }, value_meta) or value
    end
    return self
end
local function make(keys, raw)
    return setmetatable({ keys = keys, raw = raw, given = {}, lang = ask('code') }, said_meta)
end
function message.new(key, ...)
    check('message.new', 1, key, 'string')
    return add(make({ key }), 'params', nil, ...)
end
function message.newRawMessage(raw, ...)
    check('message.newRawMessage', 1, raw, 'string')
    return add(make({}, raw), 'params', nil, ...)
end
function message.newFallbackSequence(...)
    for i = 1, math.max(1, select('#', ...)) do
        check('message.newFallbackSequence', i, (select(i, ...)), 'string')
    end
    return make({ ... })
end
function message.rawParam(value) return setmetatable({ raw = scalar(value, 'message.rawParam', 1) }, value_meta) end
function message.numParam(value) return setmetatable({ num = scalar(value, 'message.numParam', 1) }, value_meta) end
function message.getDefaultLanguage() return language.getContentLanguage() end

function said:params(...) return add(self, 'params', nil, ...) end
function said:rawParams(...) return add(self, 'rawParams', 'raw', ...) end
function said:numParams(...) return add(self, 'numParams', 'num', ...) end
function said:inLanguage(lang)
    lang = type(lang) == 'table' and lang.code or lang
    check('inLanguage', 1, lang, 'string')
    self.lang = lang
    return self
end
function said:useDatabase(value)
    check('useDatabase', 1, value, 'boolean')
    return self
end
local function text_of(self)
    if self.raw then
        return self.raw
    elseif not language.isValidCode(self.lang) then
        error("language code '" .. self.lang .. "' is invalid", 3)
    end
    for i, key in ipairs(self.keys) do
        local text = ask('message', key, self.lang)
        if text then
            return text
        end
    end
end
function said:exists() return text_of(self) ~= nil end
function said:isBlank() return (text_of(self) or '') == '' end
function said:isDisabled() return self:isBlank() or text_of(self) == '-' end
function said:plain()
    return ((text_of(self) or '⧼' .. self.keys[#self.keys] .. '⧽'):gsub('%$(%d+)', function(n)
        local value = self.given[tonumber(n)]
        if type(value) == 'table' and value.num then
            return ask('format_number', tostring(value.num), self.lang, true)
        end
        return value and tostring(value) or nil
    end))
end
said_meta.__tostring = said.plain

kit.language, kit.message = language, message
