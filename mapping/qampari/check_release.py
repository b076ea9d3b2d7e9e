"""The laws of a QAMPARI release, checked in its files: tables and files of the splits say the same, and proofs stand
where they are said to stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from kbsource.errors import RecordError
from kbsource.files import join
from kbsource.identity import title_hash
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import read_table
from kbsource.release.verify import Checking
from mapping.qampari.question_rows import SPLITS, DrawnQuestion, question_of_row
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SUBSETS
from mapping.qampari.records import ProofText, QuestionAnswer, QuestionEntity
from mapping.qampari.release_files import data_path, form_of, release_paths
from mapping.qampari.released import Form, aid_of, parse_qid, pid_of, record_line, released_record
from mapping.sources.reading.base import Split
from mapping.sources.reading.fields import Json, list_at, objects_at, text_at
from mapping.sources.reading.files_in import iter_lines
from mapping.write.kind import source_of

RULES = {
    "record_law": "a released question is not built as such questions are",
    "question_law": "a row of questions is not built as such rows are",
    "duplicate_question": "two questions have one id, one number or one query",
    "not_released": "a drawn question is not in the file of its split",
    "not_drawn": "a released question is none that was drawn",
    "released_differs": "a released question is not what the table says",
    "proof_differs": "a proof is not what its page says",
}
"""Every law and what it means that it is broken."""

_QUESTIONS = shard_path("questions", 0, 1)
_N_PROOFS = {COMPOSITION: 2, INTERSECTION: 2}
"""Proofs that come together: both facts, or both queries."""
_QUESTIONS_AT_ONCE = 512
_SHOWN_CHARS = 120


class _Line(NamedTuple):
    split: Split
    offset: int
    n_bytes: int


def check_release(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every law of a QAMPARI release and gives how much was checked; None where its files do not allow it."""
    form = form_of(checking.manifest)
    if form is None:
        checking.found.add(MANIFEST, "manifest", "form is not that of a QAMPARI release")
        return None
    if not checking.has_files(release_paths()):
        return None
    with source_of(checking) as source:
        return _ReleaseChecks(checking, form, source).run()


class _ReleaseChecks:
    """Checks of one release, whose files are what was written. Memory: some 200 bytes a question.

    Args:
        checking: of the release.
        form: how it is written.
        source: knowledge source that the proofs are from; None checks no text.
    """

    def __init__(self, checking: Checking[ListingManifest], form: Form, source: KnowledgeSource | None) -> None:
        self._path, self._storage, self._found = checking.path, checking.storage, checking.found
        self._on_file, self._form, self._source = checking.done, form, source
        self._lines: dict[str, _Line] = {}
        self._files: dict[Split, BinaryIO] = {}

    def run(self) -> Mapping[str, int]:
        """Checks every law and gives how much was checked."""
        for split in SPLITS:
            self._check_data(split)
        with ExitStack() as stack:
            for split in SPLITS:
                file = self._storage.open_read(join(self._path, data_path(split)))
                self._files[split] = stack.enter_context(file)
            n_questions, n_answers, n_proofs = self._check_questions()
        self._check_unique("queries")
        for qid, line in self._lines.items():
            self._found.add(data_path(line.split), "not_drawn", qid)
        return {"questions": n_questions, "answers": n_answers, "proofs": n_proofs}

    def _check_data(self, split: Split) -> None:
        file = data_path(split)
        numbers: set[int] = set()
        path = join(self._path, file)
        for raw in iter_lines(self._storage, path) if self._storage.size(path) else ():
            try:
                record = raw.parse()
                qid = text_at(record, "qid")
                n = check_record(record, split)
            except RecordError as error:
                self._found.add(file, "record_law", f"line {raw.line}: {error.detail}")
                continue
            if qid in self._lines or n in numbers:
                self._found.add(file, "duplicate_question", f"line {raw.line}: {qid}")
                continue
            numbers.add(n)
            self._lines[qid] = _Line(split, raw.offset, len(raw.data))
        self._on_file(file)

    def _check_questions(self) -> tuple[int, int, int]:
        n_questions = n_answers = n_proofs = 0
        keys: set[int] = set()
        rows = self._rows("questions")
        while batch := [question_of_row(row) for row in islice(rows, _QUESTIONS_AT_ONCE)]:
            for drawn in batch:
                question = drawn.question
                self._see_key("questions", question.subset, question.key, keys)
                for fault in _row_faults(drawn):
                    self._found.add(_QUESTIONS, "question_law", f"{question.subset}, {question.key}: {fault}")
                self._check_released(drawn)
                n_answers += len(question.answers)
                n_proofs += sum(len(answer.proofs) for answer in question.answers)
            self._check_texts(batch)
            n_questions += len(batch)
        self._on_file(_QUESTIONS)
        return n_questions, n_answers, n_proofs

    def _check_released(self, drawn: DrawnQuestion) -> None:
        if drawn.qid is None or drawn.split is None:
            return
        line = self._lines.get(drawn.qid)
        if line is None:
            self._found.add(data_path(drawn.split), "not_released", drawn.qid)
            return
        del self._lines[drawn.qid]
        self._files[line.split].seek(line.offset)
        stored = self._files[line.split].read(line.n_bytes)
        wanted = record_line(released_record(drawn, self._form)).rstrip(b"\n")
        if stored != wanted:
            at = next((n for n, (one, other) in enumerate(zip(stored, wanted, strict=False)) if one != other), 0)
            shown = stored[at : at + _SHOWN_CHARS].decode("utf-8", "replace")
            self._found.add(data_path(line.split), "released_differs", f"{drawn.qid} from byte {at}: {shown}")

    def _check_texts(self, batch: list[DrawnQuestion]) -> None:
        if self._source is None:
            return
        by_page: defaultdict[int, list[tuple[str, ProofText]]] = defaultdict(list)
        for drawn in batch:
            for answer in drawn.question.answers:
                for proof in answer.proofs:
                    by_page[proof.page_id].append((drawn.question.key, proof))
        for page_id, proofs in sorted(by_page.items()):
            page = self._source.by_id(page_id)
            for key, proof in proofs:
                if page is None:
                    fault = f"no page {page_id}"
                elif page.title != proof.title:
                    fault = f"page {page_id} is {page.title!r}, not {proof.title!r}"
                elif not 0 <= proof.element < len(page.elements):
                    fault = f"page {page_id} has no element {proof.element}"
                elif page.elements[proof.element].text[proof.start_char : proof.end_char] != proof.text:
                    fault = f"page {page_id}, element {proof.element} has another text there"
                else:
                    continue
                self._found.add(_QUESTIONS, "proof_differs", f"{key}: {fault}")

    def _check_unique(self, table: str) -> None:
        keys: set[int] = set()
        for row in self._rows(table):
            self._see_key(table, row["subset"], row["key"], keys)
        self._on_file(shard_path(table, 0, 1))

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        return read_table(self._path, table, self._storage)

    def _see_key(self, table: str, subset: str, key: str, seen: set[int]) -> None:
        number = title_hash(f"{subset}\x1f{key}")
        if number in seen:
            self._found.add(shard_path(table, 0, 1), "duplicate_question", f"{subset}, {key}")
        seen.add(number)


def check_record(record: Json, split: Split) -> int:
    """Gives the number in the qid of a released question.

    Raises:
        RecordError: it is not built as such questions are.
    """
    qid = text_at(record, "qid")
    n, _, named = parse_qid(qid)
    if named != split:
        raise RecordError("other_split", f"{qid} in the file of {split}")
    text_at(record, "question_text")
    for entity in objects_at(record, "entities"):
        _check_names(qid, text_at(entity, "entity_text"), list_at(entity, "aliases"))
    answers = objects_at(record, "answer_list")
    if not answers:
        raise RecordError("no_answers", f"{qid} has no answers")
    for number, answer in enumerate(answers):
        aid = text_at(answer, "aid")
        if aid != aid_of(qid, number):
            raise RecordError("malformed_aid", f"answer {number} of {qid} has the aid {aid!r}")
        _check_names(aid, text_at(answer, "answer_text"), list_at(answer, "aliases"))
        proofs = objects_at(answer, "proof")
        if not proofs:
            raise RecordError("no_proof", f"{aid} has no proof")
        for place, proof in enumerate(proofs):
            pid = text_at(proof, "pid")
            if pid != pid_of(aid, place):
                raise RecordError("malformed_pid", f"proof {place} of {aid} has the pid {pid!r}")
            if not text_at(proof, "proof_text") or not text_at(proof, "found_in_url"):
                raise RecordError("empty_proof", f"{pid} has no text or no address")
    return n


def _check_names(owner: str, text: str, aliases: list[Any]) -> None:
    if not text or aliases[:1] != [text]:
        raise RecordError("odd_aliases", f"{owner}: the aliases of {text!r} do not begin with it")


def _row_faults(drawn: DrawnQuestion) -> Iterator[str]:
    question = drawn.question
    if question.subset not in SUBSETS:
        yield "no such subset"
    if (drawn.qid is None) != (drawn.split is None):
        yield "a qid without a split, or a split without a qid"
    if drawn.qid is not None:
        try:
            _, subset, split = parse_qid(drawn.qid)
        except RecordError as error:
            yield error.detail
        else:
            if (subset, split) != (question.subset, drawn.split):
                yield f"{drawn.qid} names another subset or split"
    if drawn.split in ("dev", "test") and drawn.side != "test":
        yield f"side {drawn.side} in {drawn.split}"
    if not len(question.answers) + drawn.n_dropped <= question.n_validated <= question.n_answers:
        yield "more answers than are validated, or more validated than there are"
    things: list[QuestionEntity | QuestionAnswer] = [*question.entities, *question.answers]
    for thing in things:
        if not thing.text or thing.aliases[:1] != (thing.text,):
            yield f"the aliases of {thing.text!r} do not begin with it"
    at_once = _N_PROOFS.get(question.subset, 1)
    for answer in question.answers:
        if not answer.proofs or len(answer.proofs) % at_once:
            yield f"{len(answer.proofs)} proofs of {answer.text!r}"
        for proof in answer.proofs:
            if not proof.start_char <= proof.sentence_char < proof.end_char:
                yield f"a proof of {answer.text!r} without a sentence"
            elif len(proof.text) != proof.end_char - proof.start_char:
                yield f"a proof of {answer.text!r} of another length than its span"
