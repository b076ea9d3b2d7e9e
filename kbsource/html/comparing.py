"""Compares the text extracted from a page's wikitext with the text that readers see, word by word and link by link."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappush, heappushpop
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kbsource.html.common_words import common_words
from kbsource.html.paired_pages import PairedPage, RecordCounts, process_pairs, processed
from kbsource.html.side_by_side import LinePair, side_by_side
from kbsource.html.text_runs import HtmlRunReader, TextRun
from kbsource.records import Element
from kbsource.runtime.beat import Beat
from kbsource.site import Site
from kbsource.titles import split_namespace
from kbsource.wikitext.parse import ParsedText, WikitextParser

TEXT = "text"
"""Kind of a missing word that is in the page's own wikitext, not in the output of a template."""
NOT_SEEN = "not_seen"
"""Kind of a missing word from a use of a template that the wikitext parser did not find."""
UNDEFINED = frozenset({"unknown", NOT_SEEN})
"""Kinds of missing words from templates that neither the snapshot nor a rule defines."""

_FORMULA = "\x01"
_HAS_FORMULAS = re.compile(r"mw:Extension/(?:math|chem|ce)\b|mwe-math-element|<math\b")
_TEX = re.compile(r"\$[^$\n]+\$")
_RAISED = re.compile(r"\^\(([^()]*)\)")
_INVISIBLE = str.maketrans({"\u00ad": None, "\u200b": None, "’": "'"})
# Scripts without spaces between words: each letter counts as a word.
_LETTERS = r"[^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_FORMULA}|{_LETTERS}+(?:'{_LETTERS}+)*|[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_EXAMPLE_CHARS = 100


def words_of(text: str, *, has_formulas: bool = False) -> list[str]:
    """Returns the words of a text: runs of letters and digits; with ``has_formulas``, a formula is one word.

    >>> words_of("It’s 10^(3) m² of façade.")
    ["It's", '103', 'm2', 'of', 'façade']
    """
    return _WORD.findall(_plain(text, has_formulas=has_formulas))


def _plain(text: str, *, has_formulas: bool) -> str:
    if has_formulas:
        text = _TEX.sub(f" {_FORMULA} ", text)
    return unicodedata.normalize("NFKC", _RAISED.sub(r"\1", text)).translate(_INVISIBLE)


def _words_with_templates(runs: Iterable[TextRun], *, has_formulas: bool) -> Iterator[tuple[str, str]]:
    """Yields the words of a page, each with the template in whose output it begins."""
    for is_end, line in groupby(runs, key=lambda run: run.text == "\n"):
        if is_end:
            continue
        pieces, ends, names = [], [], []
        length = 0
        for run in line:
            piece = _plain(run.text, has_formulas=has_formulas)
            pieces.append(piece)
            length += len(piece)
            ends.append(length)
            names.append(run.template)
        at = 0
        for found in _WORD.finditer("".join(pieces)):
            while ends[at] <= found.start():
                at += 1
            yield found[0], names[at]


class MissingWords(NamedTuple):
    """Consecutive words of a page that are missing in the text from its wikitext."""

    template: str  #: name of the template that shows them, see ``TextRun``
    kind: str  #: outcome of the template in the wikitext, ``TEXT`` or ``NOT_SEEN``
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageComparison:
    """The number of words and links on a page, and how many of them the text from its wikitext contains.

    Words are those of the running text, without the title, tables and infoboxes. Links are links to articles, each with
    its target and its text.
    """

    title: str
    words: int  #: words of the page
    found: int  #: words of the page that the text from the wikitext contains, in the same order
    own_words: int  #: words of the text from the wikitext
    undefined_words: int  #: words of the page that come from templates without a definition
    undefined_found: int  #: those of ``undefined_words`` that the text from the wikitext contains
    links: int  #: links of the page
    links_found: int
    own_links: int  #: links in the text from the wikitext
    missing: tuple[MissingWords, ...] = ()  #: in order
    lines: tuple[LinePair, ...] = ()  #: the lines of both texts side by side, if requested

    @property
    def differing(self) -> int:
        """Number of differing words: words of the page that are not in the other text, and words of the other text that
        are not on the page.
        """
        return self.words + self.own_words - 2 * self.found


def compare_page(
    title: str,
    page: ParsedText,
    runs: Sequence[TextRun],
    own: ParsedText,
    *,
    site: Site,
    has_formulas: bool = False,
    with_lines: bool = False,
) -> PageComparison:
    """Compares the content of a page, read from its HTML, with the content read from its wikitext.

    With ``with_lines``, the result contains both texts side by side.

    Raises:
        RecordError: as for ``common_words``.
    """
    words = _body_words(page.elements, has_formulas=has_formulas)
    own_words = _body_words(own.elements, has_formulas=has_formulas)
    templates = _templates_of(words, list(_words_with_templates(runs, has_formulas=has_formulas)))
    pairs = common_words(words, own_words)
    is_found = bytearray(len(words))
    for at, _ in pairs:
        is_found[at] = 1
    outcomes = _outcomes(own)
    kinds = {name: outcomes.get(name, NOT_SEEN) if name else TEXT for name in set(templates)}
    missing = [
        MissingWords(name, kinds[name], tuple([words[at] for at in range(start, end)]))
        for name, start, end in _gaps(is_found, templates)
    ]
    undefined = [at for at, name in enumerate(templates) if kinds[name] in UNDEFINED]
    links, own_links = _links_of(page, title, site), _links_of(own, title, site)
    lines: Iterable[LinePair] = ()
    if with_lines:
        split = partial(words_of, has_formulas=has_formulas)
        shown, made = ([element.text for element in text.elements[1:]] for text in (page, own))
        lines = side_by_side(shown, made, pairs, split, has_formulas=has_formulas)
    return PageComparison(
        title=title,
        words=len(words),
        found=len(pairs),
        own_words=len(own_words),
        undefined_words=len(undefined),
        undefined_found=sum(is_found[at] for at in undefined),
        links=links.total(),
        links_found=(links & own_links).total(),
        own_links=own_links.total(),
        missing=tuple(missing),
        lines=tuple(lines),
    )


def _outcomes(own: ParsedText) -> dict[str, str]:
    """Returns the outcome of each template. If a template has several outcomes, one without a definition is returned
    first.
    """
    outcomes: dict[str, str] = {}
    for use in own.templates:
        if use.outcome in UNDEFINED or use.name not in outcomes:
            outcomes[use.name] = use.outcome
    return outcomes


def _body_words(elements: Iterable[Element], *, has_formulas: bool) -> list[str]:
    words: list[str] = []
    for element in elements:
        if element.kind != "title":
            words += words_of(element.text, has_formulas=has_formulas)
    return words


def _templates_of(words: Sequence[str], traced: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the template of each word; empty for a word that is not among ``traced``."""
    if len(words) == len(traced) and all(word == own for word, (own, _) in zip(words, traced, strict=True)):
        return [name for _, name in traced]
    templates = [""] * len(words)
    for at, own_at in common_words(words, [word for word, _ in traced]):
        templates[at] = traced[own_at][1]
    return templates


def _gaps(is_found: bytearray, templates: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yields the runs of missing words from the same template, as ``[start, end)``."""
    start = 0
    for (found, name), run in groupby(zip(is_found, templates, strict=True)):
        end = start + sum(1 for _ in run)
        if not found:
            yield name, start, end
        start = end


def _links_of(page: ParsedText, title: str, site: Site) -> Counter[tuple[str, str]]:
    """Returns the number of links to articles in the running text, by target and words."""
    return Counter(
        (anchor.target_title or title, " ".join(_plain(anchor.text, has_formulas=False).split()))
        for anchor in page.anchors
        if not split_namespace(anchor.target_title, site)[0]
    )


@dataclass(slots=True)
class TemplateLoss:
    """The missing words of a template with one outcome."""

    words: int = 0
    pages: int = 0
    title: str = ""  #: title of the first page with missing words
    example: str = ""  #: the first missing words on this page


@dataclass(slots=True)
class TextCheck:
    """The result of a comparison of the pages in a snapshot. Memory grows only with the number of templates.

    ``n_worst`` is the number of most differing pages to keep.
    """

    n_worst: int
    counts: RecordCounts = field(default_factory=RecordCounts)
    sums: Counter[str] = field(default_factory=Counter)  #: sums of the numbers of ``PageComparison``, by name
    kinds: Counter[str] = field(default_factory=Counter)  #: number of missing words by kind
    templates: dict[tuple[str, str], TemplateLoss] = field(default_factory=dict)  #: by name and kind
    _n_added: int = field(default=0, init=False)
    _heap: list[tuple[int, int, PageComparison]] = field(default_factory=list, init=False)

    def add(self, page: PageComparison) -> None:
        """Adds the comparison of a page."""
        self._n_added += 1
        self.sums.update({name: getattr(page, name) for name in COMPARED})
        for key, runs in groupby(sorted(page.missing, key=_CALL), key=_CALL):
            own = list(runs)
            n_words = sum(len(run.words) for run in own)
            self.kinds[key[1]] += n_words
            loss = self.templates.setdefault(key, TemplateLoss())
            loss.words += n_words
            loss.pages += 1
            if not loss.title:
                loss.title = page.title
                loss.example = " ".join(own[0].words).replace(_FORMULA, "$")[:_EXAMPLE_CHARS]
        if page.differing:
            entry = page.differing, -self._n_added, page
            if len(self._heap) < self.n_worst:
                heappush(self._heap, entry)
            else:
                heappushpop(self._heap, entry)

    def worst(self) -> list[PageComparison]:
        """Returns the pages that differ most, in descending order."""
        return [page for *_, page in sorted(self._heap, reverse=True)]

    def losses(self) -> list[tuple[str, str, TemplateLoss]]:
        """Returns the name, the kind and the missing words of each template that has any. Templates with the most
        missing words come first.
        """
        found = [(name, kind, loss) for (name, kind), loss in self.templates.items()]
        return sorted(found, key=lambda entry: (-entry[2].words, entry[:2]))


COMPARED = ("words", "found", "own_words", "undefined_words", "undefined_found", "links", "links_found", "own_links")
"""The numbers of a comparison."""
_CALL = itemgetter(0, 1)  # of Missing


class PageComparer:
    """Compares the HTML and the wikitext of a wiki's pages. It holds caches; create one per process."""

    def __init__(self, site: Site, *, with_lines: bool = False) -> None:
        self._html, self._wikitext = HtmlRunReader(site), WikitextParser(site)
        self._site, self._with_lines = site, with_lines

    def compare(self, paired: PairedPage) -> PageComparison:
        """Returns the comparison of a page.

        Raises:
            RecordError: as for ``HtmlReader.parse`` and ``common_words``.
        """
        title = paired.title
        page, runs = self._html.parse(paired.html, title=title)
        own = self._wikitext.parse(paired.wikitext, title=title, timestamp=paired.timestamp)
        formulas = has_formulas(paired.html)
        return compare_page(title, page, runs, own, site=self._site, has_formulas=formulas, with_lines=self._with_lines)


def has_formulas(html: str) -> bool:
    """Returns whether a page has formulas. If so, text between dollar signs is a formula."""
    return _HAS_FORMULAS.search(html) is not None


def check_text(paths: Sequence[str], *, n_worst: int, with_lines: bool = False, **limits: Any) -> TextCheck:
    """Compares the wikitext and the HTML of every article in the files of a snapshot.

    ``with_lines`` includes both texts of the pages that differ most. ``limits`` is passed to ``process_pairs``, and its
    errors are raised.
    """
    check = TextCheck(n_worst)
    task = "compare_lines_task" if with_lines else "compare_task"
    pages = process_pairs(paths, f"{__name__}:{task}", PageComparison, counts=check.counts, **limits)
    for page in pages:
        check.add(page)
    return check


def compare_task(task: dict[str, Any], beat: Beat) -> Any:
    """Compares a page. Runs in a guarded process, see ``process_pairs``."""
    return processed(task, beat, _comparer)


def _comparer(site: Site) -> Callable[[PairedPage], PageComparison]:
    return PageComparer(site).compare


def compare_lines_task(task: dict[str, Any], beat: Beat) -> Any:
    """Compares a page like ``compare_task``, and returns both texts too."""
    return processed(task, beat, _line_comparer)


def _line_comparer(site: Site) -> Callable[[PairedPage], PageComparison]:
    return PageComparer(site, with_lines=True).compare
