-- mw.loadData and mw.loadJsonData: tables that nobody can change.
local kit = ...
local check, next, getmetatable, type = kit.util.checkType, kit.next, kit.getmetatable, type

local function make_view(value, seen, name)
    local view = {}
    seen[value] = view
    local meta = {
        mw_loadData = true,
        __index = function(_, key)
            local inside = value[key]
            if type(inside) ~= 'table' then
                return inside
            end
            return seen[inside] or make_view(inside, seen, name)
        end,
        __newindex = function()
            error('table from ' .. name .. ' is read-only', 2)
        end,
        __pairs = function(t)
            local f, state = pairs(value)
            return function(_, key)
                key = f(state, key)
                if key ~= nil then
                    return key, t[key]
                end
            end, t
        end,
    }
    meta.__metatable = meta
    return setmetatable(view, meta)
end

-- Says what a table of data may not contain, if it does.
local plain = { ['nil'] = true, boolean = true, number = true, string = true }
local function fault_of(value, seen)
    local kind = type(value)
    if plain[kind] or seen[value] then
        return nil
    elseif kind ~= 'table' then
        return "data for mw.loadData contains unsupported data type '" .. kind .. "'"
    elseif getmetatable(value) ~= nil then
        return 'data for mw.loadData contains a table with a metatable'
    end
    for key, inside in next, value do
        if not (plain[type(key)] and plain[type(inside)]) then
            seen[value] = true
            local fault = type(key) == 'table' and 'data for mw.loadData contains a table as a key'
                or fault_of(key, seen) or fault_of(inside, seen)
            if fault then
                return fault
            end
        end
    end
end

local data, faults, json = {}, {}, {}
function kit.load_data(name)
    if data[name] == nil and not faults[name] then
        local value = kit.data_of(name)
        if type(value) == 'table' then
            data[name], faults[name] = value, fault_of(value, {})
        else
            faults[name] = tostring(name) .. ' returned ' .. type(value) .. ', table expected'
        end
    end
    if faults[name] then
        error(faults[name], 3)
    end
    return make_view(data[name], {}, 'mw.loadData')
end
function kit.load_json(name)
    check('mw.loadJsonData', 1, name, 'string')
    if not json[name] then
        local title = kit.title.new(name)
        local is_read, value = pcall(kit.decode_json, title and title:getContent() or '')
        if not is_read or type(value) ~= 'table' then
            error("bad argument #1 to 'mw.loadJsonData' ('" .. name .. "' is not a valid JSON page)", 3)
        end
        json[name] = value
    end
    return make_view(json[name], {}, 'mw.loadJsonData')
end
