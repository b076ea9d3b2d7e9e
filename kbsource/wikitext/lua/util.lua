-- The library "libraryUtil", which the others use too.
local kit = ...
local concat = table.concat
local util = {}

function util.checkType(name, number, value, expected, is_optional)
    if not (value == nil and is_optional) and type(value) ~= expected then
        error(("bad argument #%d to '%s' (%s expected, got %s)"):format(number, name, expected, type(value)), 3)
    end
end
function util.checkTypeMulti(name, number, value, expected)
    for i = 1, #expected do
        if type(value) == expected[i] then
            return
        end
    end
    local n = #expected
    local listed = n > 1 and concat(expected, ', ', 1, n - 1) .. ' or ' .. expected[n] or tostring(expected[1])
    error(("bad argument #%d to '%s' (%s expected, got %s)"):format(number, name, listed, type(value)), 3)
end
function util.checkTypeForIndex(index, value, expected)
    if type(value) ~= expected then
        error(("value for index '%s' must be %s, %s given"):format(tostring(index), expected, type(value)), 3)
    end
end
function util.checkTypeForNamedArg(name, key, value, expected, is_optional)
    if not (value == nil and is_optional) and type(value) ~= expected then
        error(("bad named argument %s to '%s' (%s expected, got %s)"):format(key, name, expected, type(value)), 3)
    end
end
function util.makeCheckSelfFunction(library, name, self_object, described)
    return function(self, method)
        if self ~= self_object then
            error(("%s: invalid %s. Did you call %s with a dot instead of a colon, i.e. %s.%s() instead of %s:%s()?"):format(
                library, described, method, name, method, name, method), 3)
        end
    end
end

-- What is read of an object: a method, else what is worked out.
function kit.reading(methods, computed)
    return function(self, key)
        if methods[key] then
            return methods[key]
        end
        return computed[key] and computed[key](self)
    end
end
kit.util = util
