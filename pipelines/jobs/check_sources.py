"""Uses of references through an NLI model: whether what a source says of itself supports the sentence that cites it."""

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
from pipelines.options import CheckSourcesOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count

USES_TOGETHER = 512
"""That a worker takes at once: batches are made of these alone, so that the verdicts depend on nothing else."""
_TABLES = ("pages", "refs", "ref_uses")
_ROWS = 1024  # that are fetched at once

# A title ends in a full stop, unless in another mark; a shortened note has the title and the quote of what it names.
# Elements are joined one by one: a row with all those of its page would take a gigabyte for some thousand uses.
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


# Uses at one place are one; those in tables and infoboxes have none.
_ALL = """
    select count(distinct (page_id, ref, source_number, element, "offset")) filter (where element is not null)
        + count(*) filter (where element is null)
    from ref_uses join refs using (page_id, ref)
"""


class _Use(Row):
    """A use of a reference, and what a model is asked about it."""

    page_id: int
    ref: int
    source_number: int
    element: int
    offset: int
    premise: str  # title and quote of the source
    hypothesis: str  # the sentence

    @property
    def query_id(self) -> str:
        return f"{self.page_id}:{self.ref}:{self.source_number}:{self.element}:{self.offset}"


def check_sources(options: CheckSourcesOptions, *, flags: Sequence[str], progress: Progress) -> Counter[str]:
    """Writes a line for each use that has a sentence, and a source with a title or a quote; how many have each label,
    ``refusal`` where the model could not judge, ``not_asked`` those that lack one of these.

    Raises:
        SetupError: the release or the model is wrong, or the release has no references.
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
        counts = Counter(orjson.loads(line).get("label", "refusal") for line in file)
    return counts + Counter(not_asked=n_uses[0] - n_asked)


def _uses(folder: str, manifest: PagesManifest, n_uses: list[int]) -> Iterator[_Use]:
    """The uses that are asked about, in the order of the pages' files; ``n_uses`` takes the number of all. Memory holds
    what a file of references says. Raises DataError: a file is not as it was written."""
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
