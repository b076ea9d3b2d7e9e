"""Shows a check of texts: totals, and the pages that differ most, with both texts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kbsource.errors import counted
from kbsource.html.comparing import TEXT, PageComparison, TextCheck
from kbsource.html.side_by_side import LinePair, Pieces
from mapping.document import Block, Document, Facts, Marked, Section, TableSection, TextPiece, share

_NEAR = 1
"""Lines that are the same shown before and after each line that differs."""


def text_check_document(check: TextCheck, files: Sequence[str], *, n_templates: int) -> Document:
    """Returns a check as a document. ``files`` are the names of the files that were read."""
    sums, counts = check.sums, check.counts
    n_words, n_own, n_found = sums["words"], sums["own_words"], sums["found"]
    facts = (
        ("files", ", ".join(files)),
        ("pages compared", counts.pages),
        ("records rejected", sum(counts.rejected.values())),
        ("words on the pages", n_words),
        ("found in order", share(n_found, n_words)),
        ("words extracted from the wikitext", n_own),
        ("not on the pages", share(n_own - n_found, n_own)),
        ("links on the pages", sums["links"]),
        ("found with their targets", share(sums["links_found"], sums["links"])),
    )
    kinds = TableSection(
        "Missing words by kind",
        ("kind", "words"),
        tuple(("outside of templates" if kind == TEXT else kind, n) for kind, n in check.kinds.most_common()),
    )
    templates = TableSection(
        "Templates with the most missing words",
        ("template", "kind", "words", "pages", "example"),
        tuple(
            (name or None, kind, loss.words, loss.pages, f"{loss.title}: {loss.example}")
            for name, kind, loss in check.losses()[:n_templates]
        ),
    )
    overview: list[Block] = [Facts(facts), *(table for table in (kinds, templates) if table.rows)]
    pages = [Section(page.title, tuple(_page_blocks(page))) for page in check.worst()]
    return Document("The text made of wikitext, and what readers see", (Section("All pages", tuple(overview)), *pages))


def _page_blocks(page: PageComparison) -> Iterator[Block]:
    yield Facts(
        (
            ("words on the page", page.words),
            ("missing", page.words - page.found),
            ("words extracted from the wikitext", page.own_words),
            ("not on the page", page.own_words - page.found),
            ("links on the page", page.links),
            ("links missing", page.links - page.links_found),
        )
    )
    yield TableSection(
        "Lines that differ, with the words marked that only one side has",
        ("line", "the page shows", "made of the wikitext"),
        tuple(_rows(page.lines)),
    )


def _rows(lines: Sequence[LinePair]) -> Iterator[tuple[str, Marked | str | None, Marked | str | None]]:
    near = {at + step for at, line in enumerate(lines) if line.differs for step in range(-_NEAR, _NEAR + 1)}
    for is_far, run in groupby(enumerate(lines), key=lambda numbered: numbered[0] not in near):
        own = list(run)
        if is_far:
            same = counted(len(own), "lines")
            yield "…", f"{same} with the same words", None
            continue
        yield from ((str(at + 1), _marked(line.shown), _marked(line.own)) for at, line in own)


def _marked(pieces: Pieces | None) -> Marked | None:
    return None if pieces is None else Marked(tuple(TextPiece(*piece) for piece in pieces))
