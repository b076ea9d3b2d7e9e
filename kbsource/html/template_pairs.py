"""Compares, for each use of a template on a rendered page, the text that readers see with the text that the rules
produce.

A rendered page also contains the uses of templates as written, so the wikitext is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.html.comparing import has_formulas, words_of
from kbsource.html.paired_pages import PairedPage, RecordCounts, process_pairs, processed
from kbsource.html.text_runs import HtmlRunReader
from kbsource.runtime.beat import Beat
from kbsource.runtime.database import connected, insert
from kbsource.site import Site
from kbsource.temporary import TemporaryFolder
from kbsource.wikitext.parse import PAGE_FAULTS, WikitextParser

# The result of a rule may depend on whether there are words before and after the template.
_BEFORE, _AFTER = "Xqzv", "vzqX"
_BATCH_ROWS = 10_000
_ROWS = pa.schema(
    [
        pa.field("use_id", pa.int64()),  # in the order of the snapshot
        pa.field("page", pa.string()),
        *(pa.field(name, pa.string()) for name in ("template", "outcome", "call", "shown", "own")),
        pa.field("is_same", pa.bool_()),
    ]
)


class CallPair(NamedTuple):
    """A use of a template in the running text of a page."""

    template: str  #: name in normal form
    outcome: str  #: outcome of the use according to the rules
    call: str  #: the use as written
    shown: str  #: the text that readers see, on one line
    own: str  #: the text that the rules produce for the use, on one line
    is_same: bool  #: true if both texts have the same words


class CallPairs(NamedTuple):
    """The uses of templates on a page, in order."""

    title: str
    pairs: tuple[CallPair, ...]


class PairReader:
    """Reads the uses of templates on a wiki's pages. It holds caches; create one per process."""

    def __init__(self, site: Site) -> None:
        self._html, self._wikitext = HtmlRunReader(site), WikitextParser(site)

    def pairs(self, page: PairedPage) -> CallPairs:
        """Returns the uses of templates in the running text of a page. Skips those inside other templates, and those
        that produce a part of the page together with other templates.

        Raises:
            RecordError: as for ``HtmlReader.parse``.
        """
        formulas = has_formulas(page.html)
        found: list[CallPair] = []
        for name, call, text in self._html.calls(page.html, title=page.title):
            outcome, own = self._own(page, name, call)
            shown = " ".join(text.split())
            is_same = words_of(shown, has_formulas=formulas) == words_of(own, has_formulas=formulas)
            found.append(CallPair(name, outcome, call, shown, own, is_same))
        return CallPairs(page.title, tuple(found))

    def _own(self, page: PairedPage, name: str, call: str) -> tuple[str, str]:
        """Returns the outcome of a use according to the rules, and the text that they produce for it within a
        sentence.
        """
        written = f"{_BEFORE} {call} {_AFTER}"
        try:
            parsed = self._wikitext.parse(written, title=page.title, timestamp=page.timestamp)
        except PAGE_FAULTS:
            return "failed", ""
        text = " ".join(element.text for element in parsed.elements[1:])
        start, end = text.find(_BEFORE), text.rfind(_AFTER)
        text = text[start + len(_BEFORE) if start >= 0 else 0 : end if end >= 0 else len(text)]
        outcomes = {use.name: use.outcome for use in parsed.templates}
        return outcomes.get(name, "not_seen"), " ".join(text.split())


def pairs_task(task: dict[str, Any], beat: Beat) -> Any:
    """Reads the uses of templates on a page. Runs in a guarded process, see ``process_pairs``."""
    return processed(task, beat, _pair_reader)


def _pair_reader(site: Site) -> Callable[[PairedPage], CallPairs]:
    return PairReader(site).pairs


@dataclass(frozen=True, slots=True)
class TemplatePairs:
    """The uses of templates in a snapshot."""

    counts: RecordCounts
    uses: int
    differing: int  #: number of uses whose words differ
    n_templates: int
    n_differing_templates: int
    templates: list[dict[str, Any]]  #: see ``pair_templates``


def pair_templates(paths: Sequence[str], *, n_templates: int, n_calls: int, **limits: Any) -> TemplatePairs:
    """Compares the uses of templates in all articles of a snapshot.

    A row of ``templates`` contains a ``template``, the numbers of its ``uses``, of ``differing`` uses and of ``pages``
    that use it, and ``calls``. Identical uses form one call, with ``call`` (the use as written), ``shown``, ``own``,
    ``outcome``, ``is_same``, the number of ``uses`` and the first ``page``. Differing calls come first, and among them
    the most frequent.

    Memory is bounded, because uses are collected on disk.

    Args:
        n_templates: maximum number of templates to return.
        n_calls: maximum number of calls of each template.
        limits: further arguments of ``process_pairs``. Its errors are raised.
    """
    counts = RecordCounts()
    pages = process_pairs(paths, f"{__name__}:pairs_task", CallPairs, counts=counts, needs_wikitext=False, **limits)
    with TemporaryFolder() as folder, connected(scratch=folder, threads=1) as db:
        insert(db, "uses", _batches(pages), _ROWS)
        db.execute(_CALLS)
        ((uses, differing, n_all, n_differing),) = db.execute(_SUMS).fetchall()
        rows = db.execute(_TEMPLATES, {"n_templates": n_templates, "n_calls": n_calls}).fetchall()
        names = "template", "uses", "differing", "pages", "calls"
        templates = [dict(zip(names, row, strict=True)) for row in rows]
    return TemplatePairs(counts, uses, differing, n_all, n_differing, templates)


def _batches(pages: Iterator[CallPairs]) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[Any, ...]] = []
    use_id = 0
    for page in pages:
        for pair in page.pairs:
            rows.append((use_id, page.title, *pair))
            use_id += 1
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), _ROWS.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(*column) for column in columns], schema=_ROWS)


_CALLS = """create table calls as select template, call, shown, own, outcome, is_same, count(*)::bigint as uses,
    min(use_id) as use_id, arg_min(page, use_id) as page from uses group by all"""
_SUMS = """select count(*)::bigint, (count(*) filter (where not is_same))::bigint, count(distinct template)::bigint,
    (count(distinct template) filter (where not is_same))::bigint from uses"""
_TEMPLATES = """
with worst as (
    select template, count(*)::bigint as uses, (count(*) filter (where not is_same))::bigint as differing,
        count(distinct page)::bigint as pages
    from uses group by template order by differing desc, uses desc, template limit $n_templates
), ranked as (
    select calls.*, row_number() over (partition by template order by is_same, uses desc, use_id) as n
    from calls semi join worst using (template)
)
select template, max(worst.uses), max(worst.differing) as differing, max(worst.pages),
    list({'call': call, 'shown': shown, 'own': own, 'outcome': outcome, 'is_same': is_same, 'uses': ranked.uses,
        'page': page} order by n)
from worst join ranked using (template) where n <= $n_calls
group by template order by differing desc, max(worst.uses) desc, template"""
