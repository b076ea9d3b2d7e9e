"""Writes the files of a QAMPARI release: the splits in QAMPARI's form, and tables with counts of answers. The caller
writes the manifest.

::

    qampari_data/train_data.jsonl, dev_data.jsonl, test_data.jsonl      in the form of QAMPARI's files
    questions/questions-00000-of-00001.parquet                          every question that passed the filter
    queries/queries-00000-of-00001.parquet                              every query that was considered
    manifest.json                                                       written last, by the caller

Source: QAMPARI's released files ``qampari_data/{train,dev,test}_data.jsonl``; ``meta`` is an addition of
kbsource.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kbsource.columns import rows_of, schema_of
from kbsource.errors import RecordError
from kbsource.files import join
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry, ListingManifest
from kbsource.release.reader import check_columns, row_groups
from kbsource.release.writer import LinesFile, write_rows
from kbsource.rows import Row
from mapping.qampari.evidence import released_case
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import SPLITS, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.write.kilt import kilt_line

R = TypeVar("R", bound=Row)
_QID = re.compile(rf"(0|[1-9][0-9]*)__({'|'.join(SUBSETS)})__({'|'.join(SPLITS)})")


class QuestionId(NamedTuple):
    """The parts of a qid: number within the file of the split, subset, split."""

    n: int
    subset: str
    split: str


def qid_of(n: int, subset: str, split: str) -> str:
    """Returns a question's id.

    >>> qid_of(799, "wikidata_simple", "dev")
    '799__wikidata_simple__dev'
    """
    return f"{n}__{subset}__{split}"


def parse_qid(qid: str) -> QuestionId:
    """Returns the parts of a question's id.

    Raises:
        RecordError: ``malformed_qid``.
    """
    found = _QID.fullmatch(qid)
    if found is None:
        raise RecordError("malformed_qid", f"{qid!r} does not have the form <number>__<subset>__<split>")
    return QuestionId(int(found[1]), found[2], found[3])


def part_id(whole: str, number: int) -> str:
    """Returns the id of the answer with that number in a question, or of the proof with that number of an answer."""
    return f"{whole}__{number}"


def page_url(host: str, title: str) -> str:
    """Returns a page's URL in the style of released ones: without percent-encoding.

    >>> page_url("en.wikipedia.org", "Who's Who? (book)")
    "https://en.wikipedia.org/wiki/Who's_Who?_(book)"
    """
    return f"https://{host}/wiki/{title.replace(' ', '_')}"


class Form(NamedTuple):
    """The format of the records of a release; recorded in its manifest under ``form``."""

    host: str  # host of the wiki, for page URLs
    with_meta: bool  # true if records have the key ``meta``
    is_released_case: bool  # true if proofs are written by ``evidence.released_case``
    seed: str


def released_record(question: Question, form: Form) -> dict[str, Any]:
    """Returns a question with a qid in the form of the files, with ordered keys."""
    qid, url_of = question.qid or "", partial(page_url, form.host)
    cased = released_case if form.is_released_case else str
    record: dict[str, Any] = {
        "qid": qid,
        "question_text": question.released_text,
        "entities": [_entity(entity, url_of) for entity in question.entities],
        "answer_list": [
            _answer(answer, part_id(qid, number), url_of, cased) for number, answer in enumerate(question.answers)
        ],
    }
    return {**record, "meta": _meta(question)} if form.with_meta else record


def _entity(entity: QuestionEntity, page_url: Callable[[str], str]) -> dict[str, Any]:
    address = {} if entity.title is None else {"entity_url": page_url(entity.title)}
    return {"entity_text": entity.text, **address, "aliases": list(entity.aliases)}


def _answer(
    answer: QuestionAnswer, aid: str, page_url: Callable[[str], str], cased: Callable[[str], str]
) -> dict[str, Any]:
    address = {} if answer.title is None else {"answer_url": page_url(answer.title)}
    proofs = [
        {"proof_text": cased(proof.text), "found_in_url": page_url(proof.title), "pid": part_id(aid, number)}
        for number, proof in enumerate(answer.proofs)
    ]
    return {"answer_text": answer.text, "aid": aid, "aliases": list(answer.aliases), **address, "proof": proofs}


_OF_PROOFS = ("page_id", "element", "start_char", "end_char", "entailment", "hypothesis")


def _meta(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "property_ids": list(question.property_ids),
        "type_label": question.type_label,
        "entity_ids": [entity.item_id for entity in question.entities],
        "n_answers": question.n_answers,
        "n_validated": question.n_validated,
        "answers": [
            {
                "item_id": answer.item_id,
                "via_id": None if answer.via is None else answer.via.item_id,
                "proofs": [{name: getattr(proof, name) for name in _OF_PROOFS} for proof in answer.proofs],
            }
            for answer in question.answers
        ],
    }


PUBLISHED: dict[str, tuple[float, float]] = {
    "train": (13.25, 8),
    "dev and test": (13.23, 7),
    SIMPLE: (15.69, 7.5),
    COMPOSITION: (8.77, 6),
    INTERSECTION: (8.94, 7),
    TABLE_SIMPLE: (23.84, 17),
    TABLE_COMPOSITION: (11.51, 7),
}
"""Mean and median number of answers in the published sets; for a subset, over development and test set.

Source: QAMPARI (2022), table 2.
"""
PUBLISHED_WORDS: dict[str, float] = {
    "train": 12.69,
    "dev and test": 9.51,
    SIMPLE: 7.91,
    COMPOSITION: 10.35,
    INTERSECTION: 11.65,
    TABLE_SIMPLE: 8.61,
    TABLE_COMPOSITION: 10.99,
}
"""Mean length of the published questions in words, for the same sets. Source: QAMPARI (2022), table 2."""
ANSWER_BINS = {"< 5": 4, "5": 5, "6-7": 7, "8-15": 15, "16-50": 50, "51-100": 100, "> 100": 1 << 62}
"""Bins for the number of answers: the last number of each. Fewer than five remain where people rejected some.

Source: QAMPARI (2022), figure 3.
"""


class AnswerStatistics:
    """Counts questions, their words and their answers. Memory: one number for each distinct number of answers."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._drawn: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        self._words: Counter[tuple[str, str]] = Counter()

    def seen(self, questions: Iterable[Question]) -> Iterator[Question]:
        """Counts questions and passes them on unchanged."""
        for question in questions:
            self.add(question.subset, question.split, len(question.answers), question.released_text)
            yield question

    def add(self, subset: str, split: str | None, n_answers: int, text: str) -> None:
        """Counts a question; ``split`` is None if it was not sampled."""
        self._kept[subset] += 1
        if split is not None:
            self._drawn[split, subset][n_answers] += 1
            self._words[split, subset] += len(text.split())

    def values(self) -> dict[str, Any]:
        """Returns the counts as JSON values: the questions that passed the filter, by subset; the sampled questions, by
        split and subset; and how many answers these have.
        """
        drawn = {
            split: {subset: self._drawn[split, subset].total() for subset in SUBSETS if self._drawn[split, subset]}
            for split in SPLITS
        }
        groups = {"train": [("train", subset) for subset in SUBSETS]}
        groups["dev and test"] = [(split, subset) for split in ("dev", "test") for subset in SUBSETS]
        groups |= {subset: [(split, subset) for split in ("dev", "test")] for subset in SUBSETS}
        return {
            "kept": {subset: self._kept[subset] for subset in SUBSETS},
            "sampled": drawn,
            "answers": {name: self._answers(name, keys) for name, keys in groups.items()},
        }

    def _answers(self, name: str, keys: Collection[tuple[str, str]]) -> dict[str, Any]:
        numbers = [n for key in keys for n in self._drawn[key].elements()]
        mean, median = PUBLISHED[name]
        return {
            "questions": len(numbers),
            "mean": round(sum(numbers) / len(numbers), 2) if numbers else None,
            "median": float(statistics.median(numbers)) if numbers else None,
            "published_mean": mean,
            "published_median": median,
            "words": round(sum(self._words[key] for key in keys) / len(numbers), 2) if numbers else None,
            "published_words": PUBLISHED_WORDS[name],
            "distribution": _binned(numbers),
        }


def _binned(numbers: Iterable[int]) -> dict[str, int]:
    """Returns the number of questions in each bin.

    >>> _binned([5, 6, 7, 8, 101, 4])
    {'< 5': 1, '5': 1, '6-7': 2, '8-15': 1, '16-50': 0, '51-100': 0, '> 100': 1}
    """
    counts = dict.fromkeys(ANSWER_BINS, 0)
    for n in numbers:
        counts[next(name for name, last in ANSWER_BINS.items() if n <= last)] += 1
    return counts


DATA = "qampari_data"
GROUP_ROWS = 512
"""Questions per row group; with all its proofs a question has about 20 KB."""


def data_path(split: str) -> str:
    """Returns the path of a split's file in the release."""
    return f"{DATA}/{split}_data.jsonl"


def release_paths() -> set[str]:
    """Returns the paths of the files that every release has."""
    return {*map(data_path, SPLITS), shard_path("questions", 0, 1), shard_path("queries", 0, 1)}


def write_release_files(
    questions: Iterable[Question],
    queries: Iterable[QueryRow],
    *,
    form: Form,
    output: str,
) -> list[FileEntry]:
    """Writes the tables and the files of the splits; returns the entries for the manifest.

    Memory: ``GROUP_ROWS`` questions.

    Args:
        questions: all questions that passed the filter, with eligible split, split and qid, in the order of the files.
        form: the form of the records; the table has proofs as written in the pages.
    """
    with ExitStack() as stack:
        files = {split: stack.enter_context(LinesFile(output, data_path(split))) for split in SPLITS}

        def rows() -> Iterator[Question]:
            for question in questions:
                if question.split is not None and question.qid is not None:
                    files[question.split].write(kilt_line(released_record(question, form)))
                yield question

        where: dict[str, Any] = {"output": output}
        table = write_rows(rows(), "questions", schema_of(Question), group_rows=GROUP_ROWS, **where)
    considered = write_rows(queries, "queries", schema_of(QueryRow), **where)
    return [*(file.entry for file in files.values()), table, considered]


def read_question_rows(release: str, manifest: ListingManifest, table: str, row: type[R]) -> Iterator[R]:
    """Reads the questions, or queries, of a release, in the order of the rows of its table.

    Raises:
        DataError: a file has other columns.
    """
    for entry in manifest.tables.get(table, ()):
        path = join(release, entry.file)
        check_columns(path, [schema_of(row)])
        for group in row_groups(path):
            yield from rows_of(group, row)


def read_questions(release: str, manifest: ListingManifest) -> Iterator[Question]:
    """Reads the questions of a release, in the order of the rows of its table."""
    return read_question_rows(release, manifest, "questions", Question)


def form_of(manifest: ListingManifest) -> Form | None:
    """Returns the format of the records of a release, from its manifest; None if the manifest does not contain it."""
    try:
        return Form(**manifest.facts["form"])
    except (KeyError, TypeError):
        return None
