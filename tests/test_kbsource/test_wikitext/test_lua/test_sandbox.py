"""What a module cannot reach, and what a hostile one costs: its page's budget and no more."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("lupa")

from tests.support.lua import outcome, parsed, said

SECONDS = 10.0
"""More than any page takes."""

HOSTILE = {
    "endless loop": "while true do end",
    "endless loop, errors caught": "while true do pcall(function() while true do end end) end",
    "endless handler": "xpcall(error, function() while true do end end)",
    "endless coroutine": "local c = coroutine.wrap(function() while true do end end) while true do pcall(c) end",
    "endless coroutines": "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "endless comparison": "table.sort({1,2,3}, function() while true do end end)",
    "endless metamethod": "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    "endless iterator": "for i in function() return 1 end do end",
    "a gigabyte by rep": "return ('x'):rep(2^30)",
    "nothing by rep": "while true do (''):rep(2^40) end",
    "a gigabyte by doubling": "local s = 'x' for i = 1, 30 do s = s .. s end return s",
    "long copies": "local s = ('x'):rep(4e6) while true do local t = s .. 'y' end",
    "a gigantic table": "local t = {} for i = 1, 1e9 do t[i] = {i} end",
    "memory, errors caught": "while true do pcall(function() local t = {} for i = 1, 1e9 do t[i] = {i} end end) end",
    "many closures": "local t = {} for i = 1, 1e9 do t[i] = function() return i end end",
    "catastrophic pattern": "return ('a'):rep(3000):match('.-.-.-.-.-.-b')",
    "catastrophic optionals": "return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(41))",
    "catastrophic replacement": "return ('a'):rep(5000):gsub('(.*)*(.*)*(.*)*b', '')",
    "catastrophic code points": "return mw.ustring.match(('ā'):rep(3000), '.-.-.-.-.-.-b')",
    "many patterns": "while true do ('aaaaaaaaaaaa'):find('a-a-b') end",
    "plain search": "local s, p = ('a'):rep(1e6), ('a'):rep(5e5) .. 'b' while true do s:find(p, 1, true) end",
    "insertions in front": "local t = {} while true do table.insert(t, 1, 0) end",
    "insertion far below": "local t = {} table.insert(t, -1e12, 0)",
    "sorting": "local t = {} for i = 1, 1e5 do t[i] = -i end while true do table.sort(t) end",
    "joining": "local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.concat(t) end",
    "first keys": "local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1e5, 1, -1 do t[i] = nil end "
    "while true do next(t) end",
    "itself": "while true do frame:preprocess('{{Zzz run}}') end",
    "questions": "while true do mw.title.new('x').exists = mw.title.new('Module:M').exists end",
    "case folding": "local s = ('ā'):rep(1e5) while true do mw.ustring.upper(s) end",
    "character references": "local s = ('&amp;'):rep(1e5) while true do mw.text.decode(s) end",
    "a large result": "return ('x'):rep(3e6)",
}


@pytest.mark.parametrize("lua", HOSTILE.values(), ids=HOSTILE)
def test_hostile_module_costs_its_page_and_no_more(lua: str) -> None:
    module = f"local p = {{}}\nfunction p.f(frame)\n{lua}\nend\nfunction p.g() return 'fine' end\nreturn p"
    templates = {"Zzz run": "{{#invoke:M|f}}", "Zzz fine": "{{#invoke:M|g}}"}
    started = time.process_time()
    page = parsed("before {{Zzz run}} after", {"M": module}, templates)
    assert time.process_time() - started < SECONDS
    assert [element.text for element in page.elements[1:]] == ["before after"]
    assert [use.outcome for use in page.templates] == ["bound"]
    assert parsed("{{Zzz fine}}", {"M": module}, templates).elements[1].text == "fine"


@pytest.mark.parametrize(
    "lua",
    [
        "local function f() return f() + 1 end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
        "local s = '' for i = 1, 300 do s = s .. '(' end return s:find(s)",
        "return ('%d'):rep(10):format('x')",
        "return unpack({}, 1, 1e8)",
        "return ('x'):rep(1e5):byte(1, -1)",
        "error({})",
        "error()",
        "return setmetatable({}, {__tostring = function() error('no') end})",
        "return mw.loadData('Module:M').f.x",
        "mw.loadData('Module:Data').x = 1",
        "return require('Module:None')",
        "return require('os')",
    ],
)
def test_an_error_leaves_a_gap(lua: str) -> None:
    assert outcome(lua) == "unknown"


def test_recursion_that_is_caught_goes_on() -> None:
    assert said("local function f() return f() + 1 end return pcall(f) and 'yes' or 'no'") == "no"


@pytest.mark.parametrize(
    "name",
    [
        *("io", "debug", "package", "module", "load", "loadstring", "loadfile", "dofile", "collectgarbage", "gcinfo"),
        *("newproxy", "getfenv", "setfenv", "print", "python", "string.dump", "os.execute", "os.getenv", "os.exit"),
        *("os.remove", "os.rename", "os.tmpname", "os.setlocale", "_G.io", "_G.python", "coroutine.close"),
    ],
)
def test_what_reaches_outside_is_not_there(name: str) -> None:
    assert said(f"return type({name})") == "nil"


@pytest.mark.parametrize(
    ("lua", "expected"),
    [
        pytest.param("return type(getmetatable(''))", "nil", id="metatable of strings"),
        pytest.param(
            "string.format = function() return 'mine' end return mw.ustring.format('%d', 1)", "1", id="own functions"
        ),
        pytest.param(
            "local n = 0 for k in pairs(_G) do if type(_G[k]) == 'userdata' then n = n + 1 end end return n",
            "0",
            id="nothing of Python in the globals",
        ),
        pytest.param("return type(({pcall(mw.title.new)})[2])", "string", id="errors are texts"),
        pytest.param(
            "return tostring({}) .. tostring(print) .. tostring(pairs)", "tablenilfunction", id="no addresses"
        ),
        pytest.param("return math.random(100) .. ' ' .. math.random(100)", "1 14", id="random numbers"),
        pytest.param("return os.clock()", "0", id="no clock"),
        pytest.param("return os.time()", "1614947400", id="time of the revision"),
        pytest.param("return os.date('!%Y-%m-%d %H:%M')", "2021-03-05 12:30", id="date of the revision"),
        pytest.param("return os.time(os.date('*t', 951782400))", "951782400", id="there and back"),
        pytest.param("return os.time{year = 2024, month = 14, day = 1, hour = 0}", "1738368000", id="months run over"),
        pytest.param(
            "local t = {} t[{}] = 1 t.x = 2 return pcall(pairs, t) and 'yes' or 'no'", "no", id="order of tables"
        ),
        pytest.param("local t = {} t[{}] = 1 for k in pairs(t) do return type(k) end", "table", id="one table"),
    ],
)
def test_what_a_module_sees(lua: str, expected: str) -> None:
    assert said(lua) == expected


def test_without_the_extra_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    page = parsed("({{Zzz run}})", {"M": "return {f = function() return 1 end}"}, {"Zzz run": "{{#invoke:M|f}}"})
    assert page.templates[0].outcome == "unknown"


def test_bytecode_is_no_module() -> None:
    page = parsed("({{Zzz run}})", {"M": "\x1bLua"}, {"Zzz run": "{{#invoke:M|f}}"})
    assert page.templates[0].outcome == "unknown"


def test_one_run_leaves_nothing_to_the_next() -> None:
    module = (
        "local p = {} n = 0 function p.f() n = n + 1 string.n = (string.n or 0) + 1 return n + string.n end return p"
    )
    page = parsed("{{Zzz a}} {{Zzz b}}", {"M": module}, {"Zzz a": "{{#invoke:M|f}}", "Zzz b": "{{#invoke:M|f}}."})
    assert page.elements[1].text == "2 2."


_KEYS = """
from tests.support.lua import said
print(said('''
local t, out = {}, {}
for i = 1, 200 do t['k' .. i * 7919] = i t[i * 0.5] = i t[i % 2 == 0] = i end
for i = 1, 200, 3 do t['k' .. i * 7919] = nil end
for k, v in pairs(t) do out[#out + 1] = tostring(k) end
for k in next, t do out[#out + 1] = tostring(k) end
return table.concat(out, ' ') .. tostring(setmetatable({}, {__mode = 'k'}))
'''))
"""


def test_order_is_the_same_in_every_process() -> None:
    seen = set()
    for number in range(3):
        environment = {**os.environ, "PYTHONHASHSEED": str(number), "FILLER": "x" * number * 1000}
        done = subprocess.run(
            [sys.executable, "-c", f"filler = [bytes(7)] * {number * 99999}\n{_KEYS}"],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            cwd=Path(__file__).parents[4],
        )
        seen.add(done.stdout)
    assert len(seen) == 1
    assert "k15838" in seen.pop()
