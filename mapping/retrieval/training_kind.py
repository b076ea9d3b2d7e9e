"""The kind of release for training data.

::

    examples/              every example with its passages and target, by dataset
    batches/               for dpr: which examples make up each batch, in the order of training
    lines/DATASET.jsonl    the examples of a dataset as trainers read them
    lines/mixed.jsonl      all lines in a random order, if a model is trained with several datasets
    rejected/              questions without an example, and lines of runs that could not be used
    manifest.json          datasets, runs, passages, options and counts; written last
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

from kbsource.columns import rows_of, schema_of
from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Count, ListingManifest, SourceFacts, counts_shape, shape
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.training import (
    ROLES,
    TrainingBatch,
    TrainingExample,
    TrainingOptions,
    batches_of,
    line_of,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EXAMPLES, BATCHES, LINES, MIXED = "examples", "batches", "lines", "mixed"
TABLES = {EXAMPLES: schema_of(TrainingExample), BATCHES: schema_of(TrainingBatch), "rejected": schema_of(BadRecord)}
_MIXED = f"""
select dataset, number, query_id from examples order by sha256(concat_ws(chr(0), '{MIXED}', dataset, number))"""
_AT_ONCE = 10_000
_ROLES = ", ".join(f"'{role}'" for role in ROLES)


def training_options(facts: Mapping[str, Any]) -> TrainingOptions:
    """Returns the options of training data, from their manifest."""
    return TrainingOptions(**facts["options"])


def sizes_of(facts: Mapping[str, Any]) -> dict[str, int]:
    """Returns the number of examples of each dataset, in order, from a manifest."""
    return {str(dataset["name"]): int(dataset["examples"]) for dataset in facts["datasets"]}


def dataset_path(name: str) -> str:
    """Returns the path of the lines of a dataset, or of the mixed lines."""
    return f"{LINES}/{name}.jsonl"


def mixed_lines(
    db: DuckDBPyConnection, files: Mapping[str, BinaryIO], ends: Mapping[str, Sequence[int]]
) -> Iterator[tuple[bytes, str]]:
    """Reads the lines of all datasets in hash order, each with the id of its question. Only the order is sorted. Lines
    are read from their files one by one, because the passages of all examples can be much larger than the memory.

    Args:
        db: database with the table ``examples``.
        files: the lines of each dataset, in the order of its examples.
        ends: 0, and the end of each of these lines.
    """
    for batch in db.sql(_MIXED).to_arrow_reader(_AT_ONCE):
        for name, number, query_id in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            bounds = ends.get(name, ())[number : number + 2]
            if len(bounds) == 2:  # always, unless the table was changed
                files[name].seek(bounds[0])
                yield files[name].read(bounds[1] - bounds[0]), query_id


def is_mixed(options: TrainingOptions, sizes: Mapping[str, int]) -> bool:
    """Returns whether the lines of all datasets are also written mixed: if there are several datasets and one model is
    trained with them. The retriever is trained by batches, and AmbER has a reader for each task."""
    return options.form not in ("dpr", "amber") and len(sizes) > 1


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Recomputes lines and batches from the examples. Memory: a row group, and eight bytes per example. If there are
    mixed lines, all lines are copied to disk."""
    facts = checking.manifest.facts
    try:
        options, sizes = training_options(facts), sizes_of(facts)
        paths = {name: dataset_path(name) for name in sizes}
    except (KeyError, TypeError, SetupError):
        checking.found.add(MANIFEST, "manifest", "options and datasets are not in the form of training data")
        return None
    mixed = [dataset_path(MIXED)] if is_mixed(options, sizes) else []
    tables = {entry.file for entries in checking.manifest.tables.values() for entry in entries}
    if not checking.has_files({*tables, *paths.values(), *mixed}, exactly=True) or EXAMPLES not in checking.given:
        return None
    with ExitStack() as stack:
        made = {name: stack.enter_context(checking.remade(path, "line_differs")) for name, path in paths.items()}
        files = {name: stack.enter_context(TemporaryFile()) for name in paths} if mixed else {}
        ends = {name: array("q", [0]) for name in files}
        for example in _examples(checking):
            if (file := made.get(example.dataset)) is not None:
                file.write(line := line_of(example, options.form), example.query_id)
                if mixed:
                    files[example.dataset].write(line)
                    ends[example.dataset].append(ends[example.dataset][-1] + len(line))
        for path in mixed:
            with checking.remade(path, "line_differs") as again:
                for line, query_id in mixed_lines(checking.db, files, ends):
                    again.write(line, query_id)
    if options.form == "dpr" and BATCHES in checking.given:
        stored = (row for _, batch in checking.batches(BATCHES) for row in rows_of(batch, TrainingBatch))
        (entry,) = checking.manifest.tables[BATCHES]
        checking.same(entry.file, "batch_differs", stored, batches_of(sizes, options))
    return {}


def _examples(checking: Checking[ListingManifest]) -> Iterator[TrainingExample]:
    for _, batch in checking.batches(EXAMPLES):
        yield from rows_of(batch, TrainingExample)


class _DatasetFacts(TypedDict, total=False):
    """A dataset in a manifest."""

    name: str
    examples: Count


TRAINING_DATA = ListingKind(
    name="folder of training data",
    format="kbsource-training-data-1",
    facts=shape(
        "facts",
        passages=SourceFacts,
        datasets=list[_DatasetFacts],
        options=TrainingOptions,
        counts=counts_shape("queries"),
    ),
    made_by="kbsource training-data",
    card=CardText(
        title="Training data of retrievers and readers",
        summary="Questions with passages that contain evidence, passages that do not, and targets.",
        main="examples",
        holds=("wikipedia", "dataset"),
        tasks=("text-retrieval", "question-answering"),
        tags=("wikipedia", "KILT", "retrieval"),
    ),
    queries=(
        (
            "examples by dataset",
            "select dataset, count(*) as examples, avg(len(passages)) as passages from examples group by all "
            "order by dataset",
        ),
    ),
    tables=TABLES,
    required=(EXAMPLES, "rejected"),
    files=(LINES,),
    invariants=(
        Invariant(
            "invalid_example",
            "examples are not numbered consecutively, or a passage has no valid role",
            f"""case when len([passage for passage in passages if passage.role not in ({_ROLES})]) > 0
                then [dataset || ', ' || query_id] end""",
            table=EXAMPLES,
        ),
        Invariant(
            "invalid_example",
            "",
            """select _file, dataset || ', ' || query_id from (
                select *, row_number() over (partition by dataset order by _file_number, _row) - 1 as place
                from examples
            ) where number <> place""",
            needs=(EXAMPLES,),
        ),
        Invariant(
            "passage_differs",
            "a passage differs from the corpus",
            """select distinct own._file, one.passage_id
            from (select _file, unnest(passages) as one from examples) as own
            left join passages.passages as corpus on one.passage_id = corpus.passage_id
            where one.title is distinct from corpus.title or one.text is distinct from corpus.text""",
            needs=(EXAMPLES, "passages"),
        ),
        Invariant("line_differs", "a line of a file is not the one made from its example"),
        Invariant("batch_differs", "a batch differs from the one recomputed from the datasets and options"),
        Invariant(
            "counts",
            "",
            f"""select '{MANIFEST}', format('examples of {{}}: {{}} counted, {{}} written',
                coalesce(dataset, name), coalesce(counted, 0), coalesce(n, 0)::bigint)
            from (select dataset, count(*) as counted from examples group by all)
            full join settings on name = dataset where coalesce(counted, 0) <> coalesce(n, 0)""",
            needs=(EXAMPLES,),
        ),
    ),
    counts=(
        TableCount("counts.examples", "select count(*) from examples", summary="examples"),
        TableCount("counts.passages", "select sum(len(passages)) from examples"),
        TableCount("counts.rejected", "select count(*) from rejected"),
    ),
    settings=lambda manifest: sizes_of(manifest.facts),
    check=_check,
    made_from={"passages": MadeFrom(PASSAGES_CORPUS, "passages", ("passages",))},
    shown_by=((EXAMPLES, "query_id"), (EXAMPLES, "dataset"), (BATCHES, "dataset"), ("rejected", "key")),
)
