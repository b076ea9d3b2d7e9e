"""The questions of a QAMPARI release written with their passages, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from kbsource.files import Storage
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import LinesFile
from mapping.contexts.gold import REASONS, GoldPassages
from mapping.contexts.kind import FID, OF_RETRIEVERS
from mapping.contexts.negatives import MOST_EDITS, NameFinder
from mapping.contexts.questions import AskedQuestion
from mapping.contexts.ranked import RankedPassage, ranked_for
from mapping.contexts.records import SEPARATOR, Positive, contexts_record, fid_record, hard_negatives
from mapping.options import Checked, option
from mapping.qampari.question_rows import SPLITS
from mapping.qampari.released import record_line
from mapping.sources.reading.base import Split
from mapping.sources.reading.fields import Json
from mapping.sources.reading.joined import Joined


@dataclass(frozen=True, slots=True)
class ContextsOptions(Checked):
    """How passages are chosen."""

    most_ranked: int = option(200, "ranked passages of a question that are taken", flag="--top", lowest=1)
    most_edits: int = option(
        MOST_EDITS,
        "edits between a passage and the name of an answer that it still names; a quarter of the name's characters at "
        "most",
        flag="--alias-edits",
        lowest=0,
    )


@dataclass(slots=True)
class ContextCounts:
    """What was written."""

    questions: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    placed: int = 0
    without_positives: int = 0
    hard_negatives: int = 0
    fewer_negatives: int = 0
    without_retrieved: int = 0
    separator_in_answer: int = 0

    def see(self, split: Split, context: Json, *, is_ranked: bool) -> None:
        """Takes a question as retrievers are given it; ``is_ranked`` says whether there was a ranked line for it."""
        answers = context["answer_list"]
        n_positives, n_negatives = len(context["positive_ctxs"]), len(context["hard_negative_ctxs"])
        self.questions[split] += 1
        self.proofs += sum(len(answer["proof"]) for answer in answers)
        self.placed += n_positives
        self.without_positives += not n_positives
        self.without_retrieved += not is_ranked
        self.hard_negatives += n_negatives
        self.fewer_negatives += is_ranked and n_negatives < n_positives
        self.separator_in_answer += any(SEPARATOR in answer["answer_text"] for answer in answers)


def report_of(tally: ContextCounts, unplaced: Mapping[str, int], rejected: Mapping[str, int]) -> Json:
    """Gives the counts of what was written; proofs that no passage holds and ranked lines left out by reason."""
    return {
        "questions": {
            **{split: tally.questions[split] for split in SPLITS},
            "without_positives": tally.without_positives,
            "without_retrieved": tally.without_retrieved,
            "fewer_negatives_than_positives": tally.fewer_negatives,
            "separator_in_an_answer": tally.separator_in_answer,
        },
        "proofs": {
            "all": tally.proofs,
            "placed": tally.placed,
            "unplaced": {reason: unplaced[reason] for reason in REASONS if unplaced.get(reason)},
        },
        "hard_negatives": tally.hard_negatives,
        "rejected": dict(sorted(rejected.items())),
    }


def pids_of(record: Json) -> Iterator[str]:
    """Gives the ids of the proofs of a released question, in their order."""
    return (proof["pid"] for answer in record["answer_list"] for proof in answer["proof"])


def positives_of(record: Json, gold: GoldPassages) -> list[Positive]:
    """Gives the passages that hold the proofs of a released question, in the order of these."""
    return [Positive(pid, found) for pid in pids_of(record) if (found := gold.of_proof(pid)) is not None]


def with_passages(
    record: Json, positives: Sequence[Positive], ranked: Sequence[RankedPassage], options: ContextsOptions
) -> tuple[Json, Json]:
    """Gives a released question as retrievers and as readers are given it.

    Args:
        record: as released.
        positives: in the order of its proofs.
        ranked: what a retriever found, best first.
        options: how hard negatives are chosen.
    """
    answers = ((answer["answer_text"], *answer["aliases"]) for answer in record["answer_list"])
    names = NameFinder((name for answer in answers for name in answer), most_edits=options.most_edits)
    gold_ids = {positive.passage.passage_id for positive in positives}
    negatives = hard_negatives(ranked, names, gold_ids=gold_ids, most=len(positives))
    return contexts_record(record, positives, negatives, ranked), fid_record(record, ranked)


class SplitFiles:
    """The files of the splits.

    Args:
        questions: to write; asked once.
        options: how passages are chosen.
        gold: the passages that prove answers.
        joined: what a retriever found.

    Attributes:
        tally: what was written.
    """

    def __init__(
        self, questions: Iterable[AskedQuestion], options: ContextsOptions, gold: GoldPassages, joined: Joined
    ) -> None:
        self._questions, self._options, self._gold, self._joined = questions, options, gold, joined
        self.tally = ContextCounts()

    def write(self, output: str, storage: Storage) -> list[FileEntry]:
        """Writes them and gives the manifest's entries."""
        with ExitStack() as stack:
            contexts, readers = (
                {split: stack.enter_context(LinesFile(output, path(split), storage)) for split in SPLITS}
                for path in (contexts_path, fid_path)
            )
            for split, record in self._questions:
                self._joined.open_question(record["qid"])
                ranked = ranked_for(record["qid"], self._joined)
                positives = positives_of(record, self._gold)
                context, reader = with_passages(record, positives, ranked or (), self._options)
                contexts[split].write(record_line(context))
                readers[split].write(record_line(reader))
                self.tally.see(split, context, is_ranked=ranked is not None)
        return [file.entry for files in (contexts, readers) for file in files.values()]


def contexts_path(split: Split) -> str:
    """Gives the path of a split's file for retrievers."""
    return f"{OF_RETRIEVERS}/{split}_data_with_contexts.jsonl"


def fid_path(split: Split) -> str:
    """Gives the path of a split's file for Fusion-in-Decoder."""
    return f"{FID}/{split}_data.jsonl"
