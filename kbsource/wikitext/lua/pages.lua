-- mw.title, mw.site and mw.wikibase: pages of the wiki by what the dump says.
local kit = ...
local ask, uri = kit.ask, kit.uri
local rawset = rawset

-- Namespaces are read when they are first asked for. Source: $wgNamespacesWithSubpages of MediaWiki 1.39.
local namespaces
local function read_namespaces()
    if namespaces then
        return namespaces
    end
    namespaces = {}
    local numbers = {}
    for number, name, canonical, others in kit.rows(ask('namespaces'), '(%-?%d+)\t([^\t]*)\t([^\t]*)\t([^\n]*)\n') do
        local id, aliases = tonumber(number), {}
        for alias in kit.rows(others, '[^|]+') do
            aliases[#aliases + 1] = alias
        end
        local talk = id > 0 and id % 2 == 1
        namespaces[id] = { id = id, name = name, displayName = name, canonicalName = canonical, isTalk = talk, isSubject = not talk,
            isContent = id == 0, hasSubpages = id ~= 0 and id ~= 6 and id ~= 14, isIncludable = true, isMovable = true, isCapitalized = true,
            hasGenderDistinction = false, defaultContentModel = id == 828 and 'Scribunto' or nil, aliases = aliases }
        numbers[#numbers + 1] = id
    end
    for i = 1, #numbers do
        local space = namespaces[numbers[i]]
        if space.id >= 0 then
            space.subject = namespaces[space.isTalk and space.id - 1 or space.id]
            space.talk = namespaces[space.isTalk and space.id or space.id + 1]
            space.associated = space.isTalk and space.subject or space.talk
        else
            space.subject = space
        end
    end
    return namespaces
end
local function find_namespace(key)
    if type(key) == 'number' then
        return read_namespaces()[key]
    elseif type(key) == 'string' then
        return read_namespaces()[tonumber(key) or ask('namespace', key)]
    end
end
local function view(keep)
    return setmetatable({}, {
        __index = function(_, key)
            local found = find_namespace(key)
            return found and keep(found) and found or nil
        end,
        __pairs = function()
            local kept = {}
            for id, space in pairs(read_namespaces()) do
                if keep(space) then
                    kept[id] = space
                end
            end
            return pairs(kept)
        end,
    })
end
local site = {
    namespaces = view(function() return true end),
    subjectNamespaces = view(function(space) return space.isSubject end),
    talkNamespaces = view(function(space) return space.isTalk end),
    contentNamespaces = view(function(space) return space.isContent end),
    -- How much there is in the wiki, no page of a dump says.
    stats = { pages = 0, articles = 0, files = 0, edits = 0, users = 0, activeUsers = 0, admins = 0 },
}
local function no_count() return 0 end
site.stats.pagesInCategory, site.stats.pagesInNamespace, site.stats.usersInGroup = no_count, no_count, no_count
local facts = { siteName = 'site_name', server = 'host', wikiId = 'wiki_id', currentVersion = 'version' }
setmetatable(site, {
    __index = function(_, key)
        return facts[key] and ask(facts[key])
    end,
})
site.scriptPath, site.stylePath = '/w', '/w/skins'
local interwiki_meta = { __index = { isProtocolRelative = false, isTranscludable = false, isExtraLanguageLink = false } }
function site.interwikiMap(filter)
    if filter ~= nil and type(filter) ~= 'string' then
        error("bad argument #1 to 'interwikiMap' (string expected, got " .. type(filter) .. ')', 2)
    elseif filter and filter ~= 'local' and filter ~= '!local' then
        error("bad argument #1 to 'interwikiMap' (unknown filter '" .. filter .. "')", 2)
    end
    local out = {}
    for prefix, url, is_local, is_own in kit.rows(ask('interwiki'), '([^\t]*)\t([^\t]*)\t(.)(.)\n') do
        if filter == nil or (filter == 'local') == (is_local == '+') then
            out[prefix] = setmetatable({ prefix = prefix, url = url, isLocal = is_local == '+', isCurrentWiki = is_own == '+' }, interwiki_meta)
        end
    end
    return out
end

local title = {}
local methods = {}
local computed = {}
local meta = {}

local function from_parts(id, text, fragment, interwiki)
    return setmetatable({ namespace = id, text = text, interwiki = interwiki or '', anchor = fragment or '' }, meta)
end
local function space_by(key, name, number)
    if type(key) ~= 'string' and type(key) ~= 'number' then
        error(("bad argument #%d to '%s' (string or number expected, got %s)"):format(number, name, type(key)), 3)
    end
    local found = find_namespace(key)
    if not found then
        local kind = tonumber(key) and 'number' or 'name'
        error(("bad argument #%d to '%s' (unrecognized namespace %s '%s')"):format(number, name, kind, tostring(key)), 3)
    end
    return found
end

function title.new(text, namespace)
    if type(text) == 'number' then
        return nil -- no page is known by its number
    elseif type(text) ~= 'string' then
        error("bad argument #1 to 'title.new' (string expected, got " .. type(text) .. ')', 2)
    end
    local space = namespace and space_by(namespace, 'title.new', 2)
    local id, rest, fragment, interwiki = ask('title', text, space and space.id or 0)
    return id and from_parts(id, rest, fragment, interwiki) or nil
end
function title.makeTitle(namespace, text, fragment, interwiki)
    local space = space_by(namespace, 'makeTitle', 1)
    local name = space.name ~= '' and space.name .. ':' or ''
    return title.new((interwiki and interwiki ~= '' and interwiki .. ':' or '') .. name .. text .. (fragment and '#' .. fragment or ''))
end
function title.getCurrentTitle()
    return title.new(ask('page_title')) or from_parts(0, '')
end
-- Looks up nothing in advance, as no look-up is dear here.
function title.newBatch(texts, namespace)
    local batch = {}
    function batch:lookupExistence() return self end
    function batch:getTitles()
        local out = {}
        for i, text in pairs(texts) do
            out[i] = title.new(text, namespace)
        end
        return out
    end
    return batch
end
function title.equals(a, b)
    return a.interwiki == b.interwiki and a.namespace == b.namespace and a.text == b.text
end
function title.compare(a, b)
    for i, key in ipairs({ 'interwiki', 'namespace', 'text' }) do
        if a[key] ~= b[key] then
            return a[key] < b[key] and -1 or 1
        end
    end
    return 0
end

function methods:inNamespace(wanted)
    return space_by(wanted, 'inNamespace', 1).id == self.namespace
end
function methods:inNamespaces(...)
    for i = 1, select('#', ...) do
        if space_by(select(i, ...), 'inNamespaces', i).id == self.namespace then
            return true
        end
    end
    return false
end
function methods:hasSubjectNamespace(wanted)
    return space_by(wanted, 'hasSubjectNamespace', 1) == read_namespaces()[self.namespace].subject
end
function methods:isSubpageOf(other)
    return self.interwiki == other.interwiki and self.namespace == other.namespace and self.text:sub(1, #other.text + 1) == other.text .. '/'
end
function methods:subPageTitle(text)
    return title.makeTitle(self.namespace, self.text .. '/' .. text)
end
function methods:partialUrl()
    return uri.encode(self.text, 'WIKI')
end
local function address(kind)
    return function(self, query, protocol)
        if type(query) == 'table' then
            query = uri.buildQueryString(query)
        end
        local scheme = kind == 'fullUrl' and protocol ~= 'relative' and protocol or nil
        local url = ask('url', scheme and 'canonicalUrl' or kind, self.fullText, query or '')
        return url and scheme and url:gsub('^%a+:', scheme == 'canonical' and '%0' or scheme .. ':', 1) or url
    end
end
methods.localUrl, methods.fullUrl, methods.canonicalUrl = address('localUrl'), address('fullUrl'), address('canonicalUrl')
function methods:getContent()
    return ask('content', self.prefixedText)
end

-- What cannot be known of the pages of other wikis is nil.
local no_space = { name = '', subject = {} }
local function space_of(self)
    return self.interwiki == '' and read_namespaces()[self.namespace] or no_space
end
local function has_subpages(self)
    return space_of(self).hasSubpages and self.text:find('/', 1, true) ~= nil
end
function computed:fragment() return self.anchor end
function computed:nsText() return space_of(self).name end
function computed:subjectNsText() return space_of(self).subject.name end
function computed:talkNsText()
    local talk = space_of(self).talk
    return talk and talk.name
end
function computed:prefixedText()
    local name = self.nsText
    return (self.interwiki ~= '' and self.interwiki .. ':' or '') .. (name ~= '' and name .. ':' or '') .. self.text
end
function computed:fullText()
    return self.anchor ~= '' and self.prefixedText .. '#' .. self.anchor or self.prefixedText
end
function computed:isTalkPage() return space_of(self).isTalk end
function computed:isContentPage() return space_of(self).isContent end
function computed:isExternal() return self.interwiki ~= '' end
function computed:isLocal() return ask('is_local', self.interwiki) end
function computed:isSpecialPage()
    if self.interwiki == '' then
        return self.namespace == -1
    end
end
function computed:canTalk()
    if self.interwiki == '' then
        return space_of(self).talk ~= nil
    end
end
function computed:isSubpage() return has_subpages(self) or false end
function computed:rootText() return has_subpages(self) and self.text:match('^[^/]*') or self.text end
function computed:baseText() return has_subpages(self) and self.text:match('^(.*)/[^/]*$') or self.text end
function computed:subpageText() return has_subpages(self) and self.text:match('([^/]*)$') or self.text end
function computed:exists() return self.interwiki == '' and ask('exists', self.prefixedText) end
function computed:content() return self:getContent() or false end
-- A module is a redirect where it does nothing but return another. Of the redirects among other pages a snapshot of definitions
-- has but the targets. Source: LuaEngine::getRedirectTarget of Scribunto.
function computed:redirectTarget()
    local text = self.namespace == 828 and self:getContent()
    local target = text and text:match('^return require %[%[([^\n]-)%]%]%s*$')
    local found = target and title.new(target)
    return found and found.namespace == 828 and found.prefixedText == target and found or false
end
function computed:isRedirect() return self.redirectTarget ~= false end
function computed:contentModel() return self.namespace == 828 and 'Scribunto' or 'wikitext' end
function computed:id() return 0 end
function computed:pageLang() return kit.language.new(ask('code')) end
function computed:categories() return {} end
function computed:protectionLevels() return { edit = {}, move = {} } end
function computed:cascadingProtection() return { restrictions = {}, sources = {} } end
function computed:file()
    if self.namespace == 6 or self.namespace == -2 then
        return { exists = false }
    end
end
function computed:fileExists() return false end
function computed:basePageTitle() return title.makeTitle(self.namespace, self.baseText) end
function computed:rootPageTitle() return title.makeTitle(self.namespace, self.rootText) end
function computed:talkPageTitle()
    local talk = space_of(self).talk
    return talk and title.makeTitle(talk.id, self.text)
end
function computed:subjectPageTitle()
    local subject = space_of(self).subject
    return subject.id and title.makeTitle(subject.id, self.text)
end

meta.__index = kit.reading(methods, computed)
function meta:__newindex(key, value)
    if key == 'fragment' then
        if type(value) ~= 'string' then
            error("value for index 'fragment' must be string, " .. type(value) .. ' given', 2)
        end
        self.anchor = value:gsub('[%s_]+', ' '):gsub(' $', '')
    elseif methods[key] or computed[key] then
        error("index '" .. key .. "' is read only", 2)
    else
        rawset(self, key, value)
    end
end
meta.__eq = title.equals
function meta.__lt(a, b) return title.compare(a, b) < 0 end
function meta.__le(a, b) return title.compare(a, b) <= 0 end
function meta.__tostring(self) return self.prefixedText end
function meta.__concat(a, b) return tostring(a) .. tostring(b) end

-- A dump of pages holds no statements: every page is as one without an item.
-- Source: https://www.mediawiki.org/wiki/Extension:Wikibase_Client/Lua
local wikibase = {}
local function answering(give, ...)
    for i, name in ipairs({ ... }) do
        wikibase[name] = give
    end
end
answering(function() return nil end, 'getEntity', 'getEntityObject', 'getEntityIdForCurrentPage', 'getEntityIdForTitle', 'getEntityUrl', 'label',
    'getLabel', 'getLabelByLang', 'getLabelWithLang', 'description', 'getDescription', 'getDescriptionByLang', 'getDescriptionWithLang',
    'sitelink', 'getSitelink', 'getReferencedEntityId')
answering(function() return {} end, 'getBestStatements', 'getAllStatements', 'getBadges', 'getPropertyOrder')
answering(function() return '' end, 'renderSnak', 'renderSnaks', 'formatValue', 'formatValues')
function wikibase.entityExists() return false end
function wikibase.isValidEntityId(id) return type(id) == 'string' and id:match('^[LPQ][1-9]%d*$') ~= nil end
function wikibase.resolvePropertyId(id) return type(id) == 'string' and id:upper():match('^P[1-9]%d*$') or nil end
function wikibase.orderProperties(ids) return ids end
function wikibase.getGlobalSiteId() return ask('wiki_id') end

kit.title, kit.site, kit.wikibase = title, site, wikibase
