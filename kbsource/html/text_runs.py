"""Finds out, from the rendered HTML, which template each part of a page's running text comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lxml import etree

from kbsource.html.elements import json_object, template_parts
from kbsource.html.notes import call_of
from kbsource.html.reading import HtmlReader, PageWalk, main_element, parse_html
from kbsource.site import Site
from kbsource.wikitext.page_builder import PageBuilder
from kbsource.wikitext.parse import ParsedText
from kbsource.wikitext.templates import normalise_template_name


class TextRun(NamedTuple):
    """A part of a page's running text. A newline in it ends a line."""

    text: str
    template: str  #: name of the template that produced the text; empty if it is in the page's own wikitext
    group: str  #: name of the group of elements that the template made; empty if ``template`` is empty


class HtmlRunReader:
    """Reads a wiki's rendered pages like ``HtmlReader``, and finds the templates of their text. It holds caches; create
    one per process.
    """

    def __init__(self, site: Site) -> None:
        self._lang = site.lang
        self._reader = HtmlReader(site)

    def parse(self, html: str, *, title: str) -> tuple[ParsedText, list[TextRun]]:
        """Returns the content of a page, and its running text as runs.

        Raises:
            RecordError: as for ``HtmlReader.parse``.
        """
        page = self._walked(parse_html(html), title)
        return page.content(), page.runs

    def calls(self, html: str, *, title: str) -> Iterator[tuple[str, str, str]]:
        """Yields the name, the use as written and the visible text of each template in the running text. Skips
        templates inside others, and templates that produce a part of the page together with others.

        Raises:
            RecordError: as for ``HtmlReader.parse``.
        """
        root = parse_html(html)
        texts: dict[str, list[str]] = {}
        last: list[str] = []
        for run in self._walked(root, title).runs:
            if run.group:
                last = texts.setdefault(run.group, [])
            if run.group or run.text == "\n":
                last.append(run.text)
        for element in root.iterfind(".//*[@data-mw]"):
            group = element.get("about") or ""
            if group not in texts or "mw:Transclusion" not in (element.get("typeof") or ""):
                continue
            data = json_object(element.get("data-mw"))
            uses = [*template_parts(data)]
            if len(uses) == 1 and len(data["parts"]) == 1 and (name := normalise_template_name(uses[0][0], self._lang)):
                yield name, f"{{{{{call_of(*uses[0])}}}}}", "".join(texts.pop(group))

    def _walked(self, root: etree._Element, title: str) -> _TracedWalk:
        page = _TracedWalk(self._reader, title, root, _call_names(root, self._lang))
        page.walk(main_element(root))
        return page


def _call_names(root: etree._Element, lang: str) -> dict[str, str]:
    """Returns the name of the first template or parser function (``#if:``) of each group of elements."""
    names: dict[str, str] = {}
    for element in root.iterfind(".//*[@data-mw]"):
        group = element.get("about") or ""
        if not group or group in names or "mw:Transclusion" not in (element.get("typeof") or ""):
            continue
        data = json_object(element.get("data-mw"))
        found = [name for written, _ in template_parts(data) if (name := normalise_template_name(written, lang))]
        names[group] = found[0] if found else _function_of(data.get("parts"))
    return names


def _function_of(parts: object) -> str:
    for part in parts if isinstance(parts, list) else ():
        for call in part.values() if isinstance(part, dict) else ():
            target = call.get("target") if isinstance(call, dict) else None
            written = target.get("wt") if isinstance(target, dict) else None
            if isinstance(written, str) and written.strip():
                return f"{written.partition(':')[0].strip()[:_LONGEST_FUNCTION]}:"
    return ""


_LONGEST_FUNCTION = 40  # in characters


class _TracedBuilder(PageBuilder):
    """Builds a page, and records the segments of its body in the order in which they are added."""

    def __init__(self, losses: Counter[str]) -> None:
        super().__init__(losses)
        self.runs: list[TextRun] = []
        self.template = self.group = ""

    def heading(self, level: int) -> None:
        super().heading(level)
        self._end_line()

    def item(self, prefix: str) -> None:
        super().item(prefix)
        self._end_line()

    def paragraph(self) -> None:
        super().paragraph()
        self._end_line()

    def _end_line(self) -> None:
        if not self.is_in_cell:
            self.runs.append(TextRun("\n", "", ""))

    def text(self, text: str) -> None:
        super().text(text)
        if text and not self.is_in_cell:
            self.runs.append(TextRun(text.replace("\n", " "), self.template, self.group))

    def open_group(self, template: str, group: str) -> None:
        """Begins the group of elements that a template made, with an empty run."""
        self.template, self.group = template, group
        if not self.is_in_cell:
            self.runs.append(TextRun("", template, group))

    def close_group(self) -> None:
        """Ends the group."""
        self.template = self.group = ""


class _TracedWalk(PageWalk):
    """Converts one page to its content, and records which template each segment comes from."""

    def __init__(self, reader: HtmlReader, title: str, root: etree._Element, names: dict[str, str]) -> None:
        self._traced = _TracedBuilder(Counter())
        super().__init__(reader, title, root, None)
        self._call_names = names

    @property
    def runs(self) -> list[TextRun]:
        """The segments of the body."""
        return self._traced.runs

    def _make_builder(self) -> PageBuilder:
        return self._traced

    def _enter(self, element: etree._Element) -> tuple[bool, Callable[[], None] | None]:
        group = element.get("about") or ""
        name = self._call_names.get(group)
        if not name or self._traced.template:
            return super()._enter(element)
        self._traced.open_group(name, group)
        is_entered, inner = super()._enter(element)

        def leave() -> None:
            if inner is not None:
                inner()
            self._traced.close_group()

        return is_entered, leave
