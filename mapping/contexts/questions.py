"""The questions that are written with their passages, and where their proofs stand: those of a release of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.release.intact import check_hashes
from kbsource.release.manifest import ListingManifest
from mapping.contexts.gold import GoldPassages, ProofPlace
from mapping.qampari.crowd.tasks import read_questions
from mapping.qampari.kind import read_form
from mapping.qampari.question_rows import DrawnQuestion
from mapping.qampari.released import aid_of, pid_of, released_record
from mapping.sources.reading.base import Split
from mapping.sources.reading.fields import Json


class AskedQuestion(NamedTuple):
    """A question as the file of its split has it."""

    split: Split
    record: Json


class QuestionSource(Protocol):
    """Where questions come from; they are read several times, always the same ones in the same order."""

    def facts(self) -> dict[str, Any]:
        """Gives what names them in a manifest."""
        ...

    def check(self, corpus: ListingManifest) -> None:
        """Raises where the files are not as they were written, or passages are those of another knowledge source.

        Args:
            corpus: manifest of the passages.

        Raises:
            SetupError: names the file, and the remedy.
        """
        ...

    def add_places(self, gold: GoldPassages) -> None:
        """Adds all proofs of all questions, with their places."""
        ...

    def asked(self) -> Iterator[AskedQuestion]:
        """Gives the questions, those of each split in the order of its file."""
        ...


class ReleaseQuestions:
    """The questions of a QAMPARI release.

    Args:
        folder: of the release.
        storage: of the folder.

    Raises:
        SetupError: the folder holds no finished release, or its manifest is not as it was written.
    """

    def __init__(self, folder: str, storage: Storage) -> None:
        self._folder, self._storage = folder, storage
        self._manifest, self._form = read_form(folder, storage)

    def facts(self) -> dict[str, Any]:
        return {"manifest_sha256": self._manifest.sha256}

    def check(self, corpus: ListingManifest) -> None:
        made_from, cut_from = self._manifest.made_from, corpus.made_from
        if made_from is not None and made_from != cut_from:
            raise SetupError(
                f"{self._folder} was made from the release with manifest {made_from}, the passages from that with "
                f"{cut_from}: places in pages are not the same. Make the passages from the first: kbsource passages."
            )
        check_hashes(self._folder, self._manifest.entries(), self._storage)

    def add_places(self, gold: GoldPassages) -> None:
        for drawn in read_questions(self._folder, self._storage):
            for place in proof_places(drawn):
                gold.add(place)

    def asked(self) -> Iterator[AskedQuestion]:
        for drawn in read_questions(self._folder, self._storage):
            if drawn.qid is not None and drawn.split is not None:
                yield AskedQuestion(drawn.split, released_record(drawn, self._form))


def proof_places(drawn: DrawnQuestion) -> Iterator[ProofPlace]:
    """Gives where the sentences of a question's proofs stand; none of one that was not drawn."""
    if drawn.qid is None:
        return
    for number, answer in enumerate(drawn.question.answers):
        for place, proof in enumerate(answer.proofs):
            yield ProofPlace(
                pid_of(aid_of(drawn.qid, number), place),
                drawn.qid,
                proof.page_id,
                proof.title,
                proof.element,
                proof.sentence_char,
                proof.end_char,
                proof.text[proof.sentence_char - proof.start_char :],
            )
