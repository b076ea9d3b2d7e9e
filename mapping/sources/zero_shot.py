"""Zero-Shot RE: questions about relations, with sentences of Wikipedia that answer them.

Source: http://nlp.cs.washington.edu/zeroshot/ (``relation_splits``: ten folds of 84, 12 and 24 relations for train, dev
and test) and section 4.2 of the KILT paper (negative lines removed; subject and relation as input).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Annotated, Literal, NamedTuple

import orjson
from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.dump.compressed.streams import without_suffix
from kbsource.errors import RecordError, SetupError
from kbsource.files import base_name, glob, join
from kbsource.identity import stable_sha256, stable_uuid
from kbsource.records import BadRecord
from mapping.options import Name, whole_number
from mapping.records import Evidence, Example, Output, PageKey, RecordFate
from mapping.sources.examples import ExclusionError, Origin, leave_out
from mapping.sources.raw_records import RawRecord, iter_lines
from mapping.sources.scratch import ScratchFile
from mapping.sources.source import (
    SPLITS,
    Averages,
    Ownership,
    Policy,
    PublishedFigures,
    Source,
    SourceOptions,
    Split,
    by_split,
)

_SPLIT_FILE = re.compile(r"(train|dev|test)\.([0-9])")
_N_NEGATIVE = 4
_SUBJECT = "XXX"
_MISSPELT = {"auther": "author"}
_N_PEEKED = 20
# Of 120 relations, 84 are train, 12 dev and 24 test.
_DEV_SHARE, _TEST_SHARE = 10, 5

_GROUPS = """
SELECT relation, template, subject, sentence, answers, file, line FROM
    (SELECT *, rowid AS number, min(rowid) OVER (PARTITION BY relation, subject) AS first FROM lines)
ORDER BY first, number
"""


@dataclass(frozen=True, slots=True)
class ZeroShotOptions(SourceOptions):
    """Options of Zero-Shot RE."""

    seed: Name = "kilt"
    """Seed of the random draw."""
    fold: Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0, lte=9))] = 0
    """Which of the ten original folds is read from a folder."""
    relation_split: Literal["original", "random"] = "original"
    """How relations are divided among train, dev and test: as in the original, or drawn at random from all given
    relations, with shares of 7, 1 and 2 tenths.
    """


class ZeroShot(Source[ZeroShotOptions]):
    """Lines of the original splits by relation.

    Of a folder, the files of its ``options.fold`` are read: the file of the split, or all three if the relations are
    drawn at random. A record in the counts is a line; an example consists of all positive lines with one subject and
    relation.
    """

    name = "structured_zeroshot"
    summary = "Zero-Shot RE: relations, with sentences that answer them"
    options_type = ZeroShotOptions
    policies = by_split(Policy(input_meta=("template_questions",)))
    hypothesis = "triple"
    metric = "accuracy"
    published = PublishedFigures(
        {"train": 147_909, "dev": 3_724, "test": 4_966},
        Averages(1, 1, 1, 1),
        {"dev": (679, 15.42), "test": (767, 13.38)},
    )
    ownership = Ownership("Zero-Shot RE", "the authors of Zero-Shot RE", "http://nlp.cs.washington.edu/zeroshot/")

    def check_inputs(self) -> None:
        for path in self._files():
            _check_lines(path)

    def read(self) -> Iterator[Example | BadRecord]:
        with Lines(self.inputs.scratch) as lines:
            for path in self._files():
                for raw in iter_lines(path, keep_blank=True):
                    if raw.data:
                        yield from self._keep_line(raw, lines)
            templates = lines.templates()
            relations = frozenset(templates)
            if self.options.relation_split == "random":
                relations = drawn_relations(templates, self.split, seed=self.options.seed)
            for group in lines.groups():
                example = example_of(group, templates[group[0].relation])
                if group[0].relation not in relations:
                    for stated in group:
                        left = RecordFate(None, example.example_id, stated.file, stated.line, "excluded", "other_split")
                        self.tally.count_skipped(left)
                    continue
                for stated in group[1:]:
                    self.tally.count_skipped(RecordFate(None, example.example_id, stated.file, stated.line, "merged"))
                yield self.tally.count_example(example)

    def _keep_line(self, raw: RawRecord, lines: Lines) -> list[BadRecord]:
        """Stores a line if it is positive; returns its row if it cannot be used."""
        try:
            relation, template, subject, sentence, *answers = line_fields(raw.text())
        except (ExclusionError, RecordError) as error:
            return leave_out(Origin(raw), error, self.tally)
        self.tally.records += 1
        lines.add(PositiveLine(relation, template, subject, sentence, answers, raw.file, raw.line))
        return []

    def _files(self) -> list[str]:
        """Returns the files that are read for the split.

        Raises:
            SetupError: a folder has no such file, or a file is of another split.
        """
        wanted = SPLITS if self.options.relation_split == "random" else (self.split,)
        paths: list[str] = []
        for given in self.inputs.records:
            named = _SPLIT_FILE.fullmatch(without_suffix(base_name(given)))
            if named is None and (inside := glob(join(given, "**", "*"))):
                for name in wanted:
                    found = [path for path in inside if _is_of(path, name, self.options.fold)]
                    if len(found) != 1:
                        raise SetupError(
                            f"{given} holds {len(found)} files {name}.{self.options.fold}, not one: give the folder"
                            " relation_splits."
                        )
                    paths += found
            elif named and named[1] not in wanted:
                raise SetupError(
                    f"{given} belongs to the split {named[1]}, not to {self.split}: give {self.split}.{named[2]}."
                )
            else:
                paths.append(given)
        return paths


class PositiveLine(NamedTuple):
    """The contents of a positive line as written, and its position."""

    relation: str
    template: str  # question about the relation, ``XXX`` for the subject
    subject: str
    sentence: str
    answers: list[str]
    file: str
    line: int


def line_fields(text: str) -> list[str]:
    """Returns relation, question about the subject, subject, sentence and answers of a line.

    Raises:
        ExclusionError: ``negative``.
        RecordError: ``missing_column``.
    """
    fields = text.split("\t")
    if len(fields) < _N_NEGATIVE:
        raise RecordError(
            "missing_column", f"expected relation, question, subject, sentence and answers, found {text[:80]!r}"
        )
    if len(fields) == _N_NEGATIVE:
        raise ExclusionError("negative")
    for wrong, right in _MISSPELT.items():
        fields[1] = fields[1].replace(wrong, right)
    return fields


def example_of(group: Sequence[PositiveLine], templates: Iterable[str]) -> Example:
    """Returns the record for the lines of a subject and relation: an output for each distinct answer and sentence, in
    order.

    ``templates`` are all questions about the relation.
    """
    relation, _, subject, *_, file, line = group[0]
    pairs = dict.fromkeys((answer, stated.sentence) for stated in group for answer in stated.answers)
    page = PageKey("title", subject)
    questions = dict.fromkeys(template.replace(_SUBJECT, subject) for template in templates)
    return Example(
        stable_uuid("structured_zeroshot", relation, subject),
        f"{subject} [SEP] {relation}",
        tuple(Output(answer, (Evidence(page, sentence, {}),)) for answer, sentence in pairs),
        {"template_questions": list(questions)},
        file,
        line,
    )


def drawn_relations(relations: Iterable[str], split: Split, *, seed: str) -> frozenset[str]:
    """Returns the relations of a split, drawn from all: 1 of 10 for dev, 2 of 10 for test, the others for train."""
    order = sorted(relations, key=lambda relation: stable_sha256(seed, "structured_zeroshot", relation))
    n_dev, n_test = len(order) // _DEV_SHARE, len(order) // _TEST_SHARE
    drawn = {"dev": order[:n_dev], "test": order[n_dev : n_dev + n_test], "train": order[n_dev + n_test :]}
    return frozenset(drawn[split])


class Lines(ScratchFile):
    """Positive lines by subject and relation, in an index on disk."""

    schema = """
    CREATE TABLE lines (
        relation TEXT, template TEXT, subject TEXT, sentence TEXT, answers BLOB, file TEXT, line INTEGER
    );
    """

    def add(self, line: PositiveLine) -> None:
        """Stores a line."""
        row = (*line[:4], orjson.dumps(line.answers), line.file, line.line)
        self._database.execute("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def templates(self) -> dict[str, list[str]]:
        """Returns the questions about each relation, in the order they were read."""
        found: dict[str, list[str]] = {}
        rows = self._database.execute("SELECT relation, template FROM lines GROUP BY 1, 2 ORDER BY min(rowid)")
        for relation, template in rows:
            found.setdefault(relation, []).append(template)
        return found

    def groups(self) -> Iterator[list[PositiveLine]]:
        """Groups the lines by subject and relation, in the order they were read."""
        for _, rows in groupby(self._database.execute(_GROUPS), key=itemgetter(0, 2)):
            yield [PositiveLine._make((*row[:4], orjson.loads(row[4]), *row[5:])) for row in rows]


def _is_of(path: str, split: Split, fold: int) -> bool:
    named = _SPLIT_FILE.fullmatch(without_suffix(base_name(path)))
    return named is not None and (named[1], int(named[2])) == (split, fold)


def _check_lines(path: str) -> None:
    """Raises SetupError if none of a file's first lines can be from Zero-Shot RE."""
    first = b""
    for raw in islice(iter_lines(path), _N_PEEKED):
        first = first or raw.data
        if raw.data.count(b"\t") >= _N_NEGATIVE - 1 and _SUBJECT.encode() in raw.data.split(b"\t")[1]:
            return
    shown = first[:160].decode("utf-8", "replace")
    raise SetupError(
        f"{path} is not what was expected: lines of Zero-Shot RE, with tabs between relation, question about XXX,"
        f" subject, sentence and answers. Its first line is: {shown}"
    )


SOURCES = (ZeroShot,)
