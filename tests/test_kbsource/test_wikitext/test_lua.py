"""Lua modules: what a reader sees of them, the matcher of patterns, what they cannot reach, what hostile ones cost."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.records import TemplateUse
from kbsource.wikitext import lua_modules
from kbsource.wikitext.expander import BoundError, Expander, Frame, PageExpander
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.lua_modules import LuaModules
from kbsource.wikitext.parse import WikitextParser
from kbsource.wikitext.templates import find_rule
from tests.support.wikitexts import SITE, Dictionary, check_laws, outcome, parsed, run, said

ARGUMENTS = """
local p = {}
function p.getArgs(frame)
    local args, parent = {}, frame:getParent()
    for _, source in ipairs({ frame.args, parent and parent.args or {} }) do
        for k, v in pairs(source) do
            v = mw.text.trim(v)
            if args[k] == nil and v ~= '' then args[k] = v end
        end
    end
    return args
end
return p
"""

# name: (body of the function f, what stands in the template behind the function's name, the use, what a reader sees).
MODULES = {
    "arguments": (
        "local a = require('Module:Arguments').getArgs(frame) return a[1] .. '/' .. a.k .. '/' .. tostring(a[2])",
        "|k=own", "| one | |k=theirs", "one/own/nil",
    ),
    "coordinates": (
        "local d = tonumber(frame.args[1]) local m = math.floor((d % 1) * 60 + 0.5) "
        "return ('%d°%02d′%s'):format(math.floor(d), m, frame.args[2])",
        "|{{{1}}}|N", "|56.95", "56°57′N",
    ),
    "dates": (
        "return mw.language.getContentLanguage():formatDate('j F Y', frame.args[1])", "|{{{1}}}", "|2009-02-14",
        "14 February 2009",
    ),
    "age": (
        "local now = os.date('!*t') return now.year - tonumber(frame.args[1])", "|{{{1}}}", "|1990", "31",
    ),
    "navbox": (
        "local t = mw.html.create('table'):addClass('navbox') t:tag('tr'):tag('td'):wikitext('[[Riga]]') "
        "return 'text' .. tostring(t)", "", "", "text",
    ),
    "lists": (
        "local t = {} for _, v in ipairs(frame:getParent().args) do t[#t + 1] = v end return mw.text.listToText(t)",
        "", "|a|b|c", "a, b and c",
    ),
    "language names": (
        "return mw.language.fetchLanguageName(frame.args[1], 'en')", "|{{{1}}}", "|lv", "Latvian",
    ),
    "numbers": (
        "return mw.getContentLanguage():formatNum(tonumber(frame.args[1]) * 2)", "|{{{1}}}", "|1234567.25",
        "2,469,134.5",
    ),
    "infobox": (
        "local t = mw.html.create('table'):addClass('infobox') "
        "t:tag('tr'):tag('th'):wikitext('Name'):done():tag('td'):wikitext(frame.args[1]) return tostring(t) .. 'said'",
        "|{{{1}}}", "|Riga", " said",
    ),
    "ordinals": (
        "local n = tonumber(frame.args[1]) local e = { 'st', 'nd', 'rd' } "
        "return n .. (n % 100 > 10 and n % 100 < 14 and 'th' or e[n % 10] or 'th')",
        "|{{{1}}}", "|22", "22nd",
    ),
    "string functions": (
        "return mw.ustring.upper(mw.ustring.sub('ārija', 1, 1)) .. mw.ustring.gsub('žēl ērgļi', '%s+', '_') "
        ".. mw.ustring.len('ēģļ') .. (mw.ustring.find('āāb', 'b', 1, true))", "", "", "Āžēl_ērgļi33",
    ),
    "data modules": (
        "local d = mw.loadData('Module:Data') local s = '' for _, r in ipairs(d.rows) do s = s .. r.name .. ' ' end "
        "return s .. d.rows[2].name", "", "", "Riga Tallinn Tallinn",
    ),
    "citations": (
        "local a = frame:getParent().args local out = {} for _, k in ipairs({ 'last', 'title', 'year' }) do "
        "if a[k] then out[#out + 1] = k == 'title' and \"''\" .. a[k] .. \"''\" or a[k] end end "
        "return table.concat(out, ', ') .. '.'", "", "|title=Book|year=1999|last=Doe", "Doe, Book, 1999.",
    ),
    "titles": (
        "local t = mw.title.getCurrentTitle() return t.text .. ':' .. t.namespace .. ':' .. "
        "tostring(mw.title.new('riga').exists) .. tostring(mw.title.new('Template:none').exists)",
        "", "", "Rīga:0:truefalse",
    ),
    "namespaces": (
        "local t = mw.title.new('talk:a b/c') return t.nsText .. t.text .. t.subjectPageTitle.prefixedText "
        ".. mw.site.namespaces.Category.id .. tostring(t:inNamespace('Talk'))", "", "", "TalkA b/cA b/c14true",
    ),
    "templates and functions": (
        "return frame:expandTemplate{ title = 'Zzz bold', args = { 'x' } } .. frame:preprocess('{{lc:ABC}}') "
        ".. frame:callParserFunction('uc', 'def') .. mw.ext.ParserFunctions.expr('1+2')", "", "", "<x>abcDEF3",
    ),
    "split": (
        "local t = mw.text.split('a, b,c', ',%s*') return #t .. table.concat(t, '|') .. #mw.text.split('', ',') "
        ".. table.concat(mw.text.split('āb', ''), '-')", "", "", "3a|b|c1ā-b",
    ),
    "yes and no": (
        "local y = ({ yes = true, ['1'] = true })[mw.ustring.lower(frame.args[1])] return y and 'on' or 'off'",
        "|{{{1}}}", "|YES", "on",
    ),
    "messages": (
        "return mw.message.newRawMessage('$2 of $1', { 'a', 'b' }):plain() "
        ".. mw.message.new('comma-separator'):plain() .. 'c'",
        "", "", "b of a, c",
    ),
    "encoding": (
        "return mw.text.decode(mw.text.encode('<b>')) == '<b>' and mw.uri.encode('a b/ā') "
        ".. mw.text.truncate('ābcdefgh', 2)",
        "", "", "a+b%2F%C4%81āb...",
    ),
    "roman numerals": (
        "local n, out = tonumber(frame.args[1]), '' for _, r in ipairs({ { 10, 'X' }, { 9, 'IX' }, { 5, 'V' }, "
        "{ 4, 'IV' }, { 1, 'I' } }) do while n >= r[1] do out, n = out .. r[2], n - r[1] end end return out",
        "|{{{1}}}", "|29", "XXIX",
    ),
    "no item": (
        "local e = mw.wikibase.getEntityObject() return e and 'item' or 'none'", "", "", "none",
    ),
}  # fmt: skip


DATA = {
    "Data": "return { rows = { { name = 'Riga' }, { name = 'Tallinn' } } }",
    "Data.json": '{"names": ["Riga", "Tallinn"]}',
}


@pytest.mark.parametrize(("body", "given", "use", "expected"), MODULES.values(), ids=MODULES)
def test_a_reader_sees(body: str, given: str, use: str, expected: str) -> None:
    modules = {"M": f"local p = {{}} function p.f(frame) {body} end return p", "Arguments": ARGUMENTS, **DATA}
    templates = {"Zzz run": f"{{{{#invoke:M|f{given}}}}}", "Zzz bold": "&lt;{{{1}}}&gt;"}
    page = parsed(f"({{{{Zzz run{use}}}}})", modules, templates)
    assert "\n".join(element.text for element in page.elements[1:]).replace("\n", "") == f"({expected})"
    assert ("Zzz run", "invoked") in {(found.name, found.outcome) for found in page.templates}


LIBRARY = tomllib.loads((Path(__file__).parents[2] / "golden" / "templates" / "lua.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", LIBRARY, ids=lambda case: case["name"])
def test_library(case: dict[str, str]) -> None:
    modules = {"M": f"local p = {{}} function p.f(frame) {case['lua']} end return p", **DATA}
    modules["Title of frame"] = (
        "return { f = function(frame) return frame:getTitle() .. ' ' .. frame:getParent():getTitle() end }"
    )
    page = parsed("({{Zzz run}})", modules, {"Zzz run": "{{#invoke:M|f}}"})
    assert " ".join(element.text for element in page.elements[1:])[1:-1] == case["says"]


# What the modules of citations ask for when they are loaded, their configuration in globals of its own.
CITATION = """
require('strict')
local p, cfg = {}, nil
local function said(key, values) return mw.message.newRawMessage(cfg.messages[key], values):plain() end
function p.cite(frame)
    cfg = mw.loadData('Module:Cite/Configuration')
    local a, out = frame:getParent().args, {}
    local code = cfg.codes[mw.ustring.lower(a.language or '')] or a.language
    if code and cfg.prefixes[code] then
        out[#out + 1] = said('language', { mw.language.fetchLanguageName(code, 'en'), code })
    end
    out[#out + 1] = said('title', { a.title, cfg.months[tonumber(a.month)], a.year })
    out[#out + 1] = mw.text.listToText({ a.last1, a.last2 })
    return table.concat(out, '; ')
end
return p
"""
CONFIGURATION = """
unset_before, months, codes, prefixes = type(p), {}, {}, {}
local here = mw.getContentLanguage()
for i = 1, 12 do months[i] = here:formatDate('F', '2022-' .. i .. '-1') end
for code, name in pairs(mw.language.fetchLanguageNames(here:getCode(), 'all')) do
    codes[mw.ustring.lower(name)] = code
end
for _, row in pairs(mw.site.interwikiMap('local')) do prefixes[row.prefix] = true end
for _, code in ipairs(mw.language.getFallbacksFor('zh-tw')) do prefixes[code] = true end
local messages = { title = "''$1'' ($2 $3)", language = 'in $1 ($2)' }
return { months = months, codes = codes, prefixes = prefixes, messages = messages }
"""


def test_citations_load_as_on_wikipedia() -> None:
    modules = {"Cite": CITATION, "Cite/Configuration": CONFIGURATION}
    use = "{{Zzz cite|title=Riga|year=1999|month=5|last1=Doe|last2=Roe|language=Latvian}}"
    page = parsed(use, modules, {"Zzz cite": "{{#invoke:Cite|cite}}"})
    assert page.elements[1].text == "in Latvian (lv); Riga (May 1999); Doe and Roe"


def test_what_shows_nothing_is_empty_to_a_choice() -> None:
    modules = {"M": "return { f = function() return nil end }"}
    assert parsed("{{Zzz run}}", modules, {"Zzz run": "a{{#if:{{#invoke:M|f}}|yes|no}}"}).elements[1].text == "ano"


PATTERNS = "a ^a*(.-)%s*$ (a*)(b-)c %b() %f[%w]%w+ [^a-c%d]+ ()b() (.)%1 a?b+ []x] .-$ x*".split()
SUBJECTS = ["", "aabbc", "  trim me  ", "f(a(b)c) d", "THE (quick) fox", "a-c]x9", "bookkeeper", "xxaxx"]


def test_lua_matcher_finds_what_c_finds() -> None:
    patterns = "{" + ",".join(f"[=[{pattern}]=]" for pattern in PATTERNS) + "}"
    subjects = "{" + ",".join(f"[=[{subject}]=]" for subject in SUBJECTS) + "}"
    # A letter beyond ASCII, which may be missing, makes a pattern one for the matcher of code points.
    lua = f"""
    local wrong, n = {{}}, 0
    local function list(...)
        local t = {{...}}
        for i = 1, select('#', ...) do t[i] = tostring(t[i]) end
        return table.concat(t, ';')
    end
    for _, p in ipairs({patterns}) do for _, s in ipairs({subjects}) do
        for _, f in ipairs({{ 'find', 'match', 'gsub' }}) do
            local a = list(string[f](s, p, f == 'gsub' and '<%0>' or nil))
            local b = list(mw.ustring[f](s, (p:gsub('^(%^?)', '%1ā?')), f == 'gsub' and '<%0>' or nil))
            n = n + 1
            if a ~= b then wrong[#wrong + 1] = f .. ' ' .. p .. ' ' .. s .. ' ' .. a .. ' ' .. b end
        end
    end end
    return n .. table.concat(wrong, '  ')
    """
    assert said(lua) == str(len(PATTERNS) * len(SUBJECTS) * 3)


@pytest.mark.parametrize(
    ("lua", "expected"),
    [
        ("return mw.ustring.match('Rīga 2021', '(%a+) (%d+)')", "Rīga2021"),
        ("return mw.ustring.gsub('āb', '.', '(%0)')", "(ā)(b)2"),
        ("return mw.ustring.gsub('ābā', 'ā', { ['ā'] = 'x' }, 1)", "xbā1"),
        (
            "local s = '' for a, b in mw.ustring.gmatch('k=ā, ē=v', '(%w+)=(%w+)') do s = s .. b .. a end return s",
            "ākvē",
        ),
        ("return mw.ustring.find('āāba', 'b(a)')", "34a"),
        ("return mw.ustring.match('Ērgļi', '^%u%l+$')", "Ērgļi"),
        ("return mw.ustring.format('%-4s|%3d', 'āb', 7)", "āb |7"),
        ("return mw.ustring.char(257, 98) .. mw.ustring.codepoint('ā')", "āb257"),
        ("return mw.ustring.sub('ābcdē', -2) .. mw.ustring.sub('ābcdē', 2, 3)", "dēbc"),
    ],
)
def test_code_points(lua: str, expected: str) -> None:
    assert " ".join(said(lua).split()).replace("| 7", "|7") == expected


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
    "questions": "while true do local a, b = mw.title.new('x').exists, mw.title.new('Module:M').exists end",
    "case folding": "local s = ('ā'):rep(1e5) while true do mw.ustring.upper(s) end",
    "character references": "local s = ('&amp;'):rep(1e5) while true do mw.text.decode(s) end",
    "a large result": "return ('x'):rep(3e6)",
    "normal form of a bomb": "local s = ('\\239\\183\\186'):rep(6e5) while true do pcall(mw.ustring.toNFKD, s) end",
    "normal form of marks": "local s = ('\\204\\129\\204\\163'):rep(4e5) while true do pcall(mw.ustring.toNFC, s) end",
    "a title of marks": "local s = ('\\204\\129\\204\\163'):rep(4e5) while true do pcall(mw.title.new, s) end",
    "a huge form of dates": "local s = ('%c'):rep(1e6) while true do os.date(s) end",
    "a huge form of moments": "local s, l = ('r'):rep(1e6), mw.getContentLanguage() "
    "while true do l:formatDate(s, '2009-02-14') end",
    "a huge moment": "local s, l = ('1 '):rep(1e6), mw.getContentLanguage() "
    "while true do pcall(l.formatDate, l, 'Y', s) end",
    "a huge number": "while true do frame:callParserFunction('formatnum', ('1'):rep(1e6)) end",
    "a huge formatted number": "local s, l = ('1,'):rep(1e6), mw.getContentLanguage() "
    "while true do l:parseFormattedNumber(s) end",
    "sorting two long strings": "local s = ('x'):rep(4e6) local a, b, t = s .. 'y', s .. 'z', {} "
    "for i = 1, 1000 do t[i] = i % 2 == 0 and a or b end while true do table.sort(t) t[1], t[500] = t[500], t[1] end",
    "comparing two long strings": "local s = ('x'):rep(4e6) local a, b = s .. 'y', s .. 'z' "
    "while true do local c = a < b end",
    "sums of long digits": "local s = ('1'):rep(4e6) while true do local c = s + 1 end",
    "sums of many digits": "local s = ('1'):rep(1e3) while true do local c = s + 1 end",
    "sums of blanks": "local t = { (' '):rep(4e6) .. '1' } while true do local c = t[1] + 1 end",
    "numbers of long digits": "local s = ('1'):rep(4e6) while true do tonumber(s) math.floor(s) end",
    "joining again": "local s = ('x'):rep(4e6) local t = s .. 'y' while true do local c = s .. 'y' end",
    "letters turned": "local s = ('x'):rep(1e6) while true do s:upper() s:reverse(); ('%q'):format(s) end",
    "long separators": "local t, s = {}, ('x'):rep(4e3) for i = 1, 1000 do t[i] = '' end "
    "while true do table.concat(t, s) end",
    "braces": "while true do frame:preprocess(('{{'):rep(2e5) .. ('}}'):rep(2e5)) end",
    "braces in a row": "while true do frame:preprocess(('{'):rep(1e6)) end",
    "expressions": "while true do frame:callParserFunction('#expr', ('1+'):rep(900) .. '1') end",
    "large expressions": "while true do frame:callParserFunction('#expr', ('trunc 9e18*'):rep(900) .. '1') end",
    "made up marks": "local s = ('\\0'):rep(1e6) while true do frame:preprocess(s) end",
    "loaded loops": "package.loaded.x = setmetatable({}, {__index = function() while true do end end}) "
    "return require('x').x",
    "packages that are a loop": "setmetatable(package.loaded, {__newindex = function() while true do end end}) "
    "return require('libraryUtil') and require('Module:M')",
    "arguments without end": "return frame:callParserFunction('#tag:nowiki', setmetatable({'a'}, {__pairs = function() "
    "local n = 0 return function() n = n + 1 return n, 'x' end end}))",
    "tags in tags": "local s = 'x' for i = 1, 100 do s = frame:extensionTag('nowiki', s .. s) end return s",
    "tags": "while true do frame:preprocess(('<b>'):rep(3e5)) end",
    "references": "while true do frame:preprocess(('<ref>'):rep(2e5)) end",
    "modules that are not there": "local n = 0 while true do n = n + 1 pcall(require, 'Module:X' .. n) end",
    "long names of modules": "local s, n = 'Module:' .. ('x'):rep(1e6), 0 "
    "while true do n = n + 1 pcall(require, s .. n) end",
    "what is no number of charges": "table.insert({}, 0 / 0, 1) while true do end",
}


@pytest.mark.slow
@pytest.mark.parametrize("lua", HOSTILE.values(), ids=HOSTILE)
def test_hostile_module_costs_its_page_and_no_more(lua: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lua_modules, "MAX_SECONDS", math.inf)  # so that no clock decides
    module = f"local p = {{}}\nfunction p.f(frame)\n{lua}\nend\nfunction p.g() return 'fine' end\nreturn p"
    templates = {"Zzz run": "{{#invoke:M|f}}", "Zzz fine": "{{#invoke:M|g}}"}
    page = parsed("before {{Zzz run}} after", {"M": module}, templates)
    assert [element.text for element in page.elements[1:]] == ["before after"]
    assert [use.outcome for use in page.templates] == ["limit_exceeded"]
    assert parsed("{{Zzz fine}}", {"M": module}, templates).elements[1].text == "fine"


BEYOND = [
    "unpack({}, 0, 2^31-1)",
    "unpack({}, -2^31, 2^31-1)",
    "unpack({}, 1, 2^53)",
    "unpack({}, 0 / 0)",
    "table.concat({}, '', 1, 2^31-1)",
    "table.concat({}, '', -2^31, 2^31-1)",
    "select(2^31, 1)",
    "select(-2^31, 1)",
    "('x'):rep(1e4):byte(1, 2^31-1)",
    "mw.ustring.codepoint(('ā'):rep(1e4), 1, -1)",
    "('%99999999d'):format(1)",
    "string.char(2^31)",
]


def test_a_count_beyond_all_bounds_is_an_error() -> None:
    script = (
        "from tests.support.wikitexts import outcome\n"
        f"for lua in {BEYOND!r}: print(lua, outcome('return ' + lua), flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[3], timeout=60
    )
    assert done.stdout.splitlines() == [f"{lua} unknown" for lua in BEYOND], done.stderr  # up to what ended it
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("lua", "expected"),
    [
        ("mw.ustring.len({})", "bad argument #1 to 'len' (string expected, got table)"),
        ("mw.ustring.sub('ā', {})", "bad argument to 'sub' (string or number expected, got table)"),
        ("mw.ustring.sub('ā', true)", "bad argument to 'sub' (number expected, got boolean)"),
        ("mw.ustring.sub('ā', 0 / 0)", "bad argument to 'sub' (number expected, got nan)"),
        ("mw.ustring.sub('ā', ('1'):rep(5000))", "bad argument to 'sub' (number expected, got string)"),
        ("mw.ustring.toNFC(('x'):rep(3e6))", "bad argument to 'normalise' (string of more than 2097152 bytes)"),
        ("os.date('%c', tostring)", "bad argument to 'date' (string or number expected, got function)"),
        ("os.date({}, 1)", "attempt to call method 'sub' (a nil value)"),
    ],
)
def test_values_of_the_wrong_kind_are_errors_of_lua(lua: str, expected: str) -> None:
    assert said(f"local ok, problem = pcall(function() return {lua} end) return tostring(problem)").endswith(expected)


def test_numbers_of_arguments_may_be_of_any_length() -> None:
    lua = (
        "return frame:expandTemplate{ title = 'Zzz run', args = { [('9'):rep(5000)] = 'a', [('1'):rep(5000)] = 'b' } }"
    )
    assert outcome(lua) == "limit_exceeded"  # of a template that uses itself


@pytest.mark.parametrize("code", range(32))
def test_no_module_forges_marks(code: int) -> None:
    behind = ("", "T99", "I99", "F\\n", "9", "\\n", "[[a]]")
    forged = [f"'{before}\\{code:03d}{suffix}b \\{code:03d}'" for suffix in behind for before in ("", "\\n", "a")]
    module = f"local s = {{ {','.join(forged)} }} return {{ f = function(frame) return s[frame.args[1] + 0] end }}"
    uses = "\n\n".join(f"({{{{Zzz run|{number}}}}})" for number in range(1, len(forged) + 1))
    page = parsed(uses, {"M": module}, {"Zzz run": "{{#invoke:M|f|{{{1}}}}}"})
    check_laws(page)
    assert page.templates == (TemplateUse("Zzz run", "invoked", len(forged)),)


@pytest.mark.parametrize("code", [*range(1, 9), *range(14, 32), 0xFFFE, 0xFFFF])
def test_what_xml_forbids_in_the_output_of_a_module_is_a_replacement_character(code: int) -> None:
    bytes_of = "".join(f"\\{byte:03d}" for byte in chr(code).encode())
    assert said(f"return 'a{bytes_of}b'") == "a\ufffdb"


# Calls of everything that a module reaches, chosen by numbers, with values of every kind. What takes them may refuse
# them, in Lua.
_REACHED = r"""
local functions, known = {}, {}
local function find(t)
    if type(t) ~= 'table' or known[t] then return end
    known[t] = true
    local keys = {}
    for key in pairs(t) do keys[#keys + 1] = type(key) == 'string' and key or nil end
    table.sort(keys)
    for _, key in ipairs(keys) do
        if type(t[key]) == 'function' then functions[#functions + 1] = t[key] else find(t[key]) end
    end
    find(getmetatable(t))
end
for part in ('text uri html title site wikibase language message ustring hash'):gmatch('%a+') do
    part = mw[part] -- loads it
end
local title, language = mw.title.new('Talk:a/b#c'), mw.language.new('ru')
find(_G) find(frame) find(language) find(mw.html.create('b')) find(title) find(mw.message.new('and'))
for _, name in ipairs({ 'getContent', 'fullUrl', 'inNamespace', 'inNamespaces', 'isSubpageOf', 'subPageTitle' }) do
    functions[#functions + 1] = title[name]
end
local odd = setmetatable({}, { __index = function(_, key) return key end, __tostring = function() return 5 end })
local values = { false, true, 0, -1, 1.5, 2^31, -2^31, 2^53, 1e308, 1/0, -1/0, 0/0, '', 'x', 'āb', '\255', '\0', '5',
    ('9'):rep(5000), ('x'):rep(1e5), ('{'):rep(2e4), ('&#9'):rep(5e3), '&#' .. ('9'):rep(5000) .. ';', '%', '[', '%1',
    '*t', 'Talk:x', 'Module:M', 'de', 'NFC', {}, { 1, 2, 'x' }, { {} }, { [1e9] = 1 }, { title = 'x', args = { {} } },
    { name = '#if', args = { 1 } }, odd, tostring, function() return {} end, coroutine.create(find), frame, title,
    language, mw.html.create('b'), { text = {} }, { name = {}, args = 5 }, mw.message.new('x') }
for _, call in ipairs(CALLS) do
    local given = {}
    for i = 2, #call do given[i - 1] = values[call[i] % (#values + 1)] end
    pcall(functions[call[1] % #functions + 1], unpack(given, 1, #call - 1))
end
return #functions
"""


@settings(max_examples=60, deadline=None)
@given(calls=st.lists(st.lists(st.integers(0, 9999), min_size=1, max_size=5), min_size=1, max_size=20))
def test_nothing_that_is_given_is_an_error_of_python(calls: list[list[int]]) -> None:
    written = ", ".join("{" + ", ".join(map(str, call)) + "}" for call in calls)
    page = run(_REACHED.replace("CALLS", "{" + written + "}"))
    assert page.templates[0].outcome in ("invoked", "limit_exceeded", "unknown")
    assert page.templates[0].outcome != "invoked" or int(page.elements[1].text[1:-1]) > 200


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
        "return require('io')",
    ],
)
def test_an_error_leaves_a_gap(lua: str) -> None:
    assert outcome(lua) == "unknown"


def test_recursion_that_is_caught_goes_on() -> None:
    assert said("local function f() return f() + 1 end return pcall(f) and 'yes' or 'no'") == "no"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "io",
            "debug",
            "package.loadlib",
            "package.loaders",
            "module",
            "load",
            "loadstring",
            "loadfile",
            "dofile",
            "collectgarbage",
            "gcinfo",
        ),
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
from tests.support.wikitexts import said
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
            cwd=Path(__file__).parents[3],
        )
        seen.add(done.stdout)
    assert len(seen) == 1
    assert "k15838" in seen.pop()


TITLES = "local p = {} function p.f(frame) local q = frame:getParent() return frame:getTitle() .. '/' .. q:getTitle() "
TITLES += ".. '/' .. tostring(q.args[1]) .. tostring(q:getParent()) end return p"


def test_frames_have_the_wikis_own_names() -> None:
    german = replace(SITE, lang="de", namespaces={**SITE.namespaces, 10: "Vorlage", 828: "Modul"})
    page = parsed(
        "{{zzz_run|x}}; {{#invoke:titles|f}}", {"Titles": TITLES}, {"Zzz run": "{{#invoke:titles|f}}"}, site=german
    )
    assert page.elements[1].text == "Modul:Titles/Vorlage:Zzz run/xnil; Modul:Titles/Rīga/nilnil"


def test_the_parent_of_a_direct_call_is_the_page_it_stands_on() -> None:
    definitions = Dictionary({}, {"Titles": TITLES})
    parser = WikitextParser(SITE, definitions=definitions, invoke=LuaModules(definitions, SITE))
    for title in ("Riga", "Talk:Riga"):
        shown = parser.parse("{{#invoke:titles|f|x}}", title=title).elements[1].text
        assert shown == f"Module:Titles/{title}/nilnil"


def test_modules_of_data_see_a_frame_without_arguments_and_parent() -> None:
    data = "local f = mw.getCurrentFrame() return { f.args[1] or 'none', tostring(f:getParent()), f:getTitle() }"
    module = "return { f = function() local d = mw.loadData('Module:D') return d[1] .. d[2] .. d[3] end }"
    assert parsed("{{#invoke:M|f|x}}", {"D": data, "M": module}).elements[1].text == "nonenilRīga"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("return 1", "Module:D returned number, table expected"),
        ("return { a = { function() end } }", "data for mw.loadData contains unsupported data type 'function'"),
        ("return { [print or tostring] = 1 }", "data for mw.loadData contains unsupported data type 'function'"),
        ("return { setmetatable({}, {}) }", "data for mw.loadData contains a table with a metatable"),
        ("return setmetatable({}, { __index = {} })", "data for mw.loadData contains a table with a metatable"),
        ("return { [{}] = 1, a = 2 }", "data for mw.loadData contains a table as a key"),
        ("local t = { 1 } t.t = t return t", "none"),
    ],
)
def test_data_is_plain(data: str, problem: str) -> None:
    module = """return { f = function()
        local ok, problem = pcall(mw.loadData, 'Module:D')
        local again, same = pcall(mw.loadData, 'Module:D')
        return ok and 'none' or problem == same and problem:gsub('^%S+:%d+: ', '') or 'another'
    end }"""
    assert parsed("{{#invoke:M|f}}", {"D": data, "M": module}).elements[1].text.removesuffix("0") == problem


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("return require [[Module:Data]]", "trueModule:Data"),
        ("return require [[Module:Data]]\n", "trueModule:Data"),
        ("return require('Module:Data')", "falsefalse"),
        ("return require [[Template:Data]]", "falsefalse"),
        ("return require [[Module:Data]] or 1", "falsefalse"),
        ("local a = 1 return require [[Module:Data]]", "falsefalse"),
    ],
)
def test_modules_that_are_redirects(source: str, shown: str) -> None:
    lua = "local t = mw.title.new('Module:R') return tostring(t.isRedirect) .. tostring(t.redirectTarget)"
    page = parsed("{{#invoke:M|f}}", {"M": f"return {{ f = function() {lua} end }}", "R": source, "Data": "return {}"})
    assert page.elements[1].text == shown


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        pytest.param(r"return 'a\0b'", "a�b", id="a pipe"),
        pytest.param(r"return 'a\5b\1\2\3\4\6\7'", "a�b������", id="other marks of structure"),
        pytest.param(r"return '\14\14x\15\15 \26\27\31'", "��x�� ���", id="literal characters"),
        pytest.param(r"return 'a\r\nb\rc'", "a b c", id="line breaks"),
        pytest.param("return 'a\\204\\132' .. '\\255'", "ā�", id="normal form"),
        pytest.param(r"return frame:preprocess('a\0b<nowiki>[[c]]</nowiki>\2')", "a�b[[c]]�", id="wikitext"),
        pytest.param(
            r"return frame:expandTemplate{ title = 'Zzz both', args = { 'a\0b', '\28' } }", "a�b-�", id="arguments"
        ),
        pytest.param("return frame:preprocess(frame.args[1])", "[[x]] {{y}} z", id="what was literal stays so"),
        pytest.param("return frame.args[1] .. '|\\0'", "[[x]] {{y}} z|�", id="what was given may be returned"),
        pytest.param("return frame.args[2]", "", id="places of boxes"),
    ],
)
def test_no_module_makes_up_marks(call: str, shown: str) -> None:
    page = parsed(
        "({{#invoke:M|f|<nowiki>[[x]] {{y}}</nowiki> [[z]]|{{Infobox x|a=b}}}})",
        {"M": f"return {{ f = function(frame) {call} end }}"},
        {"Zzz both": "{{{1}}}-{{{2}}}"},
    )
    check_laws(page)
    assert " ".join(element.text for element in page.elements[1:]).strip("() ") == shown


# Writes to every table that can be reached, and counts what another run wrote.
TAMPER = """
local p = {}
local function visit(f)
    local seen = {}
    local function reach(t)
        if type(t) ~= 'table' or seen[t] then return end
        seen[t] = true
        f(t)
        reach(getmetatable(t))
        for k, v in pairs(t) do reach(k) reach(v) end
    end
    local lang, frame = mw.getContentLanguage(), mw.getCurrentFrame()
    local data = mw.loadData('Module:Data')
    local libraries = { mw.ustring, mw.text, mw.uri, mw.html, mw.title, mw.site, mw.wikibase, mw.language, mw.message,
        mw.hash, mw.svg }
    local objects = { mw.title.new('x'), lang, mw.html.create('b'), mw.message.newRawMessage('x'), mw.uri.new('//a'),
        frame, data, frame:getParent(), mw.svg.new(), require('libraryUtil'), require('bit32'), package,
        mw.site.namespaces[0] }
    for _, t in ipairs({ _G, libraries, objects }) do reach(t) end
end
function p.write()
    visit(function(t) pcall(rawset, t, 'tampered', 1) end)
    function string.upper() return 'tampered' end
    mw.text.trim, mw.ustring.len, tostring = string.upper, string.upper, string.upper
    math.randomseed(5)
    local n = 0
    visit(function(t) n = n + (rawget(t, 'tampered') or 0) end)
    return (n > 60 and 'written' or 'not written') .. math.random(99)
end
function p.read()
    local n = 0
    visit(function(t) n = n + (rawget(t, 'tampered') or 0) end)
    return n .. ('a'):upper() .. mw.text.trim(' b ') .. mw.ustring.len('cd') .. tostring(true) .. math.random(99)
end
return p
"""


def test_what_a_module_writes_is_not_there_in_the_next_run() -> None:
    templates = {f"Zzz {name}": f"{{{{#invoke:Tamper|{name}}}}}" for name in ("write", "read")}
    modules = {**DATA, "Tamper": TAMPER}
    page = parsed("{{zzz read}}. {{zzz write}}. {{zzz read|2}}.", modules, templates)
    first, written, second, _ = page.elements[1].text.split(".")
    assert first == second.strip() == "0Ab2true1"
    assert written == " written1"


def _output_and_cost(invoke: LuaModules, wiki: Expander, name: str) -> tuple[str | None, int]:
    """Returns the output of a module's function ``f``, and the units that it costs."""
    page = PageExpander(wiki, PageFacts("en", "Rīga", "2021-03-05T12:30:00Z", SITE))
    frame = Frame(page, f"Module:{name}", arguments={"1": "12"}, parent=Frame(page, "Template:X"))
    return invoke(name, "f", frame), page.work


LEFT_BEHIND = {
    "a coroutine": "local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c) return 'x'",
    "deep recursion": "local function d(n) return n > 0 and d(n - 1) + 1 or 0 end return d(9000)",
    "a long string": "local s = ('x'):rep(1e5) return #(s .. 'y')",
    "many strings": "local t = {} for i = 1, 2e4 do t[i] = 's' .. i end return #t",
    "many values": "return select('#', unpack({}, 1, 700))",
    "much memory": "local t = {} for i = 1, 1e5 do t[i] = { i } end return #t",
    "an error": "error('x')",
    "an endless loop": "while true do end",
    "a nested run": "return frame:preprocess('{{#invoke:Plain|f}}')",
    "a plain run": "return mw.text.trim(' x ') .. frame.args[1]",
}


def test_a_run_costs_the_same_whatever_ran_before() -> None:
    heads = {
        name.title(): f"local p = {{}} function p.f(frame) {lua} end return p" for name, lua in LEFT_BEHIND.items()
    }
    heads["Plain"] = "return { f = function() local t = {} for i = 1, 3000 do t[i] = 'k' .. i end return #t end }"
    definitions = Dictionary({}, heads)

    def fresh() -> tuple[LuaModules, Expander]:
        invoke = LuaModules(definitions, SITE)
        return invoke, Expander(definitions, SITE, find_rule("en"), invoke=invoke)

    def outcome_of(invoke: LuaModules, wiki: Expander, name: str) -> object:
        try:
            return _output_and_cost(invoke, wiki, name)
        except BoundError as error:
            return str(error)

    alone = {name: outcome_of(*fresh(), name) for name in heads}
    kept = fresh()
    for names in (list(heads), list(reversed(heads))):
        for name in names:
            assert outcome_of(*kept, name) == alone[name], name
            assert outcome_of(*kept, "Plain") == alone["Plain"], name


def test_a_state_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    new_state = lua_modules._new_state
    monkeypatch.setattr(lua_modules, "_new_state", lambda: made.append(None) or new_state())
    bodies = (
        "mw.text.trim(' x ')",
        "mw.title.getCurrentTitle().text",
        "mw.html.create('b')",
        "mw.loadData('Module:Data').rows[2].name",
    )
    modules = {f"M{n}": f"return {{ f = function() return tostring({body}) end }}" for n, body in enumerate(bodies)}
    page = parsed("".join(f"{{{{#invoke:M{n}|f}}}} " for n in range(len(bodies))) * 5, {**DATA, **modules})
    assert page.elements[1].text == "x Rīga Tallinn " * 4 + "x Rīga Tallinn"
    assert len(made) == 2, "one for the compiler, one for all runs"
