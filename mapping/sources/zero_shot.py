"""Zero-Shot RE: questions about relations with sentences of Wikipedia that answer them.

Source: http://nlp.cs.washington.edu/zeroshot/ (``relation_splits``: ten folds of 84, 12 and 24 relations for train, dev
and test) and section 4.2 of the KILT paper (negative lines left out; subject and relation as input).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Literal, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, base_name, join
from kbsource.identity import stable_sha256, stable_uuid
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import SPLITS, Inputs, LeftOut, Source, SourceOptions, Split, Tally
from mapping.sources.reading.examples import ExclusionError, exclude, reject
from mapping.sources.reading.files_in import RawRecord, iter_lines
from mapping.sources.reading.scratch import ScratchFile

_SPLIT_FILE = re.compile(r"(train|dev|test)\.([0-9])(?:\.gz|\.bz2)?")
_N_NEGATIVE = 4
_SUBJECT = "XXX"
_MISSPELT = {"auther": "author"}
_N_PEEKED = 20
# Of 120 relations 84 are train, 12 dev and 24 test.
_DEV_SHARE, _TEST_SHARE = 10, 5

_SCHEMA = """
CREATE TABLE groups (
    number INTEGER PRIMARY KEY, relation TEXT, subject TEXT, UNIQUE (relation, subject)
);
CREATE TABLE lines (
    in_group INTEGER, number INTEGER, file TEXT, line INTEGER, sentence TEXT, answers BLOB,
    PRIMARY KEY (in_group, number)
) WITHOUT ROWID;
CREATE TABLE templates (
    number INTEGER PRIMARY KEY, relation TEXT, template TEXT, UNIQUE (relation, template)
);
"""


@dataclass(frozen=True, slots=True)
class ZeroShotOptions(SourceOptions):
    """Choices of Zero-Shot RE."""

    seed: str = option("kilt", "names what is drawn at random", metavar="NAME")
    fold: int = option(
        0, "which of the ten original splits is read from a folder", lowest=0, highest=9, remedy="give 0 to 9"
    )
    relation_split: Literal["original", "random"] = option(
        "original",
        "whose relations train, dev and test have; random draws 7, 1 and 2 of 10 anew from all that are given",
    )


class ZeroShot(Source[ZeroShotOptions]):
    """Reads lines of the original splits by relation.

    A folder stands for the files of its ``options.fold``: that of the split, or all three where the relations are drawn
    anew. A record of the counts is a line; an example is all positive lines of one subject and relation.
    """

    name = "structured_zeroshot"
    options = ZeroShotOptions

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: ZeroShotOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in line_files(inputs, split, storage=storage, options=options):
            _check_lines(path, storage)

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: ZeroShotOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Lines(inputs.scratch) as lines:
            for path in line_files(inputs, split, storage=storage, options=options):
                for raw in iter_lines(storage, path, keep_blank=True):
                    if raw.data:
                        yield from _add_line(raw, lines, tally)
            relations = None
            if options.relation_split == "random":
                relations = drawn_relations(lines.relations(), split, seed=options.seed)
            for group in lines.groups():
                example = example_of(group, lines.templates(group.relation))
                example_id, places = example.example_id, [(line.file, line.number) for line in group.lines]
                if relations is not None and group.relation not in relations:
                    for place in places:
                        tally.leave(LeftOut(example_id, *place, "excluded", "other_split"))
                    continue
                tally.examples += 1
                for place in places[1:]:
                    tally.leave(LeftOut(example_id, *place, "merged"))
                tally.evidences += len(example.outputs)
                yield example


class Line(NamedTuple):
    """One positive line."""

    relation: str
    template: str
    subject: str
    sentence: str
    answers: tuple[str, ...]


class Stated(NamedTuple):
    """What a line says of its subject and relation: a sentence and its answers, and where it stands."""

    file: str
    number: int
    sentence: str
    answers: list[str]


class Group(NamedTuple):
    """The positive lines of one subject and relation, in order; both as written."""

    relation: str
    subject: str
    lines: list[Stated]


def parse_line(text: str) -> Line:
    """Gives a line.

    Raises:
        ExclusionError: ``negative``.
        RecordError: ``missing_column``.
    """
    relation, *rest = fields = text.split("\t")
    if len(fields) < _N_NEGATIVE:
        raise RecordError("missing_column", f"relation, question, subject, sentence and answers, found {text[:80]!r}")
    if len(fields) == _N_NEGATIVE:
        raise ExclusionError("negative")
    template, subject, sentence, *answers = rest
    for wrong, right in _MISSPELT.items():
        template = template.replace(wrong, right)
    return Line(relation, template, subject, sentence, tuple(answers))


def example_of(group: Group, templates: list[str]) -> Example:
    """Gives the record of a group: an output for each distinct answer and sentence, in order.

    Args:
        group: of one subject and relation.
        templates: all questions about the relation, ``XXX`` for the subject.
    """
    pairs = dict.fromkeys((answer, sentence) for *_, sentence, answers in group.lines for answer in answers)
    page = PageKey("title", group.subject)
    questions = dict.fromkeys(template.replace(_SUBJECT, group.subject) for template in templates)
    return Example(
        stable_uuid("structured_zeroshot", group.relation, group.subject),
        f"{group.subject} [SEP] {group.relation}",
        tuple(Output(answer, (Evidence(page, sentence, {}),)) for answer, sentence in pairs),
        {"template_questions": list(questions)},
        file=group.lines[0].file,
        line=group.lines[0].number,
    )


def drawn_relations(relations: list[str], split: Split, *, seed: str) -> frozenset[str]:
    """Gives the relations of a split, drawn from all: 1 of 10 for dev, 2 of 10 for test, the others for train."""
    order = sorted(relations, key=lambda relation: stable_sha256(seed, "structured_zeroshot", relation))
    n_dev, n_test = len(order) // _DEV_SHARE, len(order) // _TEST_SHARE
    drawn = {"dev": order[:n_dev], "test": order[n_dev : n_dev + n_test], "train": order[n_dev + n_test :]}
    return frozenset(drawn[split])


def line_files(inputs: Inputs, split: Split, *, storage: Storage, options: ZeroShotOptions) -> list[str]:
    """Gives the files of lines that are read for a split.

    Raises:
        SetupError: a folder has no such file, or a file is of another split.
    """
    is_random = options.relation_split == "random"
    wanted = SPLITS if is_random else (split,)
    paths: list[str] = []
    for given in inputs.records:
        named = _SPLIT_FILE.fullmatch(base_name(given))
        if named is None and (inside := storage.glob(join(given, "**", "*"))):
            for name in wanted:
                found = [path for path in inside if _is_of(path, name, options.fold)]
                if len(found) != 1:
                    raise SetupError(
                        f"{given} holds {len(found)} files {name}.{options.fold}, not one: give the folder"
                        " relation_splits."
                    )
                paths += found
        elif named and named[1] not in wanted:
            raise SetupError(f"{given} is of the split {named[1]}, not of {split}: give {split}.{named[2]}.")
        else:
            paths.append(given)
    return paths


class Lines(ScratchFile):
    """Positive lines in an index on disk, by subject and relation. A context: the index is removed when it ends.

    Args:
        folder: for the index; None for the system's folder for temporary files.
    """

    def __init__(self, folder: str | None) -> None:
        super().__init__(folder, _SCHEMA)
        self._n_lines = 0

    def add(self, line: Line, *, file: str, number: int) -> None:
        """Keeps a line."""
        run = self._database.execute
        self._n_lines += 1
        run("INSERT OR IGNORE INTO templates (relation, template) VALUES (?, ?)", (line.relation, line.template))
        run("INSERT OR IGNORE INTO groups (relation, subject) VALUES (?, ?)", (line.relation, line.subject))
        run(
            "INSERT INTO lines SELECT number, ?, ?, ?, ?, ? FROM groups WHERE relation = ? AND subject = ?",
            (self._n_lines, file, number, line.sentence, orjson.dumps(line.answers), line.relation, line.subject),
        )

    def relations(self) -> list[str]:
        """Gives every relation once."""
        return [relation for (relation,) in self._database.execute("SELECT DISTINCT relation FROM templates")]

    def groups(self) -> Iterator[Group]:
        """Gives the lines of each subject and relation, in the order they were met."""
        rows = self._database.execute(
            "SELECT in_group, relation, subject, file, line, sentence, answers"
            " FROM lines JOIN groups ON groups.number = in_group ORDER BY in_group, lines.number"
        )
        for (_, relation, subject), group in groupby(rows, key=itemgetter(0, 1, 2)):
            lines = [Stated(file, line, sentence, orjson.loads(answers)) for *_, file, line, sentence, answers in group]
            yield Group(relation, subject, lines)

    def templates(self, relation: str) -> list[str]:
        """Gives the questions about a relation, in the order they were met."""
        rows = self._database.execute("SELECT template FROM templates WHERE relation = ? ORDER BY number", (relation,))
        return [template for (template,) in rows]


def _add_line(raw: RawRecord, lines: Lines, tally: Tally) -> Iterator[BadRecord]:
    """Keeps a line if it is positive, counts it and gives it if it cannot be used."""
    tally.records += 1
    try:
        line = parse_line(raw.text())
    except ExclusionError as exclusion:
        exclude(raw, exclusion.reason, tally)
    except RecordError as error:
        yield reject(raw, error, tally)
    else:
        lines.add(line, file=raw.file, number=raw.line)


def _is_of(path: str, split: Split, fold: int) -> bool:
    named = _SPLIT_FILE.fullmatch(base_name(path))
    return named is not None and (named[1], int(named[2])) == (split, fold)


def _check_lines(path: str, storage: Storage) -> None:
    """Raises SetupError where none of a file's first lines can be one of Zero-Shot RE."""
    first = b""
    for raw in islice(iter_lines(storage, path), _N_PEEKED):
        first = first or raw.data
        if raw.data.count(b"\t") >= _N_NEGATIVE - 1 and _SUBJECT.encode() in raw.data.split(b"\t")[1]:
            return
    shown = first[:160].decode("utf-8", "replace")
    raise SetupError(
        f"{path} is not what was expected: lines of Zero-Shot RE, with tabs between relation, question about XXX,"
        f" subject, sentence and answers. Its first line is: {shown}"
    )
