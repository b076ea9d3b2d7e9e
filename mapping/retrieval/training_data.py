"""Makes training data from datasets, runs and passages; ``mapping.retrieval.training`` defines the examples."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from msgspec import structs

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.records import BadRecord
from kbsource.release.kind import kind_of, read_content
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.sql import add_release, add_tables, connected, with_counts
from kbsource.release.writer import LinesFile, RejectedRows, write_lines, write_rejected, write_rows
from kbsource.runtime.database import insert
from mapping.contexts.gold import GoldPassages
from mapping.contexts.questions import ReleaseQuestions
from mapping.contexts.records import SEPARATOR
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.beir import RECORDS, RELEVANT, records_file
from mapping.retrieval.queries import Hit, Query, queries_of, read_queries
from mapping.retrieval.runs import page_and_number, ranked_queries
from mapping.retrieval.training import (
    NEGATIVE,
    TrainingExample,
    TrainingOptions,
    TrainingQuery,
    answer_targets,
    batches_of,
    examples_of,
    line_of,
)
from mapping.retrieval.training_kind import (
    BATCHES,
    EXAMPLES,
    MIXED,
    TABLES,
    TRAINING_DATA,
    dataset_path,
    is_mixed,
    mixed_lines,
)
from mapping.write.kind import ALIGNMENT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EVIDENCE, _OTHER, _RANKED = range(3)
_GROUP_ROWS = 512
_AT_ONCE = 10_000
_RANKED_AT_ONCE = 1_000
_MEMORY_MB = 400
"""Memory limit of a database, in MB; joins and sorted passages that exceed it are spilled to disk."""
_NEEDS_RUN = ("dpr", "fid", "pig", "fact-checking", "amber")
_QUERIES = pa.schema([("example_id", pa.string()), ("place", pa.int64())])
_WANTED = pa.schema(
    [
        ("place", pa.int64()),
        ("role", pa.int32()),
        ("rank", pa.int64()),
        ("passage_id", pa.string()),
        ("score", pa.float64()),
    ]
)
_EVIDENCE_ROWS = f"""
insert into wanted select place, {_EVIDENCE}, file_number::bigint << 32 | row, passage_id, null
from ({RELEVANT.format(any_passage=False)})"""
_OTHERS = f"""
insert into wanted select place, {_OTHER}, _file_number::bigint << 32 | _row, passage_id, null from (
    select distinct place, page_id from queries join alignments using (example_id)
    where is_written and output >= 0 and page_id is not null
) join passages using (page_id)
where (place, passage_id) not in (select (place, passage_id) from wanted where role = {_EVIDENCE})"""
_PLACES = "select example_id, place from queries where example_id in (select unnest(?::varchar[])) order by place"
_UNKNOWN = """
select min(passage_id) from wanted anti join passages using (passage_id) where not ends_with(passage_id, '__0')"""
_TEXTS = """
select place, role, passage_id, page_id, title, text, score from wanted join passages using (passage_id)
order by place, role, rank"""


class _TrainingQuestion(NamedTuple):
    """A question of a dataset."""

    query: Query
    target: str | None = None  # all answers of a question of QAMPARI
    targets: Mapping[str, str] = {}  # answers proved by its evidence, by passage


class _Dataset(NamedTuple):
    """A dataset whose questions can be read several times, always in the same order."""

    name: str
    folder: str
    manifest_sha256: str
    questions: Callable[[], Iterator[_TrainingQuestion]]
    is_aligned: bool = True  # whether the evidence follows from the table ``alignments``


@dataclass(slots=True)
class _Output:
    """The output written for the datasets."""

    rejected: RejectedRows
    facts: list[dict[str, object]] = field(default_factory=list)
    entries: list[FileEntry] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    ends: dict[str, array[int]] = field(default_factory=dict)  # end of each line of a dataset in its file


def make_training_data(
    datasets: Sequence[str], passages: str, runs: Sequence[str], output: str, options: TrainingOptions
) -> ListingManifest:
    """Writes the examples of datasets, and returns the manifest.

    Memory: about 400 MB for joins, a row group, one byte per question, and eight per example.

    Args:
        datasets: folders of alignments or of QAMPARI releases.
        runs: for each dataset, the search results for its questions, in the same order; may be empty only for seq2seq.

    Raises:
        SetupError: an input is invalid, or the inputs do not belong to one release.
    """
    if runs and len(runs) != len(datasets):
        raise SetupError(
            f"--retrieved: there are {len(runs)} files for {len(datasets)} datasets; give one file for each dataset, "
            f"in the same order."
        )
    if not runs and options.form in _NEEDS_RUN:
        raise SetupError(
            f"--for {options.form} needs --retrieved, the results of kbsource search for the questions of each dataset."
        )
    if not runs and options.top is not None:
        raise SetupError("--top limits the passages of --retrieved, which is missing; leave --top out.")
    corpus = PASSAGES_CORPUS.read(passages)
    check_output(output)
    check_hashes(passages, corpus.tables[TABLE])
    with ReleaseFolder(output, kind=TRAINING_DATA), RejectedRows() as rejected:
        written = _Output(rejected)
        rows = _examples(datasets, passages, runs, options, output=output, written=written)
        examples = write_rows(rows, EXAMPLES, TABLES[EXAMPLES], output=output, group_rows=_GROUP_ROWS)
        sizes = {str(dataset["name"]): int(str(dataset["examples"])) for dataset in written.facts}
        entries = [examples, *written.entries]
        if is_mixed(options, sizes):
            with connected(reads=[output], memory_mb=_MEMORY_MB, threads=1) as db, ExitStack() as stack:
                add_tables(db, TRAINING_DATA.declared, {EXAMPLES: [examples.file]}, output)
                paths = {name: join(output, dataset_path(name)) for name in sizes}
                files = {name: stack.enter_context(Folder.of(path).open_ranges()) for name, path in paths.items()}
                mixed = (line for line, _ in mixed_lines(db, files, written.ends))
                entries.append(write_lines(mixed, dataset_path(MIXED), output=output))
        if options.form == "dpr":
            entries.append(write_rows(batches_of(sizes, options), BATCHES, TABLES[BATCHES], output=output))
        entries.append(write_rejected(rejected, output=output))
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "datasets": written.facts,
            "inputs": [asdict(input_file) for input_file in input_files(runs)],
            "options": options.facts(),
            "counts": {"queries": written.counts["queries"]},
            "code": code_facts(),
        }
        facts = with_counts(TRAINING_DATA, entries, facts, output)
        manifest = TRAINING_DATA.listing(entries, facts)
        commit(TRAINING_DATA, manifest, output)
    return manifest


def _examples(
    datasets: Sequence[str],
    passages: str,
    runs: Sequence[str],
    options: TrainingOptions,
    *,
    output: str,
    written: _Output,
) -> Iterator[TrainingExample]:
    """Makes the examples of all datasets, and writes lines, counts and rejected questions."""
    names: set[str] = set()
    for number, folder in enumerate(datasets):
        with ExitStack() as stack:
            db = stack.enter_context(connected(reads=[folder, passages], memory_mb=_MEMORY_MB, threads=1))
            dataset = _read_dataset(db, folder, passages, options, stack)
            if dataset.name in names or dataset.name == MIXED:
                raise SetupError(f"{folder}: the dataset {dataset.name} is given twice; give it only once.")
            names.add(dataset.name)
            counts = Counter(queries=_add_questions(db, dataset, options))
            reasons = written.rejected.reasons.copy()
            if runs:
                _add_run(db, dataset, runs[number], options, written.rejected, n_queries=counts["queries"])
            lines = stack.enter_context(LinesFile(output, dataset_path(dataset.name)))
            ends = written.ends[dataset.name] = array("q", [0])
            for source in _sources(db, dataset):
                try:
                    made = examples_of(source, options)
                except RecordError as error:
                    bad = BadRecord(dataset.name, source.query.query_id, error.reason, error.detail, "", -1)
                    written.rejected.append(bad)
                    continue
                counts["without_negatives"] += all(
                    passage.role != NEGATIVE for example in made for passage in example.passages
                )
                for example in made:
                    numbered = structs.replace(example, number=counts["examples"])
                    counts["examples"] += 1
                    counts["passages"] += len(example.passages)
                    lines.write(line := line_of(numbered, options.form))
                    ends.append(ends[-1] + len(line))
                    yield numbered
        written.entries.append(lines.entry)
        written.counts += counts
        reasons = written.rejected.reasons - reasons
        written.facts.append(
            {
                "name": dataset.name,
                "manifest_sha256": dataset.manifest_sha256,
                "queries": counts["queries"],
                "examples": counts["examples"],
                **({"without_negatives": counts["without_negatives"]} if options.value("negatives") else {}),
                "rejected": dict(sorted(reasons.items())),
            }
        )


def _read_dataset(
    db: DuckDBPyConnection, folder: str, passages: str, options: TrainingOptions, stack: ExitStack
) -> _Dataset:
    """Returns a dataset, and loads its tables and the tables of the corpus into the database.

    Args:
        stack: closes the resources for reading its questions.
    """
    corpus = PASSAGES_CORPUS.read(passages)
    add_release(db, PASSAGES_CORPUS, passages, places=True)
    kind = kind_of(read_content(folder), join(folder, MANIFEST), (ALIGNMENT, QAMPARI_RELEASE))
    if kind is QAMPARI_RELEASE:
        if options.form not in ("dpr", "seq2seq", "fid", "pig"):
            raise SetupError(f"{folder}: --for {options.form} does not accept questions of QAMPARI; leave them out.")
        return _read_qampari(folder, passages, corpus, options, stack)
    aligned = ALIGNMENT.read(folder)
    if aligned.made_from() != corpus.made_from():
        raise SetupError(f"{folder} and {passages} are made from different releases; name data from the same release.")
    check_hashes(folder, aligned.entries())
    add_release(db, ALIGNMENT, folder)
    records = records_file(aligned)
    path = join(folder, records)
    return _Dataset(
        records.removesuffix(RECORDS), folder, aligned.sha256, lambda: map(_TrainingQuestion, read_queries(path))
    )


def _read_qampari(
    folder: str, passages: str, corpus: ListingManifest, options: TrainingOptions, stack: ExitStack
) -> _Dataset:
    questions = ReleaseQuestions(folder)
    questions.check(corpus)
    gold = stack.enter_context(GoldPassages())
    questions.add_places(gold)
    gold.find([join(passages, entry.file) for entry in corpus.tables[TABLE]])

    def read_questions() -> Iterator[_TrainingQuestion]:
        for split, record in questions.read():
            if split != options.split:
                continue
            proven = [
                (
                    str(answer["answer_text"]),
                    [
                        passage.passage_id
                        for proof in answer["proof"]
                        if (passage := gold.of_proof(proof["pid"])) is not None
                    ],
                )
                for answer in record["answer_list"]
            ]
            target = SEPARATOR.join(answer for answer, _ in proven)
            for query in queries_of(record):
                yield _TrainingQuestion(query, target, answer_targets(proven))

    return _Dataset(
        f"qampari-{options.split}", folder, str(questions.facts()["manifest_sha256"]), read_questions, is_aligned=False
    )


def _insert(db: DuckDBPyConnection, table: str, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> None:
    """Adds rows to a table, and creates the table if it is missing."""
    numbered = iter(rows)

    def batches() -> Iterator[pa.RecordBatch]:
        while group := list(islice(numbered, _AT_ONCE)):
            columns = zip(zip(*group, strict=True), schema.types, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(column, type_) for column, type_ in columns], schema=schema)

    insert(db, table, batches(), schema)


def _add_questions(db: DuckDBPyConnection, dataset: _Dataset, options: TrainingOptions) -> int:
    """Makes the tables ``queries`` and ``wanted`` (the evidence and the other passages of its pages), and returns the
    number of questions.
    """
    n_queries = 0
    numbered = enumerate(dataset.questions())
    _insert(db, "wanted", (), _WANTED)
    _insert(db, "queries", (), _QUERIES)
    while group := list(islice(numbered, _AT_ONCE)):
        n_queries += len(group)
        _insert(db, "queries", ((example.query.query_id, place) for place, example in group), _QUERIES)
        proven = ((place, rank, passage) for place, example in group for rank, passage in enumerate(example.targets))
        _insert(db, "wanted", ((place, _EVIDENCE, rank, passage, None) for place, rank, passage in proven), _WANTED)
    if dataset.is_aligned:
        db.execute(_EVIDENCE_ROWS)
        if options.form == "fact-checking":
            db.execute(_OTHERS)
    return n_queries


def _add_run(
    db: DuckDBPyConnection,
    dataset: _Dataset,
    path: str,
    options: TrainingOptions,
    rejected: RejectedRows,
    *,
    n_queries: int,
) -> None:
    """Adds the first documents of a run to the table ``wanted``; a page counts as its first passage.

    Raises:
        SetupError: a passage is not in the corpus.
    """
    is_ranked = bytearray(n_queries)

    def rows() -> Iterator[tuple[int, int, int, str, float | None]]:
        ranked = ranked_queries(path, rejected.append)
        while group := list(islice(ranked, _RANKED_AT_ONCE)):
            places = dict(db.execute(_PLACES, [[query_id for _, query_id, _ in group]]).fetchall())
            for raw, query_id, found in group:
                with raw.rejecting(rejected.append, stage=dataset.name):
                    if (place := places.get(query_id)) is None:
                        raise RecordError("unknown_question", f"{query_id!r} is not in {dataset.name}")
                    if is_ranked[place]:
                        raise RecordError("duplicate_question", repr(query_id))
                    is_ranked[place] = True
                    for rank, (document, score) in enumerate(found[: options.n_ranked]):
                        page_id, number = page_and_number(document)
                        yield place, _RANKED, rank, f"{page_id}__{number or 0}", score

    _insert(db, "wanted", rows(), _WANTED)
    ((unknown,),) = db.execute(_UNKNOWN).fetchall()
    if unknown is not None:
        raise SetupError(f"{path}: passage {unknown} is not in the corpus; give a run over these passages.")


def _sources(db: DuckDBPyConnection, dataset: _Dataset) -> Iterator[TrainingQuery]:
    """Reads the questions with their passages, in dataset order."""

    def rows() -> Iterator[tuple[int, int, Hit]]:
        # A stream of Arrow: fetched row by row, the whole result would have to fit into the database's memory.
        for batch in db.sql(_TEXTS).to_arrow_reader(_AT_ONCE):
            columns = (column.to_pylist() for column in batch.columns)
            for place, role, passage_id, page_id, title, text, score in zip(*columns, strict=True):
                yield place, role, Hit(passage_id, str(page_id), title, text, 0.0 if score is None else score)

    groups = groupby(rows(), key=lambda row: row[0])
    place, group = next(groups, (-1, iter(())))
    for number, question in enumerate(dataset.questions()):
        roles: dict[int, list[Hit]] = {_EVIDENCE: [], _OTHER: [], _RANKED: []}
        if place == number:
            for _, role, hit in group:
                roles[role].append(hit)
            place, group = next(groups, (-1, iter(())))
        ranked = list({hit.document: hit for hit in reversed(roles[_RANKED])}.values())[::-1]
        evidence, others = roles[_EVIDENCE], roles[_OTHER]
        yield TrainingQuery(dataset.name, question.query, evidence, ranked, others, question.targets, question.target)
