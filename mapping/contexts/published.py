"""QAMPARI's files as they are published: a proof is a text and the address of a page, without its place.

::

    train_data.jsonl, dev_data.jsonl, test_data.jsonl       in a folder, or in its folder qampari_data

Each may be missing, and be compressed with gzip or bzip2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.identity import title_hash
from kbsource.records import BadRecord
from kbsource.release.manifest import ListingManifest, input_files
from mapping.contexts.gold import GoldPassages, ProofPlace
from mapping.contexts.questions import AskedQuestion
from mapping.qampari.question_rows import SPLITS
from mapping.qampari.release_files import DATA
from mapping.sources.reading.base import Split
from mapping.sources.reading.fields import Json, list_at, objects_at, text_at
from mapping.sources.reading.files_in import check_shape, iter_lines, opened
from mapping.sources.reading.scratch import ScratchFile

REASONS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "duplicate_question": "the qid was given before",
    "malformed_json": "a line that is not JSON",
    "malformed_pid": "the pid of a proof does not begin with the qid, or was given before",
    "missing_field": "a field that is needed is absent",
    "no_answers": "a question without answers",
    "record_too_long": "a line of more than 64 MiB",
    "wrong_type": "a value of another type than the field has",
}
"""Why a published question is left out: reason -> meaning."""

_SUFFIXES = ("", ".gz", ".bz2")
_SCHEMA = "CREATE TABLE proofs (pid TEXT NOT NULL, qid TEXT NOT NULL, url TEXT NOT NULL, text TEXT NOT NULL);"


class ProofSpot(NamedTuple):
    """Where the sentence of a published proof stands in a page of ours; as in ``ProofPlace``."""

    page_id: int
    title: str
    element: int
    start_char: int
    end_char: int
    sentence: str


class ProofFinder(Protocol):
    """Finds published proofs in a release of pages."""

    def facts(self) -> dict[str, Any]:
        """Gives what names the release, as manifests have it."""
        ...

    def find(self, url: str, text: str) -> ProofSpot | str:
        """Gives where a proof stands, or the reason why it stands nowhere, a key of ``gold.REASONS``.

        Args:
            url: address of its page.
            text: the sentence that is the proof, behind those before it.
        """
        ...


class PublishedQuestions:
    """The questions of published files. Memory: some 60 bytes a question.

    Args:
        folder: of the files.
        storage: of the folder.
        finder: finds their proofs.
        reject: called with the place and reason of every question that cannot be used.

    Raises:
        SetupError: the folder holds none of the files.
    """

    def __init__(
        self, folder: str, storage: Storage, finder: ProofFinder, *, reject: Callable[[BadRecord], None]
    ) -> None:
        self._folder, self._storage, self._finder, self._reject = folder, storage, finder, reject
        self._files = published_files(folder, storage)
        if not self._files:
            raise SetupError(
                f"{folder}: neither a finished QAMPARI release nor published files ({SPLITS[0]}_data.jsonl and so on); "
                "name the folder of one."
            )

    def facts(self) -> dict[str, Any]:
        files = input_files(self._files.values(), self._storage)
        return {"published": [asdict(file) for file in files], "release": self._finder.facts()}

    def check(self, corpus: ListingManifest) -> None:
        given, cut_from = self._finder.facts()["manifest_sha256"], corpus.made_from
        if given != cut_from:
            raise SetupError(
                f"--kb is the release with manifest {given}, and the passages were cut from that with {cut_from}; give "
                "this one."
            )
        for path in self._files.values():
            with opened(self._storage, path):
                pass
            check_shape(
                path,
                iter_lines(self._storage, path),
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

    def asked(self) -> Iterator[AskedQuestion]:
        return self._read(lambda _: None)

    def _read(self, reject: Callable[[BadRecord], None]) -> Iterator[AskedQuestion]:
        seen: set[int] = set()
        for split, path in self._files.items():
            for raw in iter_lines(self._storage, path):
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
                yield AskedQuestion(split, record)


class _Proofs(ScratchFile):
    """Published proofs, on disk, so that each page is read once."""

    def __init__(self) -> None:
        super().__init__(None, _SCHEMA)

    def add(self, pid: str, qid: str, url: str, text: str) -> None:
        """Takes a proof."""
        self._database.execute("INSERT INTO proofs VALUES (?, ?, ?, ?)", (pid, qid, url, text))

    def by_page(self) -> Iterator[tuple[str, str, str, str]]:
        """Gives the proofs, those with one address in a row, in the order in which they were taken."""
        yield from self._database.execute("SELECT pid, qid, url, text FROM proofs ORDER BY url, rowid")


def published_files(folder: str, storage: Storage) -> dict[Split, str]:
    """Gives the published file of each split that a folder has, in the order of the splits."""
    names = {split: [f"{split}_data.jsonl{suffix}" for suffix in _SUFFIXES] for split in SPLITS}
    for place in (folder, join(folder, DATA)):
        found = {split: path for split in SPLITS for name in names[split] if storage.exists(path := join(place, name))}
        if found:
            return found
    return {}


def check_published(record: Json) -> None:
    """Raises where a question has not what is needed of it.

    Raises:
        RecordError: with a reason of ``REASONS``.
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
