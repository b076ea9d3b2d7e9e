"""The operations that ``kbsource serve`` offers, such as ``search`` and ``check``: one class per operation.

An instance of a class is a request. Its fields are the parameters of the operation, with their bounds, and ``answer``
computes the answer. The docstring of a class is shown to people and models. HTTP routes, MCP tools and
docs/operations.md are generated from ``OPERATIONS``.

Every answer names the release by the hash of its manifest, and pages with their revisions. A location is an element of
a page and a half-open range ``[start_char, end_char)`` in code points of its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct
from msgspec.json import schema_components

from kbsource.errors import RecordError, SetupError
from kbsource.lookup import KnowledgeSource, LookupResult
from kbsource.records import Anchor, Element, Page, instant_text
from mapping.inspector.finder import PageFinder
from mapping.options import LARGEST
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.systems import SearchSystem
from mapping.search.page_search import align_evidence, is_blank
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser

MOST, LONGEST_QUERY, LONGEST_QUOTE, MOST_QUERIES, MOST_FOUND = 100, 2_000, 10_000, 512, 10_240
"""Bounds of a request: results, characters of a query, characters of a quote, queries, and results of all queries."""
PAGE_CHARS = 50_000
"""Maximum number of characters in one answer about a page. An element that is longer is returned on its own."""
SIMILAR = 0.5
"""Minimum BLEU between a quote and a similar text that is returned instead, as in ``kbsource locate``."""
MOST_SIMILAR = 5
"""Number of similar titles that are suggested for an unknown title."""
ACROSS = 3
"""Maximum number of elements that an approximately matched quote may span."""

Json = dict[str, Any]
Question = Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY, description="text to search for")]
Most = Annotated[int, Meta(ge=1, le=MOST, description="maximum number of results")]
Start = Annotated[int, Meta(ge=0, lt=1 << 31, description="number of the first result, counted from 0")]
PageName = Annotated[
    Annotated[str, Meta(max_length=LONGEST_QUERY)] | Annotated[int, Meta(ge=0, le=LARGEST)],
    Meta(
        description="title (redirects are followed), URL in the wiki, page id, or Wikidata item (wikidata:Q42, or Q42 "
        "if no page has this title); a whole number in JSON is always a page id"
    ),
]
_Number = Annotated[int, Meta(ge=0, lt=1 << 31)]
ElementNumber = Annotated[_Number, Meta(description="number of an element of the page")]
StartChar = Annotated[_Number, Meta(description="first code point in the element's text")]
EndChar = Annotated[_Number, Meta(description="one past the last code point in the element's text")]
_ITEM = re.compile(r"(?:wikidata:)?(Q[1-9]\d{0,17})", re.IGNORECASE | re.ASCII)
_PASSAGE = re.compile(r"(\d{1,18})__(\d{1,9})", re.ASCII)


class ServedRelease:
    """The release of pages that a server answers requests about, and a search system if passages were given too."""

    def __init__(self, source: KnowledgeSource, finder: PageFinder) -> None:
        self.source, self.finder, self.sha256 = source, finder, source.manifest.sha256
        self.system: SearchSystem | None = None
        self._find_turn: AbstractContextManager[Any] = nullcontext()
        self._turn = Lock()  # a tokeniser has caches
        rows = source.to_arrow(columns=("page_id", "revision_id")).sort_by("page_id")  # 16 bytes per page
        self._ids, self._revisions = (rows[name].to_numpy() for name in rows.column_names)

    @classmethod
    @contextmanager
    def open(cls, path: str) -> Iterator[ServedRelease]:
        """Opens a release.

        Raises:
            SetupError: the folder is not a finished release of pages.
        """
        with KnowledgeSource.open(path) as source, closing(PageFinder(path, source.manifest, source)) as finder:
            finder.titles.get()  # builds the index of similar titles in the background
            yield cls(source, finder)

    def search_in(self, passages: str, system: SearchSystem) -> None:
        """Sets the search system for passages. Searches run one after another, except with bm25.

        Raises:
            SetupError: the passages belong to another release.
        """
        if PASSAGES_CORPUS.read(passages).made_from() != self.sha256:
            raise SetupError(f"{passages} was not made from the release that is served; name passages of that release.")
        self.system, self._find_turn = system, nullcontext() if system.name == "bm25" else Lock()

    @property
    def searched(self) -> SearchSystem:
        """Returns the search system for passages.

        Raises:
            RecordError: ``no_passages``.
        """
        if self.system is None:
            raise RecordError("no_passages", "the server was started without --passages")
        return self.system

    def revision(self, page_id: int | None) -> int | None:
        """Returns the revision of a page, or None if there is no such page."""
        at = 0 if page_id is None else int(np.searchsorted(self._ids, page_id))
        return int(self._revisions[at]) if at < len(self._ids) and self._ids[at] == page_id else None

    def resolve(self, page: str | int) -> LookupResult:
        """Resolves a title, URL, page id or Wikidata item to a page, and reports how the page was found."""
        found = self.source.resolve(page)
        item = _ITEM.fullmatch(page) if found.page_id is None and isinstance(page, str) else None
        if item is None or (named := self.source.by_qid(qid := item[1].upper())) is None:
            return found
        return LookupResult("item", qid, named.title, named.page_id, None, 0, "article")

    def page(self, name: str | int) -> Page:
        """Returns a page.

        Raises:
            RecordError: ``unknown_page``.
        """
        found = self.resolve(name)
        page = None if found.page_id is None else self.source.by_id(found.page_id)
        if page is None:
            similar = [] if found.by == "id" else self.finder.similar_to(found.requested, MOST_SIMILAR)
            proposed = f"; similar titles: {'; '.join(similar)}" if similar else ""
            raise RecordError("unknown_page", f"{name!r} resolves to no page of the release: {found.status}{proposed}")
        return page

    def hits(self, query: str, k: int) -> list[Json]:
        """Returns the best passages for a question.

        Raises:
            RecordError: ``no_passages``.
        """
        with self._find_turn:
            (found,) = self.searched.search([Query("", query)], k)
        return [{"rank": rank, "score": hit.score, **self.passage(hit)} for rank, hit in enumerate(found, start=1)]

    def passage(self, hit: Hit) -> Json:
        """Returns a search hit as JSON values: the id, page, revision, text and spans of the passage."""
        page_id = int(hit.page_id)
        page = {"page_id": page_id, "title": hit.title, "revision_id": self.revision(page_id)}
        return {"passage_id": hit.passage_id, **page, "text": hit.text, "spans": hit.spans}

    def head(self, page: Page) -> Json:
        """Returns the values with which every answer about a page begins: the release, the page and its revision."""
        names = ("page_id", "title", "revision_id", "timestamp", "url")
        return {"release": self.sha256, **{name: getattr(page, name) for name in names}}

    def align(self, quote: str, page: Page) -> Json | None:
        """Returns the location of the text in a page that is most similar to a quote, with the similarity; None if
        nothing is similar.
        """
        with self._turn:
            found = align_evidence(quote, TokenisedPage(page.elements, self._tokeniser), max_elements=ACROSS)
        if found is None or found.score < SIMILAR:
            return None
        place = _place((found.start_element, found.start_char), (found.end_element, found.end_char))
        return {"match": "similar" if found.match == "bleu" else "same_words", "bleu": found.score, **place}

    @cached_property
    def _tokeniser(self) -> Tokeniser:
        return Tokeniser(self.source.site.lang)


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the operations. An instance is one request; its fields are the parameters."""

    of_passages: ClassVar[bool] = False
    """True if the operation can be used only if the server was started with passages."""

    @classmethod
    def description(cls) -> str:
        """Returns the description of the operation, for people and models."""
        return " ".join((cls.__doc__ or "").split())

    @classmethod
    def schema(cls) -> Json:
        """Returns its parameters as a JSON Schema."""
        _, parts = schema_components([cls])
        return {name: value for name, value in parts[cls.__name__].items() if name not in ("title", "description")}

    def answer(self, served: ServedRelease) -> Json:
        """Returns the answer as JSON values.

        Raises:
            RecordError: the request cannot be answered. The reason is a key of ``STATUS``.
        """
        raise NotImplementedError

    def steps(self, served: ServedRelease) -> Iterator[Json | None]:
        """Yields None after each step of the work, and the answer after the last step. Between two steps, the server
        answers other requests, and may cancel this one.
        """
        yield self.answer(served)


class Search(Request, frozen=True):
    """Find the best passages for a question, best first."""

    of_passages: ClassVar[bool] = True
    query: Question
    k: Most = 10

    def answer(self, served: ServedRelease) -> Json:
        return {"release": served.sha256, "passages": served.hits(self.query, self.k)}


class Passage(Request, frozen=True):
    """Read a passage by its id. `spans` contains the locations of its text in the page."""

    of_passages: ClassVar[bool] = True
    passage_id: Annotated[str, Meta(max_length=40, description="id from a search result, such as 12__0")]

    def answer(self, served: ServedRelease) -> Json:
        index, parts = served.searched.index, _PASSAGE.fullmatch(self.passage_id)
        hit = None if parts is None else index.find(int(parts[1]), int(parts[2]))
        if hit is None:
            raise RecordError("unknown_passage", f"{self.passage_id!r} is not the id of a passage")
        return {"release": served.sha256, **served.passage(hit)}


class ReadPage(Request, frozen=True):
    """Read a page: its title, headings, paragraphs and list items, each with its number. A long page is returned in
    parts: `next` is the `element` to request next, or null at the end."""

    page: PageName
    element: ElementNumber = 0

    def answer(self, served: ServedRelease) -> Json:
        page = served.page(self.page)
        return {**served.head(page), **_part(list(enumerate(page.elements)), self.element)}


class ReadSection(Request, frozen=True):
    """Read a section of a page, including its subsections, by its heading. The lead section has no heading; pass an
    empty text to read it."""

    page: PageName
    section: Annotated[
        str, Meta(max_length=LONGEST_QUERY, description="heading of the section, or its path of headings: A / B")
    ]
    element: ElementNumber = 0

    def answer(self, served: ServedRelease) -> Json:
        page = served.page(self.page)
        own = [pair for pair in enumerate(page.elements) if _is_in(pair[1], self.section)]
        if not own:
            headings = "; ".join(element.text for element in page.elements if element.kind == "heading")
            raise RecordError(
                "unknown_section", f"the page has no section {self.section!r}; its headings: {headings[:LONGEST_QUERY]}"
            )
        return {**served.head(page), **_part(own, self.element)}


class Resolve(Request, frozen=True):
    """Find the page that a title, a redirect, a URL, a page id or a Wikidata item resolves to. `by` and `hops` report
    how the page was found.
    """

    page: PageName

    def answer(self, served: ServedRelease) -> Json:
        found = served.resolve(self.page)
        return {"release": served.sha256, **found._asdict(), "revision_id": served.revision(found.page_id)}


class Links(Request, frozen=True):
    """List the links of a page, with their locations. With `direction` `out`, these are the links in the page, in the
    order of the text. With `in`, they are the pages that link to the page, ordered by page id, each with its first
    link."""

    page: PageName
    direction: Literal["out", "in"] = "out"
    start: Start = 0
    k: Most = MOST

    def answer(self, served: ServedRelease) -> Json:
        page, end = served.page(self.page), self.start + self.k
        links: list[Json] = []
        if self.direction == "out":
            n_links = len(page.anchors)
            for anchor in page.anchors[self.start : end]:
                target = {"page_id": anchor.target_page_id, "revision_id": served.revision(anchor.target_page_id)}
                named = {"title": anchor.target_title, "section": anchor.target_fragment}
                links.append({**target, **named, **_place_of(anchor)})
        else:
            backlinks, counted = served.finder.backlinks, served.finder.n_linking(page.page_id)
            if counted is None:
                raise RecordError(
                    "not_ready", backlinks.fault or f"links are being counted: {backlinks.percent} %; try again later"
                )
            n_links = counted
            for found in served.finder.linking(page.page_id, self.start, end):
                other = served.page(found.page_id)
                first = next(anchor for anchor in other.anchors if anchor.target_page_id == page.page_id)
                links.append({**served.head(other), **_place_of(first)})
        return {**served.head(page), "links": links, "n_links": n_links, "next": end if end < n_links else None}


class Cite(Request, frozen=True):
    """Return a part of an element verbatim, with the data needed to cite it."""

    page: PageName
    element: ElementNumber
    start_char: StartChar = 0
    end_char: EndChar | None = None

    def answer(self, served: ServedRelease) -> Json:
        page = served.page(self.page)
        if self.element >= len(page.elements):
            raise RecordError("unknown_element", f"{page.title} has {len(page.elements)} elements, numbered from 0")
        element = page.elements[self.element]
        end = len(element.text) if self.end_char is None else self.end_char
        if not self.start_char <= end <= len(element.text):
            raise RecordError(
                "bad_span",
                f"element {self.element} has {len(element.text)} characters, so {self.start_char} to {end} is not a "
                "part of it",
            )
        place = f"element {self.element}, characters {self.start_char} to {end}"
        return {
            **served.head(page),
            "section": element.section,
            "text": element.text[self.start_char : end],
            **_place((self.element, self.start_char), (self.element, end)),
            "citation": f"“{page.title}”, {served.source.site.dbname}, revision {page.revision_id} of "
            f"{instant_text(page.timestamp)}, {place}. {page.url}",
        }


class Check(Request, frozen=True):
    """Check whether a quote is in a page, in an element of the page, or between two characters of the element.
    `verified` is true if the quote is there verbatim, and the page has the revision `revision_id`, if given. `match` is
    `there`; `elsewhere` (verbatim in the page, but at another location, which is returned); `same_words` (only case and
    punctuation differ); `similar` (BLEU of 0.5 or more); or `absent`.
    """

    quote: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUOTE, description="the verbatim quote")]
    page: PageName
    revision_id: Annotated[int | None, Meta(description="revision that is quoted")] = None
    element: ElementNumber | None = None
    start_char: StartChar | None = None
    end_char: EndChar | None = None

    def answer(self, served: ServedRelease) -> Json:
        if (self.start_char is None) != (self.end_char is None) or (self.element is None and self.end_char is not None):
            raise RecordError("bad_span", "give element, start_char and end_char together, or only element")
        page = served.page(self.page)
        found = self._there(page) or _elsewhere(self.quote, page)
        if found is None and not is_blank(self.quote):
            found = served.align(self.quote, page)
        is_same = self.revision_id in (None, page.revision_id)
        found = {"match": "absent"} if found is None else {**found, "text": _text_at(page, found)}
        verified = found["match"] == "there" and is_same
        return {**served.head(page), "verified": verified, "is_same_revision": is_same, **found}

    def _there(self, page: Page) -> Json | None:
        """Returns the location of the quote if the requested location contains it."""
        if self.element is None:
            found = _elsewhere(self.quote, page)
            return found and {**found, "match": "there"}
        if self.element >= len(page.elements):
            return None
        text, start = page.elements[self.element].text, self.start_char
        if start is None:
            start = text.find(self.quote)
        elif text[start : self.end_char] != self.quote:
            return None
        end = start + len(self.quote)
        return None if start < 0 else {"match": "there", **_place((self.element, start), (self.element, end))}


class ColbertSearch(Search, frozen=True):
    """Find passages in the format of ColBERTv2 servers, for the client of DSPy."""

    def answer(self, served: ServedRelease) -> Json:
        topk = []
        for hit in served.hits(self.query, self.k):
            text = f"{hit['title']} | {hit['text']}"
            topk.append({**hit, "pid": hit["passage_id"], "text": text, "long_text": text})
        return {"release": served.sha256, "topk": topk}


class Retrieve(Request, frozen=True):
    """Find passages for several questions, in the format of Search-R1's retriever."""

    queries: Annotated[list[Question], Meta(min_length=1, max_length=MOST_QUERIES)]
    topk: Most | None = 3
    return_scores: bool = False

    def answer(self, served: ServedRelease) -> Json:
        (answer,) = deque(self.steps(served), maxlen=1)
        assert answer is not None
        return answer

    def steps(self, served: ServedRelease) -> Iterator[Json | None]:
        """Searches for one question per step."""
        k = self.topk or 3
        if k * len(self.queries) > MOST_FOUND:
            raise RecordError("too_much", f"{len(self.queries)} queries of {k}; request at most {MOST_FOUND} results")
        result: list[list[Json]] = []
        for query in self.queries:
            documents = [_document(hit) for hit in served.hits(query, k)]
            result.append(
                [{"document": document, "score": document["score"]} for document in documents]
                if self.return_scores
                else documents
            )
            yield None
        yield {"release": served.sha256, "result": result}


OPERATIONS: Mapping[str, type[Request]] = {
    "search": Search,
    "passage": Passage,
    "page": ReadPage,
    "section": ReadSection,
    "resolve": Resolve,
    "links": Links,
    "cite": Cite,
    "check": Check,
}
"""Operations by name. Each is a route and a tool."""
SHAPES: Mapping[str, type[Request]] = {"api/search": ColbertSearch, "retrieve": Retrieve}
"""Routes in the formats of other servers, so that their clients can be used."""
STATUS: Mapping[str, int] = {
    **dict.fromkeys(("bad_request", "bad_span", "too_much", "wrong_host"), 400),
    "other_site": 403,
    **dict.fromkeys(("unknown_address", "unknown_page", "unknown_section", "unknown_element"), 404),
    **dict.fromkeys(("unknown_passage", "no_passages"), 404),
    "wrong_method": 405,
    "too_large": 413,
    **dict.fromkeys(("damaged", "self_check"), 500),
    **dict.fromkeys(("busy", "not_ready", "too_slow"), 503),
}
"""HTTP status by reason of an error."""


def _document(hit: Json) -> Json:
    return {**hit, "id": hit["passage_id"], "contents": f'"{hit["title"]}"\n{hit["text"]}'}


def _place(start: tuple[int, int], end: tuple[int, int]) -> Json:
    return {"element": start[0], "start_char": start[1], "end_element": end[0], "end_char": end[1]}


def _place_of(anchor: Anchor) -> Json:
    return {"text": anchor.text, **_place((anchor.element, anchor.start), (anchor.element, anchor.end))}


def _text_at(page: Page, place: Json) -> str:
    texts = [element.text for element in page.elements[place["element"] : place["end_element"] + 1]]
    texts[-1] = texts[-1][: place["end_char"]]
    return "\n".join([texts[0][place["start_char"] :], *texts[1:]])


def _elsewhere(quote: str, page: Page) -> Json | None:
    """Returns the first verbatim occurrence of a quote in a page. It may span several elements, which are joined by
    newlines. White space around the quote is ignored."""
    quote = quote.strip()
    if not quote or (at := page.text.find(quote)) < 0:
        return None
    starts = [0, *accumulate(len(element.text) + 1 for element in page.elements)]
    first, last = (bisect_right(starts, place) - 1 for place in (at, at + len(quote) - 1))
    return {"match": "elsewhere", **_place((first, at - starts[first]), (last, at + len(quote) - starts[last]))}


def _is_in(element: Element, section: str) -> bool:
    """Returns whether an element is in a section, given by its heading or by its path."""
    if not section:
        return not element.section
    return section in element.section or f"{' / '.join(element.section)} / ".startswith(f"{section} / ")


def _part(elements: Iterable[tuple[int, Element]], first: int) -> Json:
    """Returns elements from a number on, as many as fit into an answer.

    Raises:
        RecordError: ``unknown_element``.
    """
    chosen: list[Json] = []
    n_chars = 0
    for number, element in elements:
        if number < first:
            continue
        n_chars += len(element.text)
        if chosen and n_chars > PAGE_CHARS:
            return {"elements": chosen, "next": number}
        place = {"element": number, "start_char": 0, "end_char": len(element.text)}
        chosen.append({**place, "kind": element.kind, "section": element.section, "text": element.text})
    if first and not chosen:
        raise RecordError("unknown_element", f"{first} is after the last element that this request can read")
    return {"elements": chosen, "next": None}
