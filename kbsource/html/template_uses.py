"""Counts, for each use of a template on a rendered page, the characters that it displays, and how many of them are
missing from the extracted text.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from lxml import etree

from kbsource.html.elements import box_kind_of, json_object, template_parts
from kbsource.html.notes import call_of
from kbsource.records import TemplateUse
from kbsource.wikitext.markers import ANY_CONTROL
from kbsource.wikitext.templates import LostText, normalise_template_name, shortened_call

_NOT_SEEN = ("style", "script", "annotation", "template")


class _Group(NamedTuple):
    """The elements that one template made, or several templates whose output cannot be separated."""

    names: tuple[str, ...]  # names of templates, in normal form
    is_box: bool
    first: etree._Element


class TemplateUses:
    """The uses of templates on one page.

    A use is ``expanded``, or ``dropped`` if none of its output is in the text. If several templates produce one part of
    the page, its characters are counted for the first of them.

    Args:
        root: the document.
        lang: language of the wiki.
    """

    def __init__(self, root: etree._Element, lang: str) -> None:
        self._groups: dict[str, _Group] = {}
        # templates whose HTML names no group, so that their other elements are unknown
        self._unnamed: list[_Group] = []
        self._shown: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        for element in root.iterfind(".//*[@data-mw]"):
            if "mw:Transclusion" not in (element.get("typeof") or ""):
                continue
            data = json_object(element.get("data-mw"))
            names = [name for own, _ in template_parts(data) if (name := normalise_template_name(own, lang))]
            if not names:
                continue
            found = _Group(tuple(names), bool(box_kind_of(element)), element)
            group = element.get("about") or ""
            if group and group not in self._groups:
                self._groups[group] = found
            else:
                self._unnamed.append(found)

    def name_of(self, group: str) -> str | None:
        """Returns the name of the first template of a group; None if there is none."""
        found = self._groups.get(group)
        return None if found is None else found.names[0]

    def show(self, group: str, n_chars: int) -> None:
        """Counts characters of a group as shown in the text."""
        self._shown[group] += n_chars

    def lose(self, group: str, element: etree._Element, *, n_kept: int = 0) -> None:
        """Counts the characters of an element that are missing in the text; ``n_kept`` of its characters are not
        missing. They are counted for the group that contains the element, or else for the groups inside the element.
        """
        if group:
            self._lost[group] += max(visible_chars_of(element) - n_kept, 0)
            return
        events = etree.iterwalk(element, events=("start",))
        for _, inner in events:
            about = inner.get("about")
            if about and about in self._groups:
                self._lost[about] += visible_chars_of(inner)
                events.skip_subtree()

    def rows(self) -> tuple[TemplateUse, ...]:
        """Returns the number of uses by name and outcome, sorted."""
        uses: Counter[tuple[str, str]] = Counter()
        for group, found in self._groups.items():
            uses.update((name, self._outcome(group, found)) for name in found.names)
        for found in self._unnamed:
            uses.update((name, self._outcome("", found)) for name in found.names)
        return tuple(TemplateUse(name, outcome, n) for (name, outcome), n in sorted(uses.items()))

    def _outcome(self, group: str, found: _Group) -> str:
        if self._shown[group]:
            return "expanded"
        return "dropped" if found.is_box or self._lost[group] else "expanded"

    def shown(self) -> dict[tuple[str, str], int]:
        """Returns the number of characters that the text contains, by name and outcome."""
        sums: Counter[tuple[str, str]] = Counter()
        for group, found in self._groups.items():
            if n_chars := self._shown[group]:
                sums[found.names[0], "expanded"] += n_chars
        return dict(sums)

    def lost(self) -> dict[tuple[str, str], LostText]:
        """Returns the number of characters that are missing in the text, and the first use that loses some, by name and
        outcome.
        """
        losses: dict[tuple[str, str], LostText] = {}
        for group, found in self._groups.items():
            if n_chars := self._lost[group]:
                key = found.names[0], self._outcome(group, found)
                known = losses.get(key)
                example = _example(found.first) if known is None else known.example
                losses[key] = LostText(n_chars + (known.n_chars if known is not None else 0), example)
        return losses


def visible_chars_of(element: etree._Element) -> int:
    """Returns the number of characters in an element, without white space, styles and scripts."""
    n_chars = _n_chars(element)
    for unseen in element.iter(*_NOT_SEEN):
        n_chars -= _n_chars(unseen)
    return max(n_chars, 0)


def _n_chars(element: etree._Element) -> int:
    text = "".join(map(str, element.itertext()))
    return len("".join(text.split()))


def _example(element: etree._Element) -> str:
    uses: list[tuple[str, dict[str, Any]]] = [*template_parts(json_object(element.get("data-mw")))]
    return ANY_CONTROL.sub("", shortened_call(call_of(*uses[0])))
