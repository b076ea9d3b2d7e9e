"""Modules after the families that real wikis have, each with what a reader sees."""

from __future__ import annotations

import pytest

pytest.importorskip("lupa")

from tests.support.lua import parsed

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
        "return mw.message.newRawMessage('$2 of $1', 'a', 'b'):plain() "
        ".. mw.message.new('comma-separator'):plain() .. 'c'",
        "", "", "b of a, c",
    ),
    "encoding": (
        "return mw.text.decode(mw.text.encode('<b>')) == '<b>' and mw.uri.encode('a b/ā') "
        ".. mw.text.truncate('ābcd', 2)",
        "", "", "a+b%2F%C4%81āb…",
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


@pytest.mark.parametrize(("body", "given", "use", "expected"), MODULES.values(), ids=MODULES)
def test_a_reader_sees(body: str, given: str, use: str, expected: str) -> None:
    modules = {
        "M": f"local p = {{}} function p.f(frame) {body} end return p",
        "Arguments": ARGUMENTS,
        "Data": "return { rows = { { name = 'Riga' }, { name = 'Tallinn' } } }",
    }
    templates = {"Zzz run": f"{{{{#invoke:M|f{given}}}}}", "Zzz bold": "&lt;{{{1}}}&gt;"}
    page = parsed(f"({{{{Zzz run{use}}}}})", modules, templates)
    assert "\n".join(element.text for element in page.elements[1:]).replace("\n", "") == f"({expected})"
    assert ("Zzz run", "invoked") in {(found.name, found.outcome) for found in page.templates}
