"""Pages on which Lua modules run."""

from __future__ import annotations

from collections.abc import Mapping

from kbsource.site import Site
from kbsource.wikitext.lua.runtime import make_invoke
from kbsource.wikitext.parse import ParsedText, WikitextParser
from tests.support.definitions import Dictionary

SITE = Site(
    lang="en",
    name="Wikipedia",
    namespaces={0: "", 1: "Talk", 2: "User", 3: "User talk", 10: "Template", 14: "Category", 828: "Module"},
)


def parsed(
    wikitext: str,
    modules: Mapping[str, str],
    templates: Mapping[str, str] | None = None,
    *,
    title: str = "Rīga",
    site: Site = SITE,
) -> ParsedText:
    """Gives what a page of this wikitext says; its revision is of 5 March 2021, 12:30 UTC."""
    definitions = Dictionary(templates or {}, modules)
    parser = WikitextParser(
        site, definitions=definitions, invoke=make_invoke(definitions, site, {"Riga", "Tallinn"}.__contains__)
    )
    return parser.parse(wikitext, title=title, timestamp="2021-03-05T12:30:00Z")


def said(lua: str) -> str:
    """Gives what a reader sees of what these lines of Lua return, run with ``frame`` in a module."""
    module = f"local p = {{}}\nfunction p.f(frame)\n{lua}\nend\nreturn p"
    page = parsed("({{Zzz run}})", {"M": module}, {"Zzz run": "{{#invoke:M|f}}"})
    text = "\n".join(element.text for element in page.elements[1:])
    return text[1:-1]


def outcome(lua: str) -> str:
    """Gives how a template settled that runs these lines."""
    module = f"local p = {{}}\nfunction p.f(frame)\n{lua}\nend\nreturn p"
    return parsed("({{Zzz run}})", {"M": module}, {"Zzz run": "{{#invoke:M|f}}"}).templates[0].outcome
