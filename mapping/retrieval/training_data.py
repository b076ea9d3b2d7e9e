"""Makes training data out of datasets, runs and passages; ``mapping.retrieval.training`` says what an example is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from msgspec import structs

from kbsource.errors import RecordError, SetupError
from kbsource.files import join
from kbsource.records import BadRecord
from kbsource.release.kind import kind_of, read_content
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.sql import add_release, add_tables, connected
from kbsource.release.writer import LinesFile, write_lines, write_rejected, write_rows
from mapping.contexts.export import SEPARATOR
from mapping.contexts.gold import GoldPassages
from mapping.contexts.questions import ReleaseQuestions
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.beir import RECORDS, RELEVANT, records_file
from mapping.retrieval.queries import Hit, Query, queries_of, read_queries
from mapping.retrieval.runs import place_of, ranked_queries
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
    is_mixed,
    lines_path,
    mixed_examples,
)
from mapping.write.kind import ALIGNMENT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EVIDENCE, _OTHER, _RANKED = range(3)
_GROUP_ROWS = 512
_AT_ONCE = 10_000
_NEEDS_RUN = ("dpr", "fid", "pig", "fact-checking", "amber")
_OTHERS = f"""
insert into wanted select place, {_OTHER}, row_number() over (order by _file_number, _row), passage_id, null from (
    select distinct place, page_id from queries join alignments using (example_id)
    where is_written and output >= 0 and page_id is not null
) join passages using (page_id)
where (place, passage_id) not in (select (place, passage_id) from wanted where role = {_EVIDENCE})"""
_UNKNOWN = """
select min(passage_id) from wanted anti join passages using (passage_id) where not ends_with(passage_id, '__0')"""
_TEXTS = """
select place, role, passage_id, page_id, title, text, score from wanted join passages using (passage_id)
order by place, role, rank"""


class _Dataset(NamedTuple):
    """A dataset as it is read."""

    name: str
    folder: str
    manifest_sha256: str
    queries: list[Query]
    evidence: list[tuple[int, str]]  # place of a query and passage, in order
    targets: Mapping[int, tuple[str, Mapping[str, str]]] = {}  # of QAMPARI: all answers, and those of each passage


@dataclass(slots=True)
class _Written:
    """What was written of the datasets."""

    facts: list[dict[str, object]] = field(default_factory=list)
    entries: list[FileEntry] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rejected: list[BadRecord] = field(default_factory=list)


def make_training_data(
    datasets: Sequence[str], passages: str, runs: Sequence[str], output: str, options: TrainingOptions
) -> ListingManifest:
    """Writes the examples of datasets, and gives the manifest.

    Memory: the questions of a dataset and the ids of its evidence, and what a join takes.

    Args:
        datasets: folders of alignments or of QAMPARI releases.
        runs: for each dataset what was found for its questions, in the same order; none only for seq2seq.

    Raises:
        SetupError: an input is not what it should be, or they are not of one release.
    """
    if runs and len(runs) != len(datasets):
        raise SetupError(
            f"--retrieved: {len(runs)} files for {len(datasets)} datasets; give one for each, in the same order."
        )
    if not runs and options.form in _NEEDS_RUN:
        raise SetupError(
            f"--for {options.form} needs --retrieved, what kbsource search found for the questions of each dataset."
        )
    if not runs and options.top is not None:
        raise SetupError("--top: without --retrieved there are no passages; leave it out.")
    corpus = PASSAGES_CORPUS.read(passages)
    check_output(output)
    check_hashes(passages, corpus.tables[TABLE])
    with ReleaseFolder(output, kind=TRAINING_DATA):
        written = _Written()
        rows = _examples(datasets, passages, runs, options, output=output, written=written)
        examples = write_rows(rows, EXAMPLES, TABLES[EXAMPLES], output=output, group_rows=_GROUP_ROWS)
        sizes = {str(one["name"]): int(str(one["examples"])) for one in written.facts}
        entries = [examples, *written.entries]
        if is_mixed(options, sizes):
            with connected(reads=[output]) as db:
                add_tables(db, TRAINING_DATA.declared, {EXAMPLES: [examples.file]}, output)
                mixed = (line_of(example, options.form) for example in mixed_examples(db))
                entries.append(write_lines(mixed, lines_path(MIXED), output=output))
        if options.form == "dpr":
            entries.append(write_rows(batches_of(sizes, options), BATCHES, TABLES[BATCHES], output=output))
        entries.append(write_rejected(written.rejected, output=output))
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "datasets": written.facts,
            "inputs": [asdict(one) for one in input_files(runs)],
            "options": options.facts(),
            "counts": {
                **{name: written.counts[name] for name in ("queries", "examples", "passages")},
                "rejected": len(written.rejected),
            },
            "code": code_facts(),
        }
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
    written: _Written,
) -> Iterator[TrainingExample]:
    """The examples of all datasets; lines, counts and rejected questions are written beside them."""
    names: set[str] = set()
    for number, folder in enumerate(datasets):
        with ExitStack() as stack:
            db = stack.enter_context(connected(reads=[folder, passages]))
            dataset = _read_dataset(db, folder, passages, options)
            if dataset.name in names or dataset.name == MIXED:
                raise SetupError(f"{folder}: there is another dataset {dataset.name}; give each once.")
            names.add(dataset.name)
            counts = Counter(queries=len(dataset.queries))
            n_bad = len(written.rejected)
            if runs:
                _add_run(db, dataset, runs[number], options, written.rejected)
            lines = stack.enter_context(LinesFile(output, lines_path(dataset.name)))
            for source in _sources(db, dataset):
                try:
                    made = examples_of(source, options)
                except RecordError as error:
                    bad = BadRecord(dataset.name, source.query.query_id, error.reason, error.detail, "", -1)
                    written.rejected.append(bad)
                    continue
                counts["without_negatives"] += all(one.role != NEGATIVE for example in made for one in example.passages)
                for example in made:
                    numbered = structs.replace(example, number=counts["examples"])
                    counts["examples"] += 1
                    counts["passages"] += len(example.passages)
                    lines.write(line_of(numbered, options.form))
                    yield numbered
        written.entries.append(lines.entry)
        written.counts += counts
        reasons = Counter(bad.reason for bad in written.rejected[n_bad:])
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


def _read_dataset(db: DuckDBPyConnection, folder: str, passages: str, options: TrainingOptions) -> _Dataset:
    """A dataset, whose evidence and other passages of its pages are in the table ``wanted`` then."""
    corpus = PASSAGES_CORPUS.read(passages)
    add_release(db, PASSAGES_CORPUS, passages, places=True)
    db.execute("create table wanted (place bigint, role int, rank bigint, passage_id varchar, score double)")
    kind = kind_of(read_content(folder), join(folder, MANIFEST), (ALIGNMENT, QAMPARI_RELEASE))
    if kind is QAMPARI_RELEASE:
        if options.form not in ("dpr", "seq2seq", "fid", "pig"):
            raise SetupError(f"{folder}: questions of QAMPARI are not for --for {options.form}; leave them out.")
        dataset = _read_qampari(folder, passages, corpus, options)
    else:
        aligned = ALIGNMENT.read(folder)
        if aligned.made_from() != corpus.made_from():
            raise SetupError(f"{folder} and {passages} are made from different releases; give those of one release.")
        check_hashes(folder, aligned.entries())
        add_release(db, ALIGNMENT, folder)
        records = records_file(aligned)
        queries = list(read_queries(join(folder, records)))
        places = {query.query_id: place for place, query in enumerate(queries)}
        db.register("queries", pa.table({"example_id": list(places), "place": list(places.values())}))
        found = db.execute(RELEVANT.format(any_passage=False)).fetchall()
        evidence = [(places[query_id], passage_id) for query_id, passage_id in found]
        dataset = _Dataset(records.removesuffix(RECORDS), folder, aligned.sha256, queries, evidence)
    _insert(db, ((place, _EVIDENCE, rank, one, None) for rank, (place, one) in enumerate(dataset.evidence)))
    if options.form == "fact-checking":
        db.execute(_OTHERS)
    return dataset


def _read_qampari(folder: str, passages: str, corpus: ListingManifest, options: TrainingOptions) -> _Dataset:
    questions = ReleaseQuestions(folder)
    questions.check(corpus)
    queries: list[Query] = []
    evidence: list[tuple[int, str]] = []
    targets: dict[int, tuple[str, Mapping[str, str]]] = {}
    with GoldPassages() as gold:
        questions.add_places(gold)
        gold.find([join(passages, entry.file) for entry in corpus.tables[TABLE]])
        for split, record in questions.asked():
            if split != options.split:
                continue
            proven = [
                (
                    str(answer["answer_text"]),
                    [one.passage_id for proof in answer["proof"] if (one := gold.of_proof(proof["pid"])) is not None],
                )
                for answer in record["answer_list"]
            ]
            of_passages = answer_targets(proven)
            evidence += [(len(queries), passage_id) for passage_id in of_passages]
            targets[len(queries)] = SEPARATOR.join(answer for answer, _ in proven), of_passages
            queries += queries_of(record)
    sha256 = str(questions.facts()["manifest_sha256"])
    return _Dataset(f"qampari-{options.split}", folder, sha256, queries, evidence, targets)


def _insert(db: DuckDBPyConnection, rows: Iterable[tuple[int, int, int, str, float | None]]) -> None:
    """Adds rows to the table ``wanted``."""
    columns = ("place", "role", "rank", "passage_id", "score")
    group: list[tuple[int, int, int, str, float | None]] = []

    def flush() -> None:
        if group:
            values = dict(zip(columns, map(list, zip(*group, strict=True)), strict=True))
            types = (pa.int64(), pa.int32(), pa.int64(), pa.string(), pa.float64())
            db.register("added", pa.table(values, schema=pa.schema([*zip(columns, types, strict=True)])))
            db.execute("insert into wanted select * from added")
            db.unregister("added")
            group.clear()

    for row in rows:
        group.append(row)
        if len(group) == _AT_ONCE:
            flush()
    flush()


def _add_run(
    db: DuckDBPyConnection, dataset: _Dataset, path: str, options: TrainingOptions, rejected: list[BadRecord]
) -> None:
    """Adds the first documents of a run to the table ``wanted``; a page counts as its first passage.

    Raises:
        SetupError: a passage is none of the corpus.
    """
    places = {query.query_id: place for place, query in enumerate(dataset.queries)}
    seen: set[str] = set()

    def rows() -> Iterator[tuple[int, int, int, str, float | None]]:
        for raw, query_id, found in ranked_queries(path, rejected.append):
            with raw.told(rejected.append, stage=dataset.name):
                if (place := places.get(query_id)) is None:
                    raise RecordError("unknown_question", f"{query_id!r} is not in {dataset.name}")
                if query_id in seen:
                    raise RecordError("duplicate_question", repr(query_id))
                seen.add(query_id)
                for rank, (document, score) in enumerate(found[: options.n_ranked]):
                    page_id, number = place_of(document)
                    yield place, _RANKED, rank, f"{page_id}__{number or 0}", score

    _insert(db, rows())
    ((unknown,),) = db.execute(_UNKNOWN).fetchall()
    if unknown is not None:
        raise SetupError(f"{path}: passage {unknown} is not in the corpus; give a run over these passages.")


def _sources(db: DuckDBPyConnection, dataset: _Dataset) -> Iterator[TrainingQuery]:
    """The questions with their passages, in the order of the dataset."""
    found = db.execute(_TEXTS)

    def rows() -> Iterator[tuple[int, int, Hit]]:
        while group := found.fetchmany(_AT_ONCE):
            for place, role, passage_id, page_id, title, text, score in group:
                yield place, role, Hit(passage_id, str(page_id), title, text, 0.0 if score is None else score)

    groups = groupby(rows(), key=lambda row: row[0])
    place, group = next(groups, (-1, iter(())))
    for number, query in enumerate(dataset.queries):
        roles: dict[int, list[Hit]] = {_EVIDENCE: [], _OTHER: [], _RANKED: []}
        if place == number:
            for _, role, hit in group:
                roles[role].append(hit)
            place, group = next(groups, (-1, iter(())))
        target, targets = dataset.targets.get(number, (None, {}))
        ranked = list({hit.document: hit for hit in reversed(roles[_RANKED])}.values())[::-1]
        yield TrainingQuery(dataset.name, query, roles[_EVIDENCE], ranked, roles[_OTHER], targets, target)
