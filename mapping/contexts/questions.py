"""Reads the questions that are exported with their passages, and the locations of their proofs.

Questions come from a release of kbsource or from the files that QAMPARI publishes. In published files, a proof is a
text and the URL of a page, without a location.

::

    train_data.jsonl, dev_data.jsonl, test_data.jsonl       in a folder, or in its folder qampari_data

Each published file may be missing, and may be compressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from kbsource.dump.compressed.streams import SUFFIXES
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.identity import title_hash
from kbsource.records import BadRecord
from kbsource.release.manifest import ListingManifest, input_files
from kbsource.release.reader import check_hashes
from mapping.contexts.gold import GoldPassages, ProofPlace
from mapping.qampari.kind import read_form
from mapping.qampari.records import SPLITS, Question
from mapping.qampari.release import DATA, part_id, read_questions, released_record
from mapping.sources.raw_records import (
    FAULTS,
    Json,
    check_shape,
    iter_lines,
    list_at,
    objects_at,
    open_decompressed,
    text_at,
)
from mapping.sources.scratch import ScratchFile

if TYPE_CHECKING:
    from mapping.contexts.proof_finder import ReleaseProofs


class SplitQuestion(NamedTuple):
    """A question as written in the file of its split."""

    split: str
    record: Json


class ReleaseQuestions:
    """The questions of a QAMPARI release. They can be read several times, always in the same order.

    Raises:
        SetupError: the folder is not a finished release, or its manifest was changed after it was written.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._manifest, self._form = read_form(folder)

    def facts(self) -> dict[str, Any]:
        """Returns the facts that identify the questions in a manifest."""
        return {"manifest_sha256": self._manifest.sha256}

    def check(self, corpus: ListingManifest) -> None:
        """Raises SetupError if files were changed after they were written, or if passages belong to another knowledge
        source.
        """
        made_from, cut_from = self._manifest.made_from(), corpus.made_from()
        if made_from is not None and made_from != cut_from:
            raise SetupError(
                f"{self._folder} was made from the release whose manifest has the SHA-256 {made_from}, but the "
                f"passages from the release with {cut_from}. Make passages from the first release with kbsource "
                f"passages."
            )
        check_hashes(self._folder, self._manifest.entries())

    def add_places(self, gold: GoldPassages) -> None:
        """Adds all proofs of all questions, with their locations."""
        for question in read_questions(self._folder, self._manifest):
            for place in proof_places(question):
                gold.add(place)

    def read(self) -> Iterator[SplitQuestion]:
        """Reads the questions of each split, in the order of its file."""
        for question in read_questions(self._folder, self._manifest):
            if question.qid is not None and question.split is not None:
                yield SplitQuestion(question.split, released_record(question, self._form))


def proof_places(question: Question) -> Iterator[ProofPlace]:
    """Locates the sentences of a question's proofs. A question that was not sampled has no proofs."""
    if question.qid is None:
        return
    for number, answer in enumerate(question.answers):
        for place, proof in enumerate(answer.proofs):
            yield ProofPlace(
                part_id(part_id(question.qid, number), place),
                question.qid,
                proof.page_id,
                proof.title,
                proof.element,
                proof.sentence_char,
                proof.end_char,
                proof.text[proof.sentence_char - proof.start_char :],
            )


PUBLISHED_REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_question": "the qid occurred before",
    "malformed_pid": "the pid of a proof does not start with the qid, or occurred before",
    "no_answers": "a question without answers",
}
"""Reasons why a published question is left out, with their meanings."""


class PublishedQuestions:
    """The questions of the files that QAMPARI published, with the interface of ``ReleaseQuestions``. Memory: about 60
    bytes per question.

    Args:
        reject: called with the position and reason of every question that cannot be used.

    Raises:
        SetupError: the folder contains none of the files.
    """

    def __init__(self, folder: str, finder: ReleaseProofs, *, reject: Callable[[BadRecord], None]) -> None:
        self._folder, self._finder, self._reject = folder, finder, reject
        self._files = published_files(folder)
        if not self._files:
            raise SetupError(
                f"{folder}: neither a finished QAMPARI release nor published files ({SPLITS[0]}_data.jsonl and so "
                f"on); name the folder of such a release or of such files."
            )

    def facts(self) -> dict[str, Any]:
        files = input_files(self._files.values())
        return {"published": [asdict(file) for file in files], "release": self._finder.facts()}

    def check(self, corpus: ListingManifest) -> None:
        given, cut_from = self._finder.facts()["manifest_sha256"], corpus.made_from()
        if given != cut_from:
            raise SetupError(
                f"--kb is the release whose manifest has the SHA-256 {given}, but the passages were cut from the "
                f"release with {cut_from}; name that release."
            )
        for path in self._files.values():
            with open_decompressed(path):
                pass
            check_shape(
                path,
                iter_lines(path),
                lambda record: {"qid", "question_text", "answer_list"} <= record.keys(),
                expected="JSON Lines of QAMPARI with qid, question_text and answer_list",
            )

    def add_places(self, gold: GoldPassages) -> None:
        with _Proofs() as proofs:
            for question in self._read(self._reject):
                for answer in question.record["answer_list"]:
                    for proof in answer["proof"]:
                        proofs.add(proof["pid"], question.record["qid"], proof["found_in_url"], proof["proof_text"])
            for pid, qid, url, text in proofs.by_page():
                found = self._finder.find(url, text)
                if isinstance(found, str):
                    gold.add(ProofPlace(pid, qid, None, url, None, None, None, text), reason=found)
                else:
                    gold.add(ProofPlace(pid, qid, *found))

    def read(self) -> Iterator[SplitQuestion]:
        return self._read(lambda _: None)

    def _read(self, reject: Callable[[BadRecord], None]) -> Iterator[SplitQuestion]:
        seen: set[int] = set()
        for split, path in self._files.items():
            for raw in iter_lines(path):
                qid = ""
                try:
                    record = raw.parse()
                    qid = text_at(record, "qid")
                    check_published(record)
                    if title_hash(qid) in seen:
                        raise RecordError("duplicate_question", qid)
                except RecordError as error:
                    reject(raw.bad(error, key=qid, stage="questions"))
                    continue
                seen.add(title_hash(qid))
                yield SplitQuestion(split, record)


class _Proofs(ScratchFile):
    """Published proofs, on disk, so that each page is read once."""

    schema = "CREATE TABLE proofs (pid TEXT NOT NULL, qid TEXT NOT NULL, url TEXT NOT NULL, text TEXT NOT NULL);"

    def add(self, pid: str, qid: str, url: str, text: str) -> None:
        """Adds a proof."""
        self._database.execute("INSERT INTO proofs VALUES (?, ?, ?, ?)", (pid, qid, url, text))

    def by_page(self) -> Iterator[tuple[str, str, str, str]]:
        """Reads the proofs grouped by URL, in the order in which they were added."""
        yield from self._database.execute("SELECT pid, qid, url, text FROM proofs ORDER BY url, rowid")


def published_files(folder: str) -> dict[str, str]:
    """Returns the published file of each split in a folder, in the order of the splits."""
    names = {split: [f"{split}_data.jsonl{suffix}" for suffix in SUFFIXES] for split in SPLITS}
    for place in (folder, join(folder, DATA)):
        found = {
            split: path for split in SPLITS for name in names[split] if Folder.of(path := join(place, name)).exists()
        }
        if found:
            return found
    return {}


def check_published(record: Json) -> None:
    """Checks that a question has everything that is needed from it.

    Raises:
        RecordError: with a reason of ``PUBLISHED_REASONS``.
    """
    qid = text_at(record, "qid")
    text_at(record, "question_text")
    answers = objects_at(record, "answer_list")
    if not answers:
        raise RecordError("no_answers", f"{qid} has no answers")
    pids: set[str] = set()
    for answer in answers:
        text_at(answer, "answer_text")
        if odd := [alias for alias in list_at(answer, "aliases") if not isinstance(alias, str)]:
            raise RecordError("wrong_type", f"'aliases': expected strings, found {repr(odd[0])[:80]}")
        for proof in objects_at(answer, "proof"):
            text_at(proof, "proof_text")
            text_at(proof, "found_in_url")
            pid = text_at(proof, "pid")
            if pid in pids or not pid.startswith(f"{qid}__"):
                raise RecordError("malformed_pid", f"a proof of {qid} has the pid {pid!r}")
            pids.add(pid)
