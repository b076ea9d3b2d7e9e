"""Counts markup left in the text of the real slices' articles, except where the page shows markup on purpose."""

from __future__ import annotations

import argparse
import html
import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.environment import machine, table, write_json
from benchmarks.slices import OTHERS, S1, Slice, data_root, read_slices
from kbsource.pages.articles import PageParser
from kbsource.release.pages.measures import CONTEXT_CHARS, MARKUP
from kbsource.wikitext.parse import ParsedText

_MARKUP = re.compile(MARKUP)
# What these tags hold is shown as written.
LITERAL = re.compile(
    r"<(nowiki|pre|code|syntaxhighlight|source|math|chem|ce|score|templatedata)\b[^>]*(?<!/)>(.*?)</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_ENTITY_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Leak:
    """A piece of markup left in an article, with its position."""

    title: str
    place: str  #: ``element 7``, ``table 2`` or ``infobox 0``
    kind: str  #: of the element, or ``cell``, ``caption``, ``field``
    markup: str
    context: str  #: what is around it, on one line

    @classmethod
    def at(cls, match: re.Match[str], *, title: str, place: str, kind: str) -> Self:
        """Returns the leak for a match of markup."""
        context = match.string[max(0, match.start() - CONTEXT_CHARS) : match.end() + CONTEXT_CHARS]
        return cls(title, place, kind, match.group(), context.replace("\n", " "))


class Literals:
    """The markup that a page shows on purpose: the contents of nowiki and similar tags, and character references."""

    def __init__(self, wikitext: str) -> None:
        self._plain = wikitext
        self._decoded = html.unescape(wikitext)
        self._left: Counter[str] = Counter()
        for match in LITERAL.finditer(wikitext):
            content = html.unescape(match.group(2))
            pieces = {" ".join(piece.split()) for piece in (content, *content.splitlines())}
            self._left.update(piece for piece in pieces if _MARKUP.search(piece))

    def leaks(self, text: str) -> list[re.Match[str]]:
        """Returns the markup in a text that the wikitext does not show on purpose.

        Each literal of the wikitext excuses as many occurrences as the wikitext has of it, over all texts of the page
        that were passed to this method.
        """
        found = list(_MARKUP.finditer(text))
        if not found:
            return []
        spans = self._claim(re.sub(r"\s", " ", text))
        return [
            match
            for match in found
            if not any(start <= match.start() and match.end() <= end for start, end in spans)
            and not self._is_from_references(text, match)
        ]

    def _claim(self, text: str) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for piece in sorted(self._left, key=len, reverse=True):
            start = text.find(piece)
            while start >= 0 and self._left[piece] > 0:
                end = start + len(piece)
                if not any(first < end and start < last for first, last in spans):
                    spans.append((start, end))
                    self._left[piece] -= 1
                start = text.find(piece, end)
        return spans

    def _is_from_references(self, text: str, match: re.Match[str]) -> bool:
        """Returns whether markup and its neighbours are in the source only after ``&#91;`` is decoded."""
        window = text[max(0, match.start() - _ENTITY_WINDOW) : match.end() + _ENTITY_WINDOW]
        return window in self._decoded and window not in self._plain


def page_texts(parsed: ParsedText) -> list[tuple[str, str, str]]:
    """Returns every text of a parsed page as (place, kind, text); elements come first."""
    texts = [(f"element {i}", element.kind, element.text) for i, element in enumerate(parsed.elements)]
    for i, wiki_table in enumerate(parsed.tables):
        texts.append((f"table {i}", "caption", wiki_table.caption or ""))
        texts.extend((f"table {i}", "cell", cell.text) for row in wiki_table.rows for cell in row)
    for i, box in enumerate(parsed.infoboxes):
        texts.extend((f"infobox {i}", "field", value.text) for value in box.fields)
    return texts


def slice_leaks(wiki_slice: Slice) -> list[Leak]:
    """Parses every article of a slice and returns the markup that is left in its text."""
    parser = PageParser(wiki_slice.site)
    leaks = []
    for page in wiki_slice.articles():
        literals = Literals(page.text)
        for place, kind, text in page_texts(parser.parse(page).text):
            for match in literals.leaks(text):
                leaks.append(Leak.at(match, title=page.title, place=place, kind=kind))
    return leaks


def measure(data: str | None) -> dict[str, Any]:
    """Counts the leaks of all slices, S1 first."""
    rows = []
    listed: list[dict[str, str]] = []
    for wiki_slice in read_slices(data_root(data), (S1, *OTHERS)):
        leaks = slice_leaks(wiki_slice)
        in_elements = {leak.title for leak in leaks if leak.place.startswith("element")}
        rows.append(
            {
                "slice": wiki_slice.name,
                "articles": len(wiki_slice.articles()),
                "articles_with_leaks": len(in_elements),
                "articles_with_leaks_in_tables_and_infoboxes": len(
                    {leak.title for leak in leaks if not leak.place.startswith("element")}
                ),
            }
        )
        listed += [{"slice": wiki_slice.name, **asdict(leak)} for leak in leaks]
    return {"machine": machine(), "slices": rows, "leaks": listed}


def show(result: dict[str, Any], *, n_lines: int | None = None) -> None:
    """Prints the counts and the list of leaks, elements first, and the number of lines that it left out."""
    print("\nleaked markup: {{ }} [[ ]] <ref ''' outside nowiki and its kin; bar: 0 articles of the first slice")
    header = ("slice", "articles", "with leaks in elements", "in tables, infoboxes")
    print(table(header, [tuple(row.values()) for row in result["slices"]]))
    leaks = sorted(result["leaks"], key=lambda leak: not leak["place"].startswith("element"))
    for leak in leaks[:n_lines]:
        print(f"{leak['slice']} | {leak['title']} | {leak['place']} {leak['kind']} | {leak['context']}")
    if n_lines is not None and len(leaks) > n_lines:
        print(f"… and {len(leaks) - n_lines} more")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
