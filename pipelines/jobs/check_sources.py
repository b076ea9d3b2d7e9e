"""Checks uses of references with an NLI model: does the source's title or quote support the sentence that cites it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import orjson

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.sql import add_tables, connected
from kbsource.rows import Row
from mapping.entail.model import CrossEncoder, open_model
from mapping.entail.signal import Pair, answer_values, model_folder, model_sha256
from mapping.passages.corpus import checked_pages
from pipelines.jobs.through_model import through_model
from pipelines.options.check_sources import CheckSourcesOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count

USES_TOGETHER = 512
"""Number of uses that a worker judges at once. A batch contains only these uses, so their verdicts do not depend on
other uses.
"""
_TABLES = ("pages", "refs", "ref_uses")
_ROWS = 1024  # rows fetched at once

# A title without final punctuation gets a full stop. A shortened note has the title and quote of its full reference.
# Elements are joined one by one. If each row contained all elements of its page, a few thousand uses would take 1 GB.
_PAIRS = """
    with source as (
        select own.page_id, own.ref, own.source_number,
            coalesce(named.title, own.title) as title, coalesce(named.quote, own.quote) as quote
        from refs as own
        left join refs as named
            on named.page_id = own.page_id and named.ref = own.source and named.source_number = 0
    )
    select distinct use.page_id, use.ref, source.source_number, use.element, use."offset",
        concat_ws(' ', regexp_replace(source.title, '[^.!?…。]$', '\\0.'), source.quote) as premise,
        substring(page.element.text, use.sentence_start + 1, use.sentence_end - use.sentence_start) as hypothesis
    from ref_uses as use
    join (select page_id, unnest(elements) as element from pages) as page
        on page.page_id = use.page_id and page.element.index = use.element
    join source on source.page_id = use.page_id and source.ref = use.ref
    where use.sentence_start is not null and coalesce(source.title, source.quote) is not null
    order by all
"""


# Uses at the same position are merged; uses in tables and infoboxes have no position.
_ALL = """
    select count(distinct (page_id, ref, source_number, element, "offset")) filter (where element is not null)
        + count(*) filter (where element is null)
    from ref_uses join refs using (page_id, ref)
"""


class _Use(Row):
    """A use of a reference, with the premise and hypothesis for a model."""

    page_id: int
    ref: int
    source_number: int
    element: int
    offset: int
    premise: str  # title and quote of the source
    hypothesis: str  # the sentence that cites the source

    @property
    def query_id(self) -> str:
        return f"{self.page_id}:{self.ref}:{self.source_number}:{self.element}:{self.offset}"


def check_sources(options: CheckSourcesOptions, *, flags: Sequence[str], progress: Progress) -> Counter[str]:
    """Writes a line for each use that has a sentence and a source with a title or quote. Returns the number of uses by
    label. ``unjudged`` counts the uses that the model could not judge. ``not_judgeable`` counts the uses without a
    sentence, or with neither a title nor a quote.

    Raises:
        SetupError: the release or the model cannot be used, or the release has no references.
    """
    manifest = PAGES_RELEASE.read(options.kb)
    if "refs" not in manifest.tables:
        raise SetupError(f"{options.kb}: has no references; build it with --references.")
    model, n_uses = options.model, [0]
    n_asked, _ = through_model(
        _uses(options.kb, manifest, n_uses),
        options.output,
        source=options.kb,
        row=_Use,
        unit="uses",
        name="check sources",
        together=USES_TOGETHER,
        decides=(
            manifest.sha256,
            model_sha256(model_folder(model), model.backend),
            f"{model.precision} {model.labels}",
        ),
        model=model,
        open_model=partial(open_model, model),
        answer=_verdicts,
        flags=flags,
        progress=progress,
    )
    with Folder.of(options.output).open() as file:
        counts = Counter(orjson.loads(line).get("label", "unjudged") for line in file)
    return counts + Counter(not_judgeable=n_uses[0] - n_asked)


def _uses(folder: str, manifest: PagesManifest, n_uses: list[int]) -> Iterator[_Use]:
    """Reads the uses to judge, in the order of the files of pages, and stores the number of all uses in ``n_uses``.
    Memory: one file of references. Raises DataError if a file has changed since it was written."""
    with connected(reads=[folder]) as db:
        for files in zip(*(manifest.tables[table] for table in _TABLES), strict=True):
            for entry in files:
                checked_pages(folder, entry)
            tables = {table: [entry.file] for table, entry in zip(_TABLES, files, strict=True)}
            add_tables(db, PAGES_RELEASE.declared, tables, folder)
            n_uses[0] += db.execute(_ALL).fetchall()[0][0]
            result = db.execute(_PAIRS)
            while rows := result.fetchmany(_ROWS):
                yield from (_Use(*row) for row in rows)


def _verdicts(model: CrossEncoder, uses: Sequence[_Use]) -> Iterator[bytes]:
    count({"model_calls": 1, "model_pairs": len(uses)})
    answers = model.judge([Pair(use.premise, use.hypothesis) for use in uses])
    for use, answer in zip(uses, answers, strict=True):
        named = {name: getattr(use, name) for name in use.__struct_fields__}
        yield orjson.dumps(named | answer_values(answer), option=orjson.OPT_APPEND_NEWLINE)
