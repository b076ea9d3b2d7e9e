"""Runs the Lua suites of a checkout of MediaWiki's Scribunto against the library of modules, and counts what passes.

``python -m tests.support.lua_suites CHECKOUT [SUITE ...] [--show]`` takes the folder of the checkout. A case passes
when the text that the suite makes of its results equals the text that it expects. ``--show`` prints those that fail.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kbsource.site import CANONICAL_NAMESPACES, Site
from kbsource.wikitext import expander, lua_modules
from kbsource.wikitext.expander import BoundError, Expander, Frame, PageExpander
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.lua_modules import LuaModules
from kbsource.wikitext.templates import find_rule
from tests.support.wikitexts import Dictionary

SUITES = Path("tests/phpunit/Engines/LuaCommon")
TITLE = "Main Page"
# The wiki that the suites are written for.
SITE = Site(
    lang="en",
    name="TestWiki",
    base_url="http://wiki.local/wiki/Main_Page",
    namespaces={
        **{number: names[0] for number, names in CANONICAL_NAMESPACES.items()},
        4: "Project", 5: "Project talk", 100: "Test", 101: "Test talk", 828: "Module", 829: "Module talk",
    },
)  # fmt: skip
# What the tests of Scribunto set up for their suites: a page's number, markers of extension tags, an own prefix.
RUNNER = r"""
local p = {}
local frame = mw.getCurrentFrame()
mw.title.testPageId = 7
mw.makeProtectedEnvFuncsForTest = mw.makeProtectedEnvFuncs
mw.text.stripTest = {
    nowiki = frame:preprocess('<nowiki>NoWiki</nowiki>'),
    general = frame:preprocess('<gallery>General</gallery>'),
    ppnowiki = frame:preprocess('<nowiki>&lt;nowiki>PP-NoWiki&lt;/nowiki></nowiki>'),
}
mw.html.stripMarkers = { nowiki = frame:preprocess('<nowiki>test</nowiki>') }
function p.count(frame)
    return require('Module:' .. frame.args[1]).count or 'no cases'
end
function p.run(frame)
    local suite, number = require('Module:' .. frame.args[1]), tonumber(frame.args[2])
    local _, name, expected = suite.provide(number)
    local is_run, shown = pcall(suite.run, number)
    shown = tostring(shown)
    if shown:find('SKIP: ', 1, true) then
        return 'skipped\n' .. name
    elseif is_run and shown == expected then
        return 'passed\n' .. name
    end
    return 'failed\n' .. name .. '\n  expected ' .. expected .. '\n  got ' .. shown
end
return p
"""


class CaseResult(NamedTuple):
    """What came of one case."""

    suite: str
    name: str
    outcome: str  #: ``passed``, ``failed`` or ``skipped``
    detail: str  #: expected and actual result of a case that failed


def run_suites(checkout: Path, names: list[str]) -> Iterator[CaseResult]:
    """Yields the result of each case of the named suites, of all suites where none is named."""
    folder = checkout / SUITES
    modules = {path.stem: path.read_text("utf-8") for path in folder.glob("*.lua")}
    modules |= {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
    modules["Suite runner"] = RUNNER
    definitions = Dictionary({}, modules)
    exists = {TITLE, "ScribuntoTestPage", "ScribuntoTestRedirect", "ScribuntoTestNonRedirect"}.__contains__
    invoke = LuaModules(definitions, SITE, exists)
    wiki = Expander(definitions, SITE, find_rule("en"), invoke=invoke, exists=exists)

    # As the suites set it up: ten expensive calls on a page, and a prefix of another wiki.
    expander.MAX_LOOK_UPS = 10
    prefixes = {**lua_modules._interwiki(SITE.edition), "interwikiprefix": "https://test.wikipedia.org/wiki/$1"}
    lua_modules._interwiki = lambda edition: prefixes
    lua_modules._is_of_wikimedia = lambda url: "test.wikipedia.org" not in url and "GoToInterwiki" not in url

    def call(function: str, *arguments: str) -> str:
        page = PageExpander(wiki, PageFacts("en", TITLE, "2021-03-05T12:30:00Z", SITE, exists))
        numbered = {str(number): value for number, value in enumerate(arguments, start=1)}
        parent = Frame(page)
        frame = Frame(page, "Module:Suite runner", arguments={**numbered}, parent=parent)
        try:
            shown = invoke("Suite runner", function, frame)
        except BoundError as error:
            return f"failed\n{arguments[-1]}\n  over the limit of {error}"
        return f"failed\n{arguments[-1]}\n  does not run" if shown is None else shown

    for suite in names or sorted(name for name in modules if name.endswith("Tests")):
        written = call("count", suite)
        if written == "no cases":  # a module that another test of Scribunto uses
            continue
        if not written.isdecimal():
            yield CaseResult(suite, "(does not load)", "failed", "")
            continue
        for number in range(1, int(written) + 1):
            outcome, _, rest = call("run", suite, str(number)).partition("\n")
            name, _, detail = rest.partition("\n")
            yield CaseResult(suite, name, outcome, detail)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--show", action="store_true", help="print the cases that fail")
    options = parser.parse_intermixed_args()
    results = list(run_suites(options.checkout, options.suites))
    lines = []
    if options.show:
        failed = (result for result in results if result.outcome != "passed")
        lines += [f"{result.outcome}: {result.suite}: {result.name}\n{result.detail}" for result in failed]
    for suite in dict.fromkeys(result.suite for result in results):
        outcomes = [result.outcome for result in results if result.suite == suite]
        lines.append(f"{suite}: {outcomes.count('passed')} of {len(outcomes)}")
    lines.append(f"{sum(result.outcome == 'passed' for result in results)} of {len(results)} cases pass")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
