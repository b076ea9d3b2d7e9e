-- mw.title, mw.site and mw.wikibase: pages of the wiki by what the dump says.
local kit = ...
local ask, uri = kit.ask, kit.uri

-- Namespaces are read when they are first asked for.
local namespaces
local function read_namespaces()
    if namespaces then
        return namespaces
    end
    namespaces = {}
    local numbers = {}
    for number, name, canonical in ask('namespaces'):gmatch('(%-?%d+)\t([^\t\n]*)\t([^\t\n]*)\n') do
        local id = tonumber(number)
        local talk = id > 0 and id % 2 == 1
        namespaces[id] = { id = id, name = name, displayName = name, canonicalName = canonical, isTalk = talk, isSubject = not talk,
            isContent = id == 0, hasSubpages = id ~= 0, isIncludable = true, isMovable = true, isCapitalized = true, aliases = {} }
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
    stats = {},
}
setmetatable(site, {
    __index = function(_, key)
        if key == 'siteName' then
            return ask('site_name')
        elseif key == 'server' then
            return ask('host')
        elseif key == 'scriptPath' then
            return '/w'
        end
    end,
})

local title = {}
local methods = {}
local computed = {}
local meta = {}

local function from_parts(id, text, fragment)
    return setmetatable({ namespace = id, text = text, fragment = fragment or '' }, meta)
end

function title.new(text, namespace)
    if type(text) == 'number' then
        return nil -- no page is known by its number
    elseif type(text) ~= 'string' then
        error("bad argument #1 to 'title.new' (string expected, got " .. type(text) .. ')', 2)
    end
    local space = namespace and find_namespace(namespace)
    local id, rest, fragment = ask('title', text, space and space.id or 0)
    return id and from_parts(id, rest, fragment) or nil
end
function title.makeTitle(namespace, text, fragment)
    local space = find_namespace(namespace)
    local id, rest = nil, nil
    if space then
        id, rest = ask('title', (space.name ~= '' and space.name .. ':' or '') .. text, 0)
    end
    return id and from_parts(id, rest, fragment) or nil
end
local current
function title.getCurrentTitle()
    current = current or title.new(ask('page_title')) or from_parts(0, '')
    return current
end
function title.equals(a, b)
    return a.namespace == b.namespace and a.text == b.text
end
function title.compare(a, b)
    local one, two = a.prefixedText, b.prefixedText
    return one == two and 0 or one < two and -1 or 1
end

local function within()
    return function(self, wanted)
        local found = find_namespace(wanted)
        return found ~= nil and found.id == self.namespace
    end
end
methods.inNamespace = within()
function methods:inNamespaces(...)
    for i = 1, select('#', ...) do
        if self:inNamespace((select(i, ...))) then
            return true
        end
    end
    return false
end
function methods:hasSubjectNamespace(wanted)
    local found = find_namespace(wanted)
    return found ~= nil and self.subjectNsText == found.name
end
function methods:isSubpageOf(other)
    return self.namespace == other.namespace and self.text:sub(1, #other.text + 1) == other.text .. '/'
end
function methods:subPageTitle(text)
    return title.makeTitle(self.namespace, self.text .. '/' .. text)
end
function methods:partialUrl()
    return uri.encode(self.text, 'WIKI')
end
function methods:localUrl(query)
    return uri.localUrl(self.prefixedText, query)
end
function methods:fullUrl(query)
    return uri.fullUrl(self.prefixedText, query)
end
methods.canonicalUrl = methods.fullUrl
function methods:getContent()
    return ask('content', self.prefixedText)
end

local function space_of(self)
    return read_namespaces()[self.namespace] or { name = '', isTalk = false, isContent = false }
end
function computed:nsText() return space_of(self).name end
function computed:subjectNsText() return (space_of(self).subject or space_of(self)).name end
function computed:prefixedText()
    local name = self.nsText
    return name ~= '' and name .. ':' .. self.text or self.text
end
function computed:fullText()
    return self.fragment ~= '' and self.prefixedText .. '#' .. self.fragment or self.prefixedText
end
function computed:isTalkPage() return space_of(self).isTalk end
function computed:isContentPage() return space_of(self).isContent end
function computed:isSpecialPage() return self.namespace == -1 end
function computed:isSubpage() return self.namespace ~= 0 and self.text:find('/', 1, true) ~= nil end
function computed:rootText() return self.namespace ~= 0 and self.text:match('^[^/]+') or self.text end
function computed:baseText() return self.namespace ~= 0 and self.text:match('^(.*)/[^/]*$') or self.text end
function computed:subpageText() return self.namespace ~= 0 and self.text:match('([^/]*)$') or self.text end
function computed:exists() return ask('exists', self.prefixedText) end
function computed:isRedirect() return false end
function computed:isLocal() return true end
function computed:isExternal() return false end
function computed:interwiki() return '' end
function computed:contentModel() return self.namespace == 828 and 'Scribunto' or 'wikitext' end
function computed:id() return 0 end
function computed:canTalk() return self.namespace >= 0 end
function computed:basePageTitle() return title.makeTitle(self.namespace, self.baseText) end
function computed:rootPageTitle() return title.makeTitle(self.namespace, self.rootText) end
function computed:talkPageTitle()
    local talk = space_of(self).talk
    return talk and title.makeTitle(talk.id, self.text)
end
function computed:subjectPageTitle()
    local subject = space_of(self).subject
    return subject and title.makeTitle(subject.id, self.text)
end

function meta.__index(self, key)
    if methods[key] then
        return methods[key]
    end
    return computed[key] and computed[key](self)
end
meta.__eq = title.equals
function meta.__lt(a, b) return title.compare(a, b) < 0 end
function meta.__le(a, b) return title.compare(a, b) <= 0 end
function meta.__tostring(self) return self.prefixedText end
function meta.__concat(a, b) return tostring(a) .. tostring(b) end

-- A dump of pages holds no statements: every page is as one without an item.
local wikibase = {}
for i, name in ipairs({ 'getEntity', 'getEntityObject', 'getEntityIdForCurrentPage', 'getEntityIdForTitle', 'label', 'getLabel', 'getLabelByLang',
    'description', 'getDescription', 'sitelink', 'getSitelink' }) do
    wikibase[name] = function() return nil end
end
for i, name in ipairs({ 'getBestStatements', 'getAllStatements' }) do
    wikibase[name] = function() return {} end
end
function wikibase.entityExists() return false end
function wikibase.isValidEntityId(id) return type(id) == 'string' and id:match('^[PQ]%d+$') ~= nil end

kit.title, kit.site, kit.wikibase = title, site, wikibase
