"""The questions of a QAMPARI release written with their passages, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from mapping.contexts.gold import GoldPassages, ProofPlace
from mapping.contexts.negatives import MOST_EDITS, NameFinder
from mapping.contexts.ranked import ranked_for
from mapping.contexts.records import SEPARATOR, Positive, contexts_record, fid_record, hard_negatives
from mapping.evaluation.qampari_files import Joined
from mapping.qampari.crowd_tasks import read_questions
from mapping.qampari.release_files import Form
from mapping.qampari.released import aid_of, page_url, pid_of, record_line, released_record
from mapping.qampari.rows import SPLITS, DrawnQuestion
from mapping.sources.base import Split

CONTEXTS, FID = "qampari_contexts", "qampari_fid"
MOST_RANKED = 200
"""Source: the paper's tables of retrieval go as far."""


@dataclass(frozen=True, slots=True)
class ContextsOptions:
    """How passages are chosen.

    Attributes:
        most_ranked: passages of a question that are taken from what a retriever found.
        most_edits: how far from an answer's name a text is that names it, see ``negatives``.
    """

    most_ranked: int = MOST_RANKED
    most_edits: int = MOST_EDITS

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the value and what it may be.
        """
        if self.most_ranked < 1:
            raise SetupError(f"--top is {self.most_ranked}; give at least 1.")
        if self.most_edits < 0:
            raise SetupError(f"--alias-edits is {self.most_edits}; give a number from 0 on.")


@dataclass(slots=True)
class Tally:
    """What was written."""

    questions: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    placed: int = 0
    without_positives: int = 0
    hard_negatives: int = 0
    fewer_negatives: int = 0
    without_retrieved: int = 0
    separator_in_answer: int = 0


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
            )


class SplitFiles:
    """The files of the splits.

    Args:
        release: folder of the QAMPARI release.
        form: how it is written.
        options: how passages are chosen.
        gold: the passages that prove answers.
        joined: what a retriever found.

    Attributes:
        tally: what was written.
    """

    def __init__(self, release: str, form: Form, options: ContextsOptions, gold: GoldPassages, joined: Joined) -> None:
        self._release, self._form, self._options = release, form, options
        self._gold, self._joined = gold, joined
        self.tally = Tally()

    def write(self, output: str, storage: Storage) -> list[FileEntry]:
        """Writes them and gives the manifest's entries."""
        with ExitStack() as stack:

            def opened(file: str) -> HashingWriter:
                return HashingWriter(stack.enter_context(atomic_write(storage, join(output, file))))

            contexts = {split: opened(contexts_path(split)) for split in SPLITS}
            readers = {split: opened(fid_path(split)) for split in SPLITS}
            for drawn in read_questions(self._release, storage):
                if drawn.qid is None or drawn.split is None:
                    continue
                self._joined.open_question(drawn.qid)
                context, reader = self._records(drawn, drawn.qid)
                contexts[drawn.split].write(record_line(context))
                readers[drawn.split].write(record_line(reader))
                self.tally.questions[drawn.split] += 1
        return [
            FileEntry(path(split), self.tally.questions[split], sinks[split].n_bytes, sinks[split].hexdigest())
            for path, sinks in ((contexts_path, contexts), (fid_path, readers))
            for split in SPLITS
        ]

    def _records(self, drawn: DrawnQuestion, qid: str) -> tuple[dict[str, Any], dict[str, Any]]:
        tally, question = self.tally, drawn.question
        record = released_record(
            question,
            qid=qid,
            page_url=partial(page_url, self._form.host),
            with_meta=self._form.with_meta,
            is_released_case=self._form.is_released_case,
            text=drawn.paraphrase,
        )
        pids = [place.pid for place in proof_places(drawn)]
        positives = [Positive(pid, found) for pid in pids if (found := self._gold.of_proof(pid)) is not None]
        ranked = ranked_for(qid, self._joined)
        names = NameFinder(
            (name for one in question.answers for name in (one.text, *one.aliases)), most_edits=self._options.most_edits
        )
        gold_ids = {one.passage.passage_id for one in positives}
        negatives = hard_negatives(ranked or (), names, gold_ids=gold_ids, most=len(positives))
        tally.proofs += len(pids)
        tally.placed += len(positives)
        tally.without_positives += not positives
        tally.without_retrieved += ranked is None
        tally.hard_negatives += len(negatives)
        tally.fewer_negatives += ranked is not None and len(negatives) < len(positives)
        tally.separator_in_answer += any(SEPARATOR in one.text for one in question.answers)
        return contexts_record(record, positives, negatives, ranked or ()), fid_record(record, ranked or ())


def contexts_path(split: Split) -> str:
    """Gives the path of a split's file for retrievers."""
    return f"{CONTEXTS}/{split}_data_with_contexts.jsonl"


def fid_path(split: Split) -> str:
    """Gives the path of a split's file for Fusion-in-Decoder."""
    return f"{FID}/{split}_data.jsonl"
