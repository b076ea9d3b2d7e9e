"""What a page of wikitext says, with definitions of templates and Lua modules in dictionaries; invariants of pages."""

from __future__ import annotations

from collections.abc import Mapping

from kbsource.records import Element
from kbsource.site import Site
from kbsource.wikitext.lua_modules import LuaModules
from kbsource.wikitext.markers import ANY_CONTROL
from kbsource.wikitext.parse import ParsedText, WikitextParser


def shown(element: Element) -> str:
    """An element as golden files have it: ``h2 Name``, ``#3 item``, ``p text``."""
    if element.kind == "heading":
        return f"h{element.level} {element.text}"
    if element.kind == "list_item":
        return f"{element.marker}{'' if element.ordinal is None else element.ordinal} {element.text}"
    return f"p {element.text}"


def check_laws(parsed: ParsedText) -> None:
    """What holds for every wikitext: offsets, and no leaks of working marks."""
    for anchor in parsed.anchors:
        assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text
        assert anchor.text == anchor.text.strip() != ""
        assert not ANY_CONTROL.search(anchor.written_target)
    for element in parsed.elements[1:]:
        assert element.text == element.text.strip() != ""
        assert "\n" not in element.text
        assert "  " not in element.text
        assert not ANY_CONTROL.search(element.text)
    contents = [cell for table in parsed.tables for row in table.rows for cell in row]
    contents += [field for infobox in parsed.infoboxes for field in infobox.fields]
    for content in contents:
        assert not ANY_CONTROL.search(content.text)
        assert all(0 <= link.start < link.end <= len(content.text) for link in content.links)


class Dictionary:
    """Definitions and targets of redirects by name; counts how often each definition was asked for."""

    def __init__(
        self,
        templates: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        redirects: Mapping[str, str] | None = None,
    ) -> None:
        self._templates = templates
        self._modules = modules or {}
        self._redirects = redirects or {}
        self.asked: list[str] = []

    def source(self, name: str) -> str | None:
        self.asked.append(name)
        return self._templates.get(self.target(name))

    def target(self, name: str) -> str:
        return self._redirects.get(name, name)

    def module(self, name: str) -> str | None:
        return self._modules.get(name)


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
    """What a page of this wikitext says; its revision is of 5 March 2021, 12:30 UTC."""
    definitions = Dictionary(templates or {}, modules)
    parser = WikitextParser(
        site, definitions=definitions, invoke=LuaModules(definitions, site, {"Riga", "Tallinn"}.__contains__)
    )
    return parser.parse(wikitext, title=title, timestamp="2021-03-05T12:30:00Z")


def said(lua: str) -> str:
    """What a reader sees of what these lines of Lua return, run with ``frame`` in a module."""
    return "\n".join(element.text for element in run(lua).elements[1:])[1:-1]


def outcome(lua: str) -> str:
    """How a template settled that runs these lines."""
    return run(lua).templates[0].outcome


def run(lua: str) -> ParsedText:
    """A page with a template in brackets that runs these lines."""
    module = f"local p = {{}}\nfunction p.f(frame)\n{lua}\nend\nreturn p"
    return parsed("({{Zzz run}})", {"M": module}, {"Zzz run": "{{#invoke:M|f}}"})
