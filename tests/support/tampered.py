"""Releases of all kinds that were tampered with, as one table: what was changed, and what ``verify`` must find.

The manifest fits the changed files, so that only the invariants can tell.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.release.kind import Kind
from kbsource.release.laws import Law
from kbsource.release.layout import table_of
from kbsource.release.writer import write_rows
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.contexts.kind import CONTEXTS
from mapping.passages.cut import CutOptions
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import COMPOSITION
from mapping.write.kind import ALIGNMENT
from tests.support.alignments import evidence, map_mini, read_lines, record, write_records
from tests.support.contexts import QIDS, write_contexts, write_pages, write_questions
from tests.support.diff_worlds import made_diff
from tests.support.entities import array, item, make, snak, write_odd_dump
from tests.support.passages import CORPUS_CUT, CORPUS_FORMS, CORPUS_PAGES, cut_release, write_kb
from tests.support.qampari import PAGES, questions_of_each_split, write_qampari
from tests.support.releases import TitleRow, write_release
from tests.support.verified import seal

MANIFEST = "manifest.json"


Place = tuple[str, str]
"""A file and an invariant."""


class Edit(NamedTuple):
    """A change of a file of a release."""

    file: str
    apply: Callable[[Path], object]


class Tampered(NamedTuple):
    """A release that was tampered with, and the findings that it must have, and no others."""

    what: str
    edit: Edit | tuple[Edit, ...]  #: several for one change that is in several files
    law: str  #: as ``numbered`` calls it
    text: str  #: part of its example
    file: str = ""  #: that the finding is about; empty for the first changed file
    also: tuple[Place, ...] = ()  #: files and invariants of the other findings
    is_compared: bool = False  #: with what the release was made from, and without it less is found


class Released(NamedTuple):
    """A release to tamper with, and what it was made from."""

    folder: Path
    sources: dict[str, Path]


class Group(NamedTuple):
    """A release and the ways to tamper with it."""

    kind: Kind[Any]
    make: Callable[[Path, Path], Released]  #: takes an empty folder and a release of the mini-wiki
    rows: tuple[Tampered, ...]


def numbered(kind: Kind[Any]) -> list[Law]:
    """Returns the invariants of a kind under names of their own: the second with the slug ``page_law`` is ``page_law
    2``.
    """
    names: list[str] = []
    slugs = [law.slug for law in kind.laws]
    for at, slug in enumerate(slugs):
        number = slugs[: at + 1].count(slug)
        names.append(slug if number == 1 else f"{slug} {number}")
    return [
        Law(name, law.meaning or name, law.broken, law.of, law.needs)
        for name, law in zip(names, kind.laws, strict=True)
    ]


def rows(file: str, *changes: Callable[[list[Any]], object]) -> Edit:
    """Changes the rows of a file of a table."""

    def apply(folder: Path) -> None:
        table, read = table_of(file), pq.read_table(folder / file)
        assert table is not None
        changed = read.to_pylist()
        for change in changes:
            change(changed)
        values = [[row[name] for name in read.schema.names] for row in changed]
        write_rows(values, table, read.schema, output=str(folder), file=file)
        seal(folder)

    return Edit(file, apply)


def lines(file: str, *changes: Callable[[list[Any]], object]) -> Edit:
    """Changes the values of a JSON Lines file; a string is written as it is."""

    def apply(folder: Path) -> None:
        changed: list[Any] = read_lines(folder / file)
        for change in changes:
            change(changed)
        write_records(folder / file, changed)
        seal(folder)

    return Edit(file, apply)


def content(file: str, change: Callable[[bytes], bytes]) -> Edit:
    """Changes the bytes of a file."""

    def apply(folder: Path) -> None:
        before = (folder / file).read_bytes()
        after = change(before)
        assert before != after
        (folder / file).write_bytes(after)
        seal(folder)

    return Edit(file, apply)


def manifest(change: Callable[[dict[str, Any]], object]) -> Edit:
    """Changes the values of the manifest."""

    def apply(folder: Path) -> None:
        values = json.loads((folder / MANIFEST).read_text())
        change(values)
        seal(folder, **values)

    return Edit(MANIFEST, apply)


def unlisted(file: str) -> Edit:
    """Removes a file and its entry in the manifest."""

    def apply(folder: Path) -> None:
        (folder / file).unlink()
        files = json.loads((folder / MANIFEST).read_text())["files"]
        seal(folder, files=[entry for entry in files if entry["file"] != file])

    return Edit(file, apply)


def listed(file: str, copied: str) -> Edit:
    """Adds a copy of a file, and its entry in the manifest."""

    def apply(folder: Path) -> None:
        shutil.copy(folder / copied, folder / file)
        files = json.loads((folder / MANIFEST).read_text())["files"]
        (entry,) = (entry for entry in files if entry["file"] == copied)
        seal(folder, files=[*files, {**entry, "file": file}])

    return Edit(MANIFEST, apply)


def at(number: int, **values: Any) -> Callable[[list[Any]], None]:
    """Sets columns of a row."""
    return lambda changed: changed[number].update(values)


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    """Sets what is at a path of keys and numbers."""

    def change(changed: Any) -> None:
        for key in path[:-1]:
            changed = changed[key]
        changed[path[-1]] = value

    return change


def drop(number: int, *path: Any) -> Callable[[Any], object]:
    """Removes a row, or what has that number in a list at a path."""

    def change(changed: Any) -> None:
        for key in path:
            changed = changed[key]
        del changed[number]

    return change


def again(number: int) -> Callable[[list[Any]], None]:
    """Repeats a row at the end."""
    return lambda changed: changed.append(changed[number])


def add(value: Any) -> Callable[[list[Any]], None]:
    """Adds a row at the end."""
    return lambda changed: changed.append(value)


def reverse(changed: list[Any]) -> None:
    """Turns the order around."""
    changed.reverse()


# Alignments

RECORDS = "records/records-00000-of-00001.parquet"


def _alignment(folder: Path, release: Path) -> Released:
    given = [
        record("1", [evidence("a lake", title="Lake Miravel")]),
        record("2", [evidence("no such text", title="No page")]),
    ]
    map_mini(folder / "dev", release, "jsonl", write_records(folder / "own.jsonl", given))
    return Released(folder / "dev", {})


def _record(
    what: str, text: str, *edits: Callable[[list[Any]], object], law: str = "counts", also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a table of records that does not agree with the others, or with the manifest."""
    return Tampered(what, rows(RECORDS, *edits), law, text, MANIFEST, also)


_ALIGNMENT = (
    _record(
        "a record is missing",
        "records.examples: 1 counted, 2 written",
        drop(1),
        also=((MANIFEST, "record_differs"),),
    ),
    Tampered("the records are in another order", rows(RECORDS, reverse), "record_order", "from number 0"),
    _record(
        "a written record is excluded",
        "records.excluded.negative: 1 counted, 0 written",
        at(0, outcome="excluded", reason="negative"),
    ),
    _record(
        "a dropped record has another reason",
        "counts.dropped.no_match: 1 counted, 0 written",
        at(1, reason="no_match"),
    ),
    _record(
        "a record has more evidence than the tables",
        "pieces of evidence: 3 in records, not 2",
        at(0, n_evidences=2),
        law="record_differs",
    ),
    _record(
        "a record has more written evidence than the tables",
        "evidences written: 1 in alignments, not 2",
        at(1, n_evidences_written=1),
        law="record_differs 2",
    ),
    Tampered(
        "the KILT file has a line twice",
        lines("jsonl-dev-kilt.jsonl", again(0)),
        "record_differs 3",
        "jsonl-dev-kilt.jsonl has 2 records, not 1",
        MANIFEST,
    ),
)

# Passages

PASSAGES = "passages/passages-00000-of-00002.parquet"
PYSERINI = "pyserini/passages-00000-of-00002.jsonl"
DPR = "dpr/passages.tsv"


def _passages(folder: Path, release: Path) -> Released:
    kb = write_kb(folder / "kb", CORPUS_PAGES)
    cut_release(folder / "corpus", kb, cut=CORPUS_CUT, formats=CORPUS_FORMS)
    return Released(folder / "corpus", {"kb": kb})


def _chunks(folder: Path, release: Path) -> Released:
    formats = ("kilt", "kilt-compat", "beir", "colbert")
    cut_release(folder / "corpus", release, cut=CutOptions(unit="tokens-100"), formats=formats)
    return Released(folder / "corpus", {"kb": release})


def _span(element: int, start: int, end: int) -> dict[str, int]:
    return {"element": element, "start_char": start, "end_char": end}


def _cell(end: int) -> dict[str, int]:
    return {"table": 0, "row": 0, "cell": 0, "start_char": 0, "end_char": end, "at": 0}


def _counted(name: str, value: Callable[[int], int]) -> Edit:
    return manifest(lambda values: values["counts"].update({name: value(values["counts"][name])}))


_LINES = ((PYSERINI, "line_differs"), (DPR, "line_differs"))
_TITLES = (("dpr/title_to_page_id.json", "line_differs"),)
_COUNTED = ((MANIFEST, "counts"),)
_DISORDER = ((PASSAGES, "passage_law 2"),)


def _passage(
    what: str, text: str, *edits: Callable[[list[Any]], object], number: int = 1, also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a malformed passage, or one that is out of order: the second invariant of that name."""
    return Tampered(what, rows(PASSAGES, *edits), "passage_law 2" if number == 2 else "passage_law", text, also=also)


def _other_passage(
    what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a passage that its page does not give."""
    return Tampered(what, rows(PASSAGES, *edits), "passage_differs", text, also=also, is_compared=True)


def _add_passage_of_no_page(passages: list[Any]) -> None:
    values = {"passage_id": "6__0", "page_id": 6, "title": "No page", "number": 0, "n_words": 1, "text": "Yes."}
    passages.append({**passages[0], **values, "spans": [_span(1, 0, 4)]})


_OUT_OF_ORDER = "3__1: its spans are out of order"
_CELLS = "3__1: its cells are out of order"
_NEITHER = "3__1: neither of text nor of a table, or of both"
_THIRD = "passages/passages-00002-of-00003.parquet"
_TWICE = ((MANIFEST, "duplicate_page"),)
_OF_THREE = (
    *((f"passages/passages-0000{number}-of-00003.parquet", "missing") for number in range(2)),
    *((f"pyserini/passages-0000{number}-of-00003.jsonl", "missing") for number in range(3)),
)
_NO_FILE = "every corpus of passages has this file"
_PASSAGES = (
    _passage("a passage has another id", "3__7: number 1 of page 3", at(1, passage_id="3__7"), also=_LINES),
    _passage("a title differs", "3__1: its page is 'Sorn' and 'Other'", at(1, title="Other"), number=2, also=_LINES),
    _passage(
        "a passage has a letter more",
        "3__1: of another length than its spans",
        at(1, text="It rises in Bracks."),
        also=_LINES,
    ),
    _passage("a passage begins before the last one ends", _OUT_OF_ORDER, at(1, spans=[_span(1, 0, 18)]), number=2),
    _passage("spans are in another order", _OUT_OF_ORDER, at(1, spans=[_span(2, 30, 39), _span(2, 21, 29)])),
    _passage("a passage has no spans", _NEITHER, at(1, spans=[]), also=_DISORDER),
    _passage("a passage of text has a cell", _NEITHER, at(1, cells=[_cell(2)]), also=_DISORDER),
    _passage("a cell ends behind the text", _CELLS, at(1, spans=[], cells=[_cell(99)]), also=_DISORDER),
    _passage("a cell is there twice", _CELLS, at(1, spans=[], cells=[_cell(2)] * 2), also=_DISORDER),
    _passage("text is behind a table", "3__2: its table is out of order", at(1, spans=[], cells=[_cell(2)]), number=2),
    _passage(
        "two sentences have more words than a passage",
        "3__1: 7 words",
        at(1, n_words=7, spans=[_span(2, 21, 30), _span(3, 0, 8)]),
        also=(*_DISORDER, *_COUNTED),
    ),
    _passage(
        "a passage is missing within its page",
        "3__2: not behind the passage before it",
        drop(1),
        number=2,
        also=(*_LINES, *_COUNTED),
    ),
    Tampered(
        "a page has a passage in a second place",
        rows(PASSAGES, again(0)),
        "duplicate_page",
        "page 3",
        MANIFEST,
        (*_LINES, *_TITLES, *_COUNTED),
    ),
    _other_passage(
        "a letter differs", "number 0: 3__0 instead of 3__0", at(0, text="The Sorn is a siver."), also=_LINES
    ),
    _other_passage("words are not counted", "number 0: 3__0 instead of 3__0", at(0, n_words=4), also=_COUNTED),
    _other_passage("another element", "number 2: 3__2 instead of 3__2", at(2, spans=[_span(4, 0, 17)])),
    _other_passage("the last is missing", "number 5: nothing instead of 5__2", drop(-1), also=(*_LINES, *_COUNTED)),
    _other_passage(
        "a passage is of no page",
        "number 6: 6__0 instead of nothing",
        _add_passage_of_no_page,
        also=(*_LINES, *_TITLES, *_COUNTED),
    ),
    *(
        Tampered(what, content(file, change), "line_differs", text)
        for what, file, change, text in (
            ("a word of a line differs", PYSERINI, lambda read: read.replace(b"Brack", b"Black"), "3__1 from byte 44"),
            ("there is a line more", PYSERINI, lambda read: read + b"{}\n", "more than there should be: {}"),
            ("the last line is missing", PYSERINI, lambda read: read[: read.rindex(b"{")], "5__2 from byte 0: "),
            ("columns are exchanged", DPR, lambda read: read.replace(b"text\ttitle", b"title\ttext", 1), "from byte 4"),
        )
    ),
    *(
        Tampered(
            f"the manifest counts one more of {name}",
            _counted(name, lambda count: count + 1),
            "counts",
            f"counts.{name}: ",
            is_compared=name == "pages",
        )
        for name in ("pages", "passages", "words", "long_passages", "pages_without_text")
    ),
    Tampered("the manifest counts one word", _counted("words", lambda count: 1), "counts", "counts.words"),
    Tampered("the manifest has no counts", manifest(put({}, "counts")), "manifest", "the entry 'passages' is missing"),
    Tampered(
        "a file of the table is missing", unlisted(PASSAGES), "missing", _NO_FILE, also=_COUNTED, is_compared=True
    ),
    Tampered("a file of lines is missing", unlisted(PYSERINI), "missing", _NO_FILE),
    Tampered(
        "there is a third file of the table",
        listed(_THIRD, PASSAGES),
        "manifest",
        "passages-00000-of-00002.parquet is not one of its files",
        also=(*_COUNTED, *_TWICE, *_OF_THREE),
    ),
    Tampered(
        "there is a file more than the pages have",
        listed(_THIRD, PASSAGES),
        "manifest",
        f"{_THIRD} is not one of its files",
        also=(*_COUNTED, *_TWICE),
        is_compared=True,
    ),
)
_CHUNKS = (
    Tampered(
        "a line says another paragraph than the page",
        content("kilt/passages.tsv", lambda before: before.replace(b'"paragraph_id":1', b'"paragraph_id":2', 1)),
        "line_differs",
        "1__0 from byte 312: 2",
        is_compared=True,
    ),
)

# QAMPARI

QUESTIONS = "questions/questions-00000-of-00001.parquet"
QUERIES = "queries/queries-00000-of-00001.parquet"
DEV = "qampari_data/dev_data.jsonl"


def _qampari(folder: Path, release: Path) -> Released:
    write_release(folder, PAGES, titles=[TitleRow(page.page_id, page.title) for page in PAGES])
    return Released(write_qampari(folder / "qampari", questions_of_each_split()), {"kb": folder / "release"})


_ANSWER = (0, "answer_list", 1)
_PROOF = (0, "answers", 0, "proofs", 0)
_NOT_IN_THE_FILE = ((DEV, "not_released"),)
_DIFFERS = ((DEV, "released_differs"),)
_NOT_DRAWN = ((DEV, "not_drawn"),)


def _line(what: str, edit: Callable[[list[Any]], object], text: str) -> Tampered:
    """Returns a line of the questions for development that is malformed."""
    return Tampered(what, lines(DEV, edit), "record_law", text, also=_NOT_IN_THE_FILE)


def _question(
    what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = _DIFFERS
) -> Tampered:
    """Returns a row of the table of questions that is malformed."""
    return Tampered(what, rows(QUESTIONS, *edits), "question_law", text, also=also)


def _proof(what: str, text: str, *, also: tuple[Place, ...] = (), **values: Any) -> Tampered:
    """Returns a proof that is not on its page."""
    edits = [put(value, *_PROOF, name) for name, value in values.items()]
    return Tampered(what, rows(QUESTIONS, *edits), "proof_differs", text, also=also, is_compared=True)


_QAMPARI = (
    _line("a line is no JSON", put("{", 0), "line 1"),
    _line("a qid has no split", put("0__wikidata_simple__development", 0, "qid"), "is not <number>__<subset>__<split>"),
    _line("a qid is of another split", put("0__wikidata_simple__test", 0, "qid"), "in the file of dev"),
    _line(
        "two answers have one aid",
        put("0__wikidata_simple__dev__0", *_ANSWER, "aid"),
        "answer 1 of 0__wikidata_simple__dev has the aid",
    ),
    _line("a proof has another pid", put("0__wikidata_simple__dev__1__1", *_ANSWER, "proof", 0, "pid"), "has the pid"),
    _line("a proof has no text", put("", *_ANSWER, "proof", 0, "proof_text"), "has no text or no address"),
    _line("an answer has no proof", put([], *_ANSWER, "proof"), "0__wikidata_simple__dev__1 has no proof"),
    _line("a question has no answers", put([], 0, "answer_list"), "has no answers"),
    _line(
        "the name of an answer is its second alias",
        put(["Sorn the Great", "Sorn"], *_ANSWER, "aliases"),
        "the aliases of 'Sorn' do not begin with it",
    ),
    _line(
        "an entity has no aliases",
        put([], 0, "entities", 0, "aliases"),
        "the aliases of 'Lake Miravel' do not begin with it",
    ),
    Tampered("a line is there twice", lines(DEV, again(0)), "duplicate_question", "line 3: 0__wikidata_simple__dev"),
    Tampered(
        "two questions of a split have one number",
        (
            rows(QUESTIONS, at(1, qid="0__wikidata_comp__dev")),
            content(DEV, lambda before: before.replace(b"1__wikidata_comp__dev", b"0__wikidata_comp__dev")),
        ),
        "duplicate_question",
        "line 2: 0__wikidata_comp__dev",
        DEV,
        also=_NOT_IN_THE_FILE,
    ),
    Tampered("a line of a drawn question is missing", lines(DEV, drop(-1)), "not_released", "1__wikidata_comp__dev"),
    Tampered(
        "a question with a line is not drawn",
        rows(QUESTIONS, at(0, split=None, qid=None)),
        "not_drawn",
        "0__wikidata_simple__dev",
        DEV,
    ),
    *(
        Tampered(what, lines(DEV, put(value, *path)), "released_differs", "0__wikidata_simple__dev")
        for what, value, path in (
            ("a line asks something else", "What else?", (0, "question_text")),
            ("an answer is on another wiki", "https://de.wikipedia.org/wiki/Sorn", (*_ANSWER, "answer_url")),
            ("a proof has another text", "The Sorn is short.", (*_ANSWER, "proof", 0, "proof_text")),
            ("a line has no meta", {}, (0, "meta")),
        )
    ),
    _question(
        "the subset is unknown",
        "no such subset",
        at(0, subset="wikidata", split=None, qid=None),
        also=_NOT_DRAWN,
    ),
    _question("a drawn question has no qid", "a split without a qid", at(0, qid=None), also=_NOT_DRAWN),
    _question(
        "a qid is of another subset",
        "names another subset or split",
        at(0, qid="0__wikidata_comp__dev"),
        also=(*_NOT_DRAWN, *_NOT_IN_THE_FILE),
    ),
    _question(
        "a qid is a word",
        "is not <number>__<subset>__<split>",
        at(0, qid="first"),
        also=(*_NOT_DRAWN, *_NOT_IN_THE_FILE),
    ),
    _question("a question for development is of the training side", "side train in dev", at(0, side="train"), also=()),
    _question(
        "fewer answers are validated than there are", "more answers than are validated", at(0, n_validated=4), also=()
    ),
    _question("an answer was dropped that is there", "more answers than are validated", at(0, n_dropped=1), also=()),
    _question("more answers are validated than found", "more validated than there are", at(0, n_answers=4), also=()),
    _question(
        "an entity has no aliases",
        "the aliases of Lake Miravel do not begin with it",
        put([], 2, "entities", 0, "aliases"),
        also=(),
    ),
    _question("an answer of two hops has one proof", "1 proofs of 'Brack'", at(2, subset=COMPOSITION), also=()),
    _question("a proof has no sentence", "without a sentence", put(40, 2, *_PROOF[1:], "start_char"), also=()),
    _question(
        "a proof is shorter than its span",
        "of another length than its span",
        put("The Ullane.", 2, *_PROOF[1:], "text"),
        also=(),
    ),
    Tampered("a query has two questions", rows(QUESTIONS, again(2)), "duplicate_question", "wikidata_simple, P50__Q3"),
    Tampered("a query is there twice", rows(QUERIES, again(0)), "duplicate_question 2", "wikidata_simple, P50__Q1"),
    _proof("a proof is of no page", "no page 1000", page_id=1000),
    _proof("a title differs", "not 'Other'", also=_DIFFERS, title="Other"),
    _proof("a proof is of no element", "has no element 99", element=99),
    _proof("a proof is elsewhere", "has another text there", start_char=1, end_char=41, sentence_char=1),
    Tampered(
        "the manifest does not say how the files are written",
        manifest(put({"host": "en.wikipedia.org"}, "form")),
        "manifest",
        "not of the form of a QAMPARI release",
    ),
    Tampered("a file of a split is missing", unlisted(DEV), "missing", "every QAMPARI release has this file"),
)

# Questions with passages

CONTEXT_DEV, CONTEXT_TEST = (f"qampari_contexts/{split}_data_with_contexts.jsonl" for split in ("dev", "test"))
READERS = "qampari_fid/dev_data.jsonl"
UNPLACED = "unplaced.jsonl"


def _contexts(folder: Path, release: Path) -> Released:
    kb = write_pages(folder / "kb")
    cut_release(folder / "corpus", kb, cut=CutOptions(max_words=10))
    qampari = write_questions(folder / "qampari", kb)
    contexts = write_contexts(folder, qampari, folder / "corpus")
    return Released(contexts, {"qampari": qampari, "passages": folder / "corpus"})


_READ = ((READERS, "context_differs"),)


_DEV = "0__wikidata_simple__dev"
_NOT_OF_PROOFS = "line 1: positive_ctxs are not of its proofs, or in another order"


def _ill(what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = _COUNTED) -> Tampered:
    """Returns a question that is malformed."""
    return Tampered(what, lines(CONTEXT_DEV, *edits), "context_law", text, also=also)


def _odd(
    what: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = (), is_compared: bool = False
) -> Tampered:
    """Returns a question that differs from what its parts give."""
    edit, text = lines(CONTEXT_DEV, *edits), f"{_DEV} from byte"
    return Tampered(what, edit, "context_differs", text, also=also, is_compared=is_compared)


def _reader(what: str, *edits: Callable[[list[Any]], object], text: str = f"{_DEV} from byte") -> Tampered:
    """Returns a line for readers that differs from its question."""
    return Tampered(what, lines(READERS, *edits), "context_differs", text)


def _unplaced(
    what: str, law: str, text: str, values: dict[str, str], *, file: str = "", also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a proof that is said to have no passage."""
    return Tampered(what, lines(UNPLACED, add(values)), law, text, file, also)


_CONTEXTS = (
    _odd("a question has another text", at(0, question_text="What?"), also=_READ),
    _odd("a line has another question", at(0, question="What?")),
    _odd("a line has no answers", at(0, answers=[])),
    _odd("a line has a further value", at(0, further=1)),
    _ill(
        "a question is of another split",
        "line 1: a proof of 7__wikidata_simple__test has the pid '0__wikidata_simple__dev__0__0'",
        at(0, qid="7__wikidata_simple__test"),
    ),
    _odd("a positive passage has another score", put(3.0, 0, "positive_ctxs", 0, "score")),
    _ill("a passage proves another answer", _NOT_OF_PROOFS, put(f"{_DEV}__4__0", 0, "positive_ctxs", 0, "pid")),
    _ill("a passage is of another question", _NOT_OF_PROOFS, put(f"{QIDS[1]}__0__0", 0, "positive_ctxs", 0, "pid")),
    _ill("passages are in another order", _NOT_OF_PROOFS, lambda read: read[0]["positive_ctxs"].reverse()),
    _odd("a positive passage is missing", drop(-1, 0, "positive_ctxs"), also=((CONTEXT_DEV, "proof_lost"), *_COUNTED)),
    _odd("a negative passage is missing", drop(-1, 0, "hard_negative_ctxs")),
    _odd("a negative passage is another", put("1__0", 0, "hard_negative_ctxs", 0, "chunk_id")),
    _odd("a negative passage has a pid", put("x", 0, "hard_negative_ctxs", 0, "pid")),
    _odd("a ranked passage has another score", put(49.5, 0, "ctxs", 0, "score"), also=_READ),
    _ill(
        "a score is a whole number", "'score': expected a number with a point, found 50", put(50, 0, "ctxs", 0, "score")
    ),
    _ill("a ranked passage is there twice", "line 1: a ranked passage appears twice", put("4__0", 0, "ctxs", 0, "id")),
    _ill(
        "more passages are ranked than allowed",
        "line 1: 10 ranked passages, but 9 were requested",
        lambda read: read[0]["ctxs"].append({**read[0]["ctxs"][0], "id": "0__0"}),
    ),
    _ill("a question is there twice", f"line 3: {_DEV} was given before", again(0), also=()),
    _ill(
        "an alias is a number",
        "line 1: 'aliases': expected strings, found 7",
        lambda read: read[0]["answer_list"][0]["aliases"].append(7),
    ),
    _ill("a line is no JSON", "line 3: Expecting value: line 1 column 1 (char 0)", add("x"), also=()),
    _reader("a reader is to answer otherwise", at(0, target="x")),
    _reader("a reader gets another text", put("x", 0, "ctxs", 0, "text")),
    _reader("a reader gets a question less", drop(-1), text="1__wikidata_comp__dev from byte 0: "),
    _reader("a reader gets a line more", add("x"), text="more than there should be: x"),
    _unplaced(
        "a proof without a passage is unknown",
        "proof_lost",
        "x is not a proof of a question, or has a passage",
        {"pid": "x", "reason": "no_passages"},
        also=_COUNTED,
    ),
    _unplaced(
        "a proof has no passage for an unknown reason",
        "context_law",
        "line 1: x, x: given before, or with an unknown reason",
        {"pid": "x", "reason": "x"},
    ),
    _unplaced(
        "a proof with a passage is said to have none",
        "proof_lost",
        f"{_DEV}__0__0",
        {"pid": f"{_DEV}__0__0", "reason": "no_passages"},
        file=CONTEXT_DEV,
        also=_COUNTED,
    ),
    *(
        Tampered(f"other {name} are counted", _counted(name, value), "counts", text, also=(("report.json", "counts"),))
        for name, value, text in (
            ("hard_negatives", lambda count: 4, "hard_negatives: 5 counted, 4 written"),
            ("rejected", lambda counts: {}, "rejected: {'malformed_json': 1} counted, {} written"),
            ("proofs", lambda counts: {**counts, "placed": 19}, "proofs: {'all': 20, 'placed': 20, "),
            ("questions", lambda counts: {**counts, "dev": 3}, "questions: {'train': 1, 'dev': 2, "),
        )
    ),
    Tampered(
        "the manifest has no counts",
        manifest(put({}, "counts")),
        "manifest",
        "options or counts do not match those of questions with passages",
    ),
    Tampered(
        "a file for readers is missing",
        unlisted(READERS),
        "missing",
        "every folder of questions with passages has this file",
    ),
    Tampered(
        "there is a file more",
        listed("further.jsonl", UNPLACED),
        "manifest",
        "further.jsonl is not one of its files",
    ),
    _odd("a positive passage has another text", put("x", 0, "positive_ctxs", 0, "text"), is_compared=True),
    _odd("a positive passage has another title", put("x", 0, "positive_ctxs", 0, "title"), is_compared=True),
    Tampered(
        "a proof with a passage is said to be cut",
        (
            lines(CONTEXT_DEV, drop(-1, 1, "positive_ctxs")),
            lines(UNPLACED, add({"pid": f"{QIDS[1]}__4__1", "reason": "sentence_cut"})),
        ),
        "proof_lost",
        "1__wikidata_comp__dev__4__1",
        also=((CONTEXT_DEV, "context_differs"), (UNPLACED, "context_differs"), *_COUNTED),
        is_compared=True,
    ),
    Tampered(
        "a question is missing in both of its files",
        (lines(CONTEXT_DEV, drop(0)), lines(READERS, drop(0))),
        "context_differs",
        f"{_DEV} from byte",
        also=(*_READ, *_COUNTED),
        is_compared=True,
    ),
    Tampered(
        "a ranked passage is not in the corpus",
        tuple(lines(file, put("1__7", 0, "ctxs", 2, "id")) for file in (CONTEXT_DEV, READERS)),
        "unknown_passage",
        "line 1: 1__7, or with another text",
        is_compared=True,
    ),
)

# What changed between two releases

PAGE_CHANGES, SECTION_CHANGES, SPAN_CHANGES, REDIRECT_CHANGES = (
    f"{name}_changes/{name}_changes-00000-of-00001.parquet" for name in ("page", "section", "span", "redirect")
)


def _diff(folder: Path, release: Path) -> Released:
    made_diff(folder, 3, 40)
    return Released(folder / "diff", {name: folder / name / "release" for name in ("old", "new")})


def first(values: dict[str, Any], **wanted: Any) -> Callable[[list[Any]], None]:
    """Sets columns of the first row that has the wanted values."""
    return lambda changed: _first(changed, **wanted).update(values)


def _first(changed: list[Any], **wanted: Any) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in changed if all(row[name] == value for name, value in wanted.items()))
    return row


def _with_counts(edit: Edit) -> Edit:
    """Makes the manifest count the outcomes that a table has after the edit."""
    table = table_of(edit.file)
    assert table is not None

    def apply(folder: Path) -> None:
        edit.apply(folder)
        outcomes = pq.read_table(folder / edit.file, columns=["outcome"])["outcome"].to_pylist()
        counts = json.loads((folder / MANIFEST).read_text())["counts"]
        counts[table] = {name: outcomes.count(name) for name in counts[table]}
        seal(folder, counts=counts)

    return Edit(edit.file, apply)


def _change(
    what: str,
    file: str,
    law: str,
    text: str,
    *edits: Callable[[list[Any]], object],
    also: tuple[Place, ...] = (),
    is_compared: bool = False,
) -> Tampered:
    """Returns a table of a diff that was changed."""
    return Tampered(what, _with_counts(rows(file, *edits)), law, text, also=also, is_compared=is_compared)


def _name_page_twice(changed: list[Any]) -> None:
    _first(changed, outcome="added")["new_page_id"] = _first(changed, outcome="changed")["new_page_id"]


_CONTRADICTED = "which the other columns contradict"
_DIFF = (
    _change(
        "rows are in another order",
        PAGE_CHANGES,
        "change_law 2",
        "pages 11 and none: out of order, or duplicated",
        reverse,
    ),
    *(
        _change(what, PAGE_CHANGES, "change_law", f"{text}, {_CONTRADICTED}", first(values, outcome=outcome))
        for what, outcome, values, text in (
            ("an unchanged page has another title", "unchanged", {"title_changed": True}, "pages 2 and 2: unchanged"),
            ("a page that is gone has an id", "gone", {"new_page_id": 1}, "pages 5 and 1: gone"),
            ("how much was kept is missing", "changed", {"kept": None}, "pages 32 and 32: changed"),
            ("an added page has an origin", "added", {"origin_page_id": 1}, "pages none and 95: added"),
            ("an added page has the same text", "added", {"text_changed": False}, "pages none and 95: added"),
        )
    ),
    _change(
        "a new page is named twice", PAGE_CHANGES, "page_unnamed 2", "new page 32 is named twice", _name_page_twice
    ),
    _change(
        "an old page is named twice",
        PAGE_CHANGES,
        "page_unnamed",
        "old page 2 is named twice",
        again(0),
        also=((PAGE_CHANGES, "change_law 2"), (PAGE_CHANGES, "page_unnamed 2")),
    ),
    _change("more of a section was kept than all", SECTION_CHANGES, "change_law 3", "page 8: same", at(0, kept=1.5)),
    _change(
        "the outcome of a piece is unknown",
        SPAN_CHANGES,
        "change_law 4",
        "page 8: x",
        first({"outcome": "x"}, outcome="same"),
        also=_COUNTED,
    ),
    _change(
        "the outcome of a redirect is unknown",
        REDIRECT_CHANGES,
        "change_law 5",
        "page Page 22: x",
        at(0, outcome="x"),
        also=_COUNTED,
    ),
    _change(
        "a piece begins behind the end of the last",
        SPAN_CHANGES,
        "piece_law 2",
        "page 8, element 0, [1, 6)",
        first({"old_start": 1, "new_start": 1}, outcome="same"),
    ),
    _change(
        "a piece that is gone is on a page",
        SPAN_CHANGES,
        "piece_law",
        "page 5, element 0, [0, 6)",
        first({"new_page_id": 1}, outcome="gone"),
    ),
    _change("a piece is of no page", SPAN_CHANGES, "piece_law 3", "page 1000000 has no row", at(-1, old_page_id=10**6)),
    _change(
        "an old page has no row",
        PAGE_CHANGES,
        "page_unnamed 3",
        "old page 2",
        lambda changed: changed.remove(_first(changed, outcome="unchanged")),
        also=((PAGE_CHANGES, "page_unnamed 4"),),
        is_compared=True,
    ),
    _change(
        "a new page has no row",
        PAGE_CHANGES,
        "page_unnamed 4",
        "new page 95",
        lambda changed: changed.remove(_first(changed, outcome="added")),
        is_compared=True,
    ),
    _change(
        "a page that changed is said to be the same",
        PAGE_CHANGES,
        "change_differs",
        "page 32",
        first({"outcome": "unchanged", "text_changed": False}, outcome="changed"),
        also=((SPAN_CHANGES, "piece_law 3"), (SPAN_CHANGES, "piece_law 4")),
        is_compared=True,
    ),
    _change(
        "a piece is of another element",
        SPAN_CHANGES,
        "piece_differs",
        "page 8, element 1, [0, 6): Part 0 is not there",
        first({"new_element": 0}, outcome="same", old_element=1),
        is_compared=True,
    ),
    _change(
        "a piece ends behind its element",
        SPAN_CHANGES,
        "piece_differs",
        "page 8, element 4, [0, 59): ",
        first({"new_end": 10**6}, outcome="edited"),
        is_compared=True,
    ),
    _change(
        "the last piece is missing",
        SPAN_CHANGES,
        "piece_law 4",
        "page 46: pieces do not cover its elements",
        drop(-1),
        is_compared=True,
    ),
)

# Wikidata


def _wikidata(folder: Path, release: Path) -> Released:
    make(write_odd_dump(folder), output=folder / "release", max_rejects=0.1)
    return Released(folder / "release", {})


def _values(folder: Path, release: Path) -> Released:
    """A release with a time and a place."""
    time = {"time": "+1952-03-11T00:00:00Z", "precision": 11, "calendarmodel": f"{_ENTITY}Q1985727"}
    place = {"latitude": 1.5, "longitude": 2.5, "globe": f"{_ENTITY}Q2"}
    claims = (snak("P1", "any", "time", time), snak("P2", "any", "globecoordinate", place))
    (folder / "dump.json").write_bytes(array([item("Q1", *claims)]))
    make(folder / "dump.json", output=folder / "release")
    return Released(folder / "release", {})


_ENTITY = "http://www.wikidata.org/entity/"
_QUALIFIER = {"property_id": "P580", "snak": "value", "value_type": "number", "value": "1"}


def _table(name: str) -> str:
    return f"{name}/{name}-00000-of-00001.parquet"


def _entity(
    table: str,
    column: str,
    value: Any,
    law: str,
    text: str,
    *,
    row: int = 0,
    file: str = "",
    also: tuple[Place, ...] = (),
) -> Tampered:
    """Returns a table of which one value was changed."""
    what = f"{column} of {table} is {value!r} in row {row}"
    return Tampered(what, rows(_table(table), at(row, **{column: value})), law, text, file, also)


_CLASSES = ((_table("classes"), "classes_disagree"),)
_LINKS = ((MANIFEST, "counts"), (MANIFEST, "counts 3"))
_NO_ID = "Q5: a value that is not an id"
_WIKIDATA = (
    _entity("items", "item_id", "Q4", "duplicate_entity", "Q4", also=_LINKS),
    _entity("items", "item_id", "X4", "entity_law", "X4: not an id", also=_LINKS),
    _entity("items", "item_id", "Q4294967296", "entity_law", "Q4294967296: not an id", also=_LINKS),
    _entity("items", "label", None, "entity_law", "Q5: a label without a language"),
    _entity("items", "n_statements", 7, "counts", "statements_Q: 44, entities claim 49", file=MANIFEST),
    _entity("properties", "label", None, "entity_law 2", "P31: a label without a language"),
    Tampered(
        "a property is there twice", rows(_table("properties"), again(0)), "duplicate_entity 2", "P31", also=_COUNTED
    ),
    _entity("properties", "n_statements", 7, "counts 2", "statements_P: 0, entities claim 7", file=MANIFEST),
    _entity("sitelinks", "item_id", "Q6", "counts 3", "sitelinks_Q: 1, entities claim 1", file=MANIFEST),
    _entity("sitelinks", "title", "", "entity_law 3", "Q5: a sitelink without a title"),
    _entity(
        "statements", "entity_id", "Q100", "counts", "statements_Q: 44, entities claim 44", file=MANIFEST, also=_CLASSES
    ),
    _entity("statements", "rank", "best", "entity_law 4", "Q5: not a rank"),
    _entity("statements", "snak", "novalue", "entity_law 4", "Q5: a value type without a value"),
    _entity("statements", "value_type", "number", "entity_law 4", "Q5: not a type of value", also=_CLASSES),
    *(
        _entity("statements", "value", value, "entity_law 4", _NO_ID, also=_CLASSES)
        for value in ("5", "Q1-F1", "Q99999999999")
    ),
    _entity("statements", "value", "Q77", "classes_disagree", "number 0: Q2 instead of Q2", file=_table("classes")),
    _entity(
        "statements",
        "entity_id",
        "Q4294967296",
        "entity_law 4",
        "Q4294967296: not an id",
        also=(*_CLASSES, *_COUNTED),
    ),
    _entity("statements", "year", 1900, "entity_law 4", "Q5: year of another type of value"),
    _entity("classes", "distance", 3, "classes_disagree", "number 0: Q2 instead of Q2"),
    _entity("rejected", "reason", "bad_luck", "counts", "totals.rejected.bad_luck: 1 counted", file=MANIFEST),
    Tampered(
        "the type of a qualifier is unknown",
        rows(_table("statements"), at(0, qualifiers=[_QUALIFIER])),
        "entity_law 5",
        "Q5: not a type of value",
    ),
)
_VALUES = tuple(
    _entity("statements", column, value, "entity_law 4", f"{column} not from", row=row)
    for row, column, value in (
        (0, "month", 13),
        (0, "day", 0),
        (0, "precision", 15),
        (1, "latitude", float("nan")),
        (1, "longitude", -361.0),
    )
)

GROUPS = {
    "wikidata": Group(WIKIDATA_RELEASE, _wikidata, _WIKIDATA),
    "values": Group(WIKIDATA_RELEASE, _values, _VALUES),
    "diff": Group(RELEASE_DIFF, _diff, _DIFF),
    "alignment": Group(ALIGNMENT, _alignment, _ALIGNMENT),
    "passages": Group(PASSAGES_CORPUS, _passages, _PASSAGES),
    "chunks": Group(PASSAGES_CORPUS, _chunks, _CHUNKS),
    "qampari": Group(QAMPARI_RELEASE, _qampari, _QAMPARI),
    "contexts": Group(CONTEXTS, _contexts, _CONTEXTS),
}
"""The table, by name of a release."""
