"""Compares two versions of a page side by side: pairs of elements, with changed words marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kbsource.diff.matching import longest_ascending
from kbsource.records import Element, Page
from kbsource.wikitext.reference_rows import Reference
from mapping.document import TextPiece
from mapping.inspector.marking import changed_words, marked_pieces

_TOGETHER = ("same", "part", "edited")
"""Outcomes of segments that are shown next to their old element."""


class Version(NamedTuple):
    """An element of a version. Text that the other version lacks is marked."""

    number: int
    element: Element
    pieces: list[TextPiece]


class ElementPair(NamedTuple):
    """An element of the old page and the matching element of the new page; None if there is no match."""

    outcome: str  #: an outcome in kbsource.diff.kind.SPAN_OUTCOMES, or "added"
    old: Version | None
    new: Version | None
    leads_to: Mapping[str, Any] | None = None  #: for an old element that moved elsewhere, its row of ``span_changes``
    comes_from: int | None = None  #: for a new element, the number of the old element that it comes from


def lines_of(old: Page | None, new: Page | None, spans: Sequence[Mapping[str, Any]]) -> list[ElementPair]:
    """Returns the elements of both versions in order. Of two elements without partners, the old one comes first.

    Args:
        old, new: the page in either release; None if the release does not have it.
        spans: rows of ``span_changes`` of the old page. Elements without a row did not move.
    """
    by_element: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for span in spans:
        by_element[span["old_element"]].append(span)
    before, after = (() if page is None else page.elements for page in (old, new))
    inside = [span for span in spans if new is not None and span["new_page_id"] == new.page_id]
    partners = {} if old is None or new is None else _partners(len(before), len(after), by_element, new.page_id)
    origins = {span["new_element"]: span["old_element"] for span in inside}

    def added(start: int, end: int) -> Iterator[ElementPair]:
        for number in range(start, end):
            origin = origins.get(number)
            text = after[number].text
            pieces = [TextPiece(text, True)] if origin is None else changed_words(before[origin].text, text)[1]
            yield ElementPair(
                "added" if origin is None else "moved", None, Version(number, after[number], pieces), None, origin
            )

    lines: list[ElementPair] = []
    at = 0
    for number, element in enumerate(before):
        if number in partners:
            lines += added(at, partners[number])
            lines.append(_pair(number, element, partners[number], after[partners[number]], by_element[number]))
            at = partners[number] + 1
        else:
            lines.append(_left(number, element, by_element[number], after))
    lines += added(at, len(after))
    return lines


def _partners(
    n_old: int, n_new: int, spans: Mapping[int, Sequence[Mapping[str, Any]]], page_id: int | None
) -> dict[int, int]:
    """Returns the new element next to each old element: the longest sequence that is in order in both versions."""
    wanted: list[tuple[int, int]] = []
    for number in range(n_old):
        own = [span for span in spans[number] if span["outcome"] in _TOGETHER and span["new_page_id"] == page_id]
        if own:
            longest = max(own, key=lambda span: span["old_end"] - span["old_start"])
            wanted.append((number, longest["new_element"]))
        elif not spans[number]:
            wanted.append((number, number))
    wanted = [pair for pair in wanted if pair[1] < n_new]
    return dict(wanted[at] for at in longest_ascending([new for _, new in wanted]))


def _pair(number: int, old: Element, other: int, new: Element, spans: Sequence[Mapping[str, Any]]) -> ElementPair:
    if old.text == new.text:
        left, right = [TextPiece(old.text, False)], [TextPiece(new.text, False)]
        return ElementPair("same", Version(number, old, left), Version(other, new, right))
    left, right = changed_words(old.text, new.text)
    outcome = "edited" if any(span["outcome"] == "edited" for span in spans) else "part"
    return ElementPair(outcome, Version(number, old, left), Version(other, new, right))


def _left(number: int, element: Element, spans: Sequence[Mapping[str, Any]], after: Sequence[Element]) -> ElementPair:
    """Returns an old element without a partner. Text that occurs nowhere in the new release is marked."""
    elsewhere = [span for span in spans if span["outcome"] != "gone"]
    gone = [(span["old_start"], span["old_end"]) for span in spans if span["outcome"] == "gone"]
    if not spans:
        gone = [(0, len(element.text))]
    longest = max(elsewhere, key=lambda span: span["old_end"] - span["old_start"], default=None)
    if longest is not None and longest["outcome"] == "edited" and after:  # empty for a page that was merged
        pieces = changed_words(element.text, after[longest["new_element"]].text)[0]
    else:
        pieces = marked_pieces(element.text, gone)
    return ElementPair(
        "gone" if longest is None else longest["outcome"], Version(number, element, pieces), None, longest
    )


NEAR = 1
"""Unchanged elements that are shown before and after each change."""


def collapsed_runs(lines: Sequence[ElementPair], *, near: int = NEAR) -> Iterator[tuple[bool, list[ElementPair]]]:
    """Splits lines into runs, and reports for each run whether it consists of unchanged elements far from any
    change."""
    changed = [at for at, line in enumerate(lines) if line.outcome != "same"]
    kept = {at + step for at in changed for step in range(-near, near + 1)} | {0}
    for is_far, run in groupby(enumerate(lines), key=lambda numbered: numbered[0] not in kept):
        yield is_far, [line for _, line in run]


class ChangedValues(NamedTuple):
    """Values other than text that only one version has."""

    name: str
    removed: list[str]
    added: list[str]


def changed_values(
    old: Page | None, new: Page | None, sources: tuple[Iterable[Reference], Iterable[Reference]] = ((), ())
) -> list[ChangedValues]:
    """Returns links, sources, categories, redirects and infobox values that only one version has.

    Values are distinct, under names in a fixed order. A source is identified by its URL, otherwise by its text.
    """
    sides = [_beside_text(page, refs) for page, refs in zip((old, new), sources, strict=True)]
    found = []
    for name in sides[0]:
        before, after = sides[0][name], sides[1][name]
        removed, added = sorted(before - after), sorted(after - before)
        if removed or added:
            found.append(ChangedValues(name, removed, added))
    return found


def _beside_text(page: Page | None, sources: Iterable[Reference]) -> dict[str, set[str]]:
    anchors, categories, redirects, infoboxes = (
        (page.anchors, page.categories, page.redirects, page.infoboxes) if page is not None else ((), (), (), ())
    )
    return {
        "Links": {anchor.target_title for anchor in anchors},
        "Sources": {(source.citation and source.citation.url) or source.text for source in sources if source.text},
        "Categories": set(categories),
        "Redirects to it": set(redirects),
        "Infoboxes": {f"{field.name}: {field.text}" for infobox in infoboxes for field in infobox.fields},
    }
