-- mw.language and mw.message.
local kit = ...
local ask, ustring = kit.ask, kit.ustring
local language, methods = {}, {}
local meta = { __index = methods }

-- Messages by which lists are written. Source: languages/i18n of MediaWiki 1.39; what has no entry is English.
kit.messages = { ['comma-separator'] = ', ', ['word-separator'] = ' ', ['and'] = ask('and'), ['colon-separator'] = ': ', parentheses = '($1)' }

function language.new(code)
    return setmetatable({ code = tostring(code or ask('code')) }, meta)
end
language.getContentLanguage = language.new
function language.fetchLanguageName(code, inside)
    return ask('language_name', code, inside or '') or ''
end
function language.isKnownLanguageTag(code) return language.fetchLanguageName(code) ~= '' end
language.isSupportedLanguage = language.isKnownLanguageTag
function language.isValidCode(code) return type(code) == 'string' and code:find('^[%w%-]+$') ~= nil end
language.isValidBuiltInCode = language.isValidCode

function methods:getCode() return self.code end
function methods:lc(s) return ustring.lower(s) end
function methods:uc(s) return ustring.upper(s) end
methods.caseFold = methods.uc
function methods:ucfirst(s) return ustring.upper(ustring.sub(s, 1, 1)) .. ustring.sub(s, 2) end
function methods:lcfirst(s) return ustring.lower(ustring.sub(s, 1, 1)) .. ustring.sub(s, 2) end
function methods:formatNum(n, options)
    if type(n) ~= 'number' and not tonumber(n) then
        error("bad argument #1 to 'formatNum' (number expected, got " .. type(n) .. ')', 2)
    end
    n = type(n) == 'number' and ('%.14g'):format(n) or n
    if options and options.noCommafy then
        return n
    end
    return ask('format_number', n, self.code)
end
function methods:parseFormattedNumber(s) return tonumber((ask('plain_number', tostring(s), self.code))) end
function methods:formatDate(form, moment)
    return ask('format_date', form, moment or '', self.code) or error('invalid timestamp ' .. tostring(moment), 2)
end
function methods:isRTL() return ask('is_rtl', self.code) end
function methods:getDir() return self:isRTL() and 'rtl' or 'ltr' end
function methods:getDirMark() return self:isRTL() and '\226\128\143' or '\226\128\142' end
function methods:plural(n, ...)
    local forms = type((...)) == 'table' and (...) or { ... }
    return ask('plural', self.code, tostring(n), unpack(forms))
end
methods.convertPlural = methods.plural
function methods:gender(_, masculine, _, neutral) return neutral or masculine or '' end
function methods:getFallbackLanguages() return {} end

local message, said = {}, {}
local said_meta = { __index = said }
local function make(key, raw, ...)
    return setmetatable({ key = key, raw = raw, given = { n = select('#', ...), ... } }, said_meta)
end
function message.new(key, ...) return make(key, kit.messages[key], ...) end
function message.newRawMessage(raw, ...) return make(nil, raw, ...) end
function message.newFallbackSequence(...)
    for i = 1, select('#', ...) do
        if kit.messages[(select(i, ...))] then
            return message.new((select(i, ...)))
        end
    end
    return message.new((...))
end
function message.numParam(n) return ask('format_number', tostring(n), ask('code')) end
function message.rawParam(s) return tostring(s) end
function message.getDefaultLanguage() return language.new() end
function said:params(...)
    local values = type((...)) == 'table' and (...) or { ... }
    for i = 1, #values do
        self.given.n = self.given.n + 1
        self.given[self.given.n] = values[i]
    end
    return self
end
said.rawParams, said.numParams = said.params, said.params
function said:inLanguage() return self end
said.useDatabase = said.inLanguage
function said:exists() return self.raw ~= nil end
function said:isBlank() return self.raw == nil or self.raw == '' end
function said:isDisabled() return self:isBlank() or self.raw == '-' end
function said:plain()
    if not self.raw then
        return '⧼' .. tostring(self.key) .. '⧽'
    end
    return (self.raw:gsub('%$(%d+)', function(n)
        local value = self.given[tonumber(n)]
        return value ~= nil and tostring(value) or nil
    end))
end
said_meta.__tostring = said.plain

kit.language, kit.message = language, message
