"""Made-up pages for tests and benchmarks: plain pages in any number, and Hypothesis' odd ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from hypothesis import strategies as st

from kbsource.columns import schema_of
from kbsource.records import Anchor, Cell, CellLink, Element, Infobox, InfoboxField, Loss, Page, Table, TemplateUse
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.writing import PageGroups, check_page
from kbsource.release.writer import TableFile

WORDS = (  # some of more than one byte a letter
    "the of and in city river mathematician language was born university century Zürich naïve 北京 war treaty kingdom "
    "Łódź island railway opened population district émigré composer theory football season written 𝔘nicode species "
    "genus family award film album station parliament election"
).split()


def title_of(number: int) -> str:
    """Gives the title of the made-up page of that number."""
    return f"Article {number} of {WORDS[number % len(WORDS)]}"


def synthetic_pages(n_pages: int, *, seed: int = 0, n_paragraphs: int = 12, first_id: int = 1) -> Iterator[Page]:
    """Gives pages in the order of their ids, each about ``n_paragraphs`` * 450 bytes of text with links to
    others.

    Page ids are every third number from ``first_id``; every link leads to a page among them.
    """
    rng = random.Random(seed)
    stock = [" ".join(rng.choices(WORDS, k=14)) + "." for _ in range(2000)]
    for number in range(n_pages):
        yield _page(number, n_pages, rng, stock, n_paragraphs, first_id)


def _page(number: int, n_pages: int, rng: random.Random, stock: list[str], n_paragraphs: int, first_id: int) -> Page:
    title = title_of(number)
    elements = [Element("title", 1, None, "", (), title)]
    anchors = []
    section: tuple[str, ...] = ()
    for paragraph in range(n_paragraphs):
        if paragraph % 4 == 3:
            section = (f"Section {paragraph}",)
            elements.append(Element("heading", 2, None, "", section, section[0]))
        pieces: list[str] = []
        at = 0
        for _ in range(4):
            pieces.append(rng.choice(stock))
            at += len(pieces[-1]) + 1
            target = rng.randrange(n_pages)
            label = title_of(target)
            pieces.append(label)
            anchors.append(
                Anchor(len(elements), at, at + len(label), label, label, None, first_id + 3 * target, label.lower())
            )
            at += len(label) + 1
        kind, ordinal, marker = ("list_item", paragraph, "#") if paragraph % 5 == 4 else ("paragraph", None, "")
        elements.append(Element(kind, int(kind == "list_item"), ordinal, marker, section, " ".join(pieces)))
    cell = Cell("12 April 1901", False, 1, 1, ())
    return Page(
        page_id=first_id + 3 * number,
        title=title,
        qid=f"Q{1000 + number}" if number % 10 else None,
        is_disambiguation=number % 50 == 0,
        revision_id=900_000_000 + number,
        parent_revision_id=None if number % 7 == 0 else 800_000_000 + number,
        timestamp=datetime(2019, 7, 1 + number % 28, 20, number % 60, 53, tzinfo=UTC),
        url=f"https://en.wikipedia.org/w/index.php?title=Article_{number}&oldid={900_000_000 + number}",
        elements=tuple(elements),
        anchors=tuple(anchors),
        categories=(f"Category {number % 97}", "All articles"),
        template_categories=("All articles",),
        category_sort_keys=(f"{number}", ""),
        redirects=(),
        tables=(Table(1, "A caption", ("Year", "Event"), ((cell, cell), (cell, cell))),),
        infoboxes=(Infobox(1, "Infobox person", (InfoboxField("name", title, ()),)),),
        templates=(TemplateUse("Infobox person", "rendered", 1),),
        losses=(Loss("ref", number % 9), Loss("comment", 1)),
        parse_status="ok",
    )


def _texts(max_size: int = 40) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=max_size)


def _spans(text: str) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(lambda pair: (min(pair), max(pair)))


_ids = st.integers(1, 1 << 40)
_maybe_text = st.none() | _texts()


@st.composite
def _cell_links(draw: st.DrawFn, text: str) -> tuple[CellLink, ...]:
    spans = draw(st.lists(_spans(text), max_size=2))
    return tuple(
        CellLink(start, end, draw(_texts()), draw(_maybe_text), draw(st.none() | _ids)) for start, end in spans
    )


@st.composite
def _cells(draw: st.DrawFn) -> Cell:
    text = draw(_texts())
    return Cell(text, draw(st.booleans()), draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(_cell_links(text)))


@st.composite
def _fields(draw: st.DrawFn) -> InfoboxField:
    text = draw(_texts())
    return InfoboxField(draw(_texts()), text, draw(_cell_links(text)))


@st.composite
def pages(draw: st.DrawFn) -> Page:
    """Gives pages that keep every invariant of a release and are odd in every other way."""
    title = draw(_texts())
    elements = [Element("title", 1, None, "", (), title)]
    kinds = st.sampled_from(("heading", "paragraph", "list_item"))
    for text in draw(st.lists(_texts(), max_size=4)):
        section = tuple(draw(st.lists(_texts(8), max_size=3)))
        ordinal = draw(st.none() | st.integers(0, 1 << 20))
        elements.append(Element(draw(kinds), draw(st.integers(0, 6)), ordinal, draw(_texts(3)), section, text))
    anchors = []
    for number, element in enumerate(elements):
        for start, end in sorted(draw(st.lists(_spans(element.text), max_size=2))):
            anchors.append(
                Anchor(
                    number,
                    start,
                    end,
                    element.text[start:end],
                    draw(_texts()),
                    draw(_maybe_text),
                    draw(st.none() | _ids),
                    draw(_texts()),
                )
            )
    places = st.integers(0, len(elements) - 1)
    rows = st.lists(st.lists(_cells(), max_size=2).map(tuple), max_size=2).map(tuple)
    names = st.lists(_texts(8), max_size=3).map(tuple)
    categories = draw(names)
    return Page(
        page_id=draw(_ids),
        title=title,
        qid=draw(st.none() | st.integers(1, 1 << 30).map(lambda number: f"Q{number}")),
        is_disambiguation=draw(st.booleans()),
        revision_id=draw(_ids),
        parent_revision_id=draw(st.none() | _ids),
        timestamp=draw(st.datetimes().map(lambda when: when.replace(microsecond=0, tzinfo=UTC))),
        url=draw(_texts()),
        elements=tuple(elements),
        anchors=tuple(anchors),
        categories=categories,
        template_categories=categories[draw(st.integers(0, 3)) :],
        category_sort_keys=categories[::-1],
        redirects=draw(names),
        tables=tuple(draw(st.lists(st.builds(Table, places, _maybe_text, names, rows), max_size=2))),
        infoboxes=tuple(
            draw(st.lists(st.builds(Infobox, places, _texts(), st.lists(_fields(), max_size=2).map(tuple)), max_size=2))
        ),
        templates=tuple(draw(st.lists(st.builds(TemplateUse, _texts(), _texts(), st.integers(1, 99)), max_size=2))),
        losses=tuple(draw(st.lists(st.builds(Loss, _texts(), st.integers(1, 99)), max_size=2))),
        parse_status=draw(st.sampled_from(("ok", "fallback_timeout"))),
    )


def write_pages(pages: Iterable[Page], output: str, file: str) -> FileEntry:
    """Writes pages as one file of a release, as a build does."""
    groups = PageGroups()
    with TableFile(output, file, "pages", schema=schema_of(Page)) as target:
        for page in pages:
            check_page(page)
            if (full := groups.add(page)) is not None:
                target.write(full)
        if (rest := groups.rest()) is not None:
            target.write(rest)
    return target.entry
