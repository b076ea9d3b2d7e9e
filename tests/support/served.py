"""A small release of pages that link to each other, with passages, as it is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kbsource.records import Anchor, Page
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import CutOptions, PageText
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import PassageIndex, make_index
from mapping.retrieval.systems import SearchSystem
from mapping.serving.operations import ServedRelease
from tests.support.passages import page
from tests.support.releases import TitleRow, redirect_to, write_release

if TYPE_CHECKING:
    from starlette.applications import Starlette

CUT = CutOptions(max_words=8)
SORN, TEY, YEAR = 3, 5, 9


def _pages() -> list[Page]:
    sorn = page(
        SORN, "Sorn", "The Sorn is a river near Tey. It rises in Brack.", "Course", "Its fish are old, 𝔘nlike it."
    )
    elements = list(sorn.elements)
    elements[2] = replace(elements[2], kind="heading", level=2, section=("Course",))
    elements[3] = replace(elements[3], section=("Course", "Fish"))
    sorn = replace(
        sorn,
        qid="Q7",
        revision_id=70,
        elements=tuple(elements),
        anchors=(
            Anchor(1, 25, 28, "Tey", "Tey", None, TEY, "Tey"),
            Anchor(3, 4, 8, "fish", "Fish", None, None, "fish"),
        ),
    )
    tey = page(TEY, "Tey", "A town of forty goats on the Sorn.", "Goats of the Sorn are old.")
    anchors = (
        Anchor(1, 29, 33, "Sorn", "Sorn", "Course", SORN, "Sorn#Course"),
        Anchor(2, 13, 17, "Sorn", "Sorn", None, SORN, "Sorn"),
    )
    year = page(YEAR, "1984", "It was a year.")
    pages = sorn, replace(tey, revision_id=72, anchors=anchors), replace(year, revision_id=74)
    return [replace(wiki_page, is_disambiguation=False) for wiki_page in pages]


PAGES = {wiki_page.page_id: wiki_page for wiki_page in _pages()}


def write_served(folder: Path) -> tuple[str, str]:
    """Writes release and passages, and gives their folders."""
    titles = [TitleRow(wiki_page.page_id, wiki_page.title, wiki_page.revision_id) for wiki_page in PAGES.values()]
    manifest = write_release(folder, PAGES.values(), titles=[*titles, redirect_to(20, "The Sorn", "Sorn")])
    corpus, cut = str(folder / "corpus"), CUT.cutter("en")
    texts = [
        PageText(
            wiki_page.page_id,
            wiki_page.title,
            tuple(
                (number, element.text)
                for number, element in enumerate(wiki_page.elements)
                if element.kind == "paragraph"
            ),
        )
        for wiki_page in PAGES.values()
    ]
    options = {"max_words": 100, "split_long": False, "unit": "sentences", "tables": False, "formats": []}
    counts = {"pages": len(PAGES)}
    facts: dict[str, Any] = {"options": options, "counts": counts, "lang": "en", "release": manifest.facts()}
    with ReleaseFolder(corpus, kind=PASSAGES_CORPUS):
        entry = write_rows(
            [passage for text in texts for passage in cut(text)], "passages", PASSAGES, output=corpus, group_rows=9
        )
        facts = with_counts(PASSAGES_CORPUS, [entry], facts, corpus)
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing([entry], facts), corpus)
    make_index(corpus, f"{corpus}-bm25")
    return str(folder / "release"), corpus


@contextmanager
def opened_served(release: str, corpus: str) -> Iterator[ServedRelease]:
    """Opens both, and counts what links to each page."""
    with ServedRelease.open(release) as served:
        served.search_in(corpus, SearchSystem("bm25", PassageIndex(corpus, f"{corpus}-bm25")))
        served.finder.backlinks.wait()
        yield served


def app_of(served: ServedRelease, *, longest_s: float = 10.0, has_tools: bool = False) -> Starlette:
    """Returns the application that answers for a release by HTTP, with the tools of MCP or without."""
    from mapping.serving.server import Answering, mcp_app, mcp_server, server_app  # the SDK of MCP takes 2 s to import

    answering = Answering(served, longest_s=longest_s)
    tools = mcp_app(mcp_server(served, answering)) if has_tools else None
    return server_app(served, answering, tools=tools, hosts=["reader.local"])
