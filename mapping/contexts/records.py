"""Questions with their passages: how passages are chosen, and the records for retrievers and readers.

Source: QAMPARI's released retriever files (``*_with_contexts``) and its files for Fusion-in-Decoder. Hard negatives are
passages that rank high for a question and mention none of its answers. In QAMPARI, a passage mentions an answer if an
edit distance of at most 3 separates them. Taken literally, that finds every short name in every text. Here, the edit
distance is also at most a quarter of the characters of the name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from mapping.contexts.gold import UNPLACED_REASONS, GoldPassages, GoldText, RankedPassage
from mapping.metrics.answers import GoldNames, answer_form
from mapping.metrics.ranks import RetrievedPassage, answer_ranks
from mapping.options import AtLeast0, AtLeast1, Checked
from mapping.qampari.records import SPLITS
from mapping.sources.raw_records import Json

OF_RETRIEVERS, FID, UNPLACED = "qampari_contexts", "qampari_fid", "unplaced.jsonl"
MOST_EDITS = 3
_CHARS_AN_EDIT = 4
_RUNS_AT_ONCE = 512
"""Runs of words compared at once; it bounds memory even for a page that is one single sentence."""


def edits_allowed(form: str, most: int = MOST_EDITS) -> int:
    """Returns how many edits may separate a text from a normalised name: one per four characters; none for numbers.

    >>> [edits_allowed(name) for name in ("u2", "sorn", "lake miravel", "1901")]
    [0, 1, 3, 0]
    """
    return 0 if form.replace(" ", "").isdecimal() else min(most, len(form) // _CHARS_AN_EDIT)


class NameFinder:
    """Checks whether a passage mentions any of the given answers, up to a few edits.

    A passage mentions an answer if the metric ARECALL@K finds a name in its title or text, or if a run of whole words
    in either is close enough to a name. Both are compared in the normalised form of answers (``answer_form``). Names
    whose normalised form is empty are never found.

    Args:
        most_edits: maximum number of insertions, deletions and replacements of one character.
    """

    def __init__(self, names: Iterable[str], *, most_edits: int = MOST_EDITS) -> None:
        given = tuple(names)
        self._answers = (GoldNames("", given),)
        forms = dict.fromkeys(form for name in given if (form := answer_form(name)))
        self._near: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for form in forms:
            if n_edits := edits_allowed(form, most_edits):
                self._near[form.count(" ") + 1, n_edits].append(form)

    def is_in(self, title: str, text: str) -> bool:
        """Returns whether a passage mentions one of the answers."""
        if answer_ranks(self._answers, (RetrievedPassage("", title, text),)) != [None]:
            return True
        return any(
            _is_near(answer_form(part).split(), names, n_words=n_words, n_edits=n_edits)
            for (n_words, n_edits), names in self._near.items()
            for part in (title, text)
        )


def _is_near(words: list[str], names: list[str], *, n_words: int, n_edits: int) -> bool:
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    lengths = [len(name) for name in names]
    fits = range(min(lengths) - n_edits, max(lengths) + n_edits + 1)
    # One edit adds or removes at most one space.
    lengths_of_runs = range(n_words - n_edits, n_words + n_edits + 1)
    runs = iter(dict.fromkeys(run for n in lengths_of_runs for run in _runs(words, n) if len(run) in fits))
    while some := list(islice(runs, _RUNS_AT_ONCE)):
        found = cdist(some, names, scorer=Levenshtein.distance, score_cutoff=n_edits, dtype=np.int32)
        if (found <= n_edits).any():
            return True
    return False


def _runs(words: list[str], n_words: int) -> Iterator[str]:
    if n_words > 0:
        for first in range(len(words) - n_words + 1):
            yield " ".join(words[first : first + n_words])


SEPARATOR = "#"
"""Separator between the answers that a reader has to generate."""
ADDED = ("question", "answers", "positive_ctxs", "hard_negative_ctxs", "ctxs")
"""Keys added to a released question for retrievers."""


class Positive(NamedTuple):
    """A passage that proves an answer, and the id of the proof that it contains."""

    pid: str
    passage: GoldText


def hard_negatives(
    ranked: Sequence[RankedPassage], names: NameFinder, *, gold_ids: Collection[str], most: int
) -> list[RankedPassage]:
    """Returns the best distinct passages that are not gold and mention no answer in title or text.

    Args:
        ranked: best first.
    """
    found: dict[str, RankedPassage] = {}
    for passage in ranked:
        if len(found) == most:
            break
        if passage.passage_id in gold_ids or passage.passage_id in found:
            continue
        if not names.is_in(passage.title, passage.text):
            found[passage.passage_id] = passage
    return list(found.values())


def contexts_record(
    record: dict[str, Any],
    positives: Sequence[Positive],
    negatives: Sequence[RankedPassage],
    ranked: Sequence[RankedPassage],
) -> dict[str, Any]:
    """Returns a released question with its passages.

    Args:
        positives: in the order of answers and proofs. A passage that contains two proofs occurs twice. ``score`` is the
            score of the retriever, or 0 if it did not find the passage.
        negatives: best first; their ``pid`` is the id of the question.
        ranked: passages that the retriever found, best first.
    """
    scores: dict[str, float] = {}
    for passage in ranked:
        scores.setdefault(passage.passage_id, passage.score)
    return {
        **record,
        "question": record["question_text"],
        "answers": [answer["answer_text"] for answer in record["answer_list"]],
        "positive_ctxs": [
            _context(positive.passage, scores.get(positive.passage.passage_id, 0.0), positive.pid)
            for positive in positives
        ],
        "hard_negative_ctxs": [_context(negative, negative.score, record["qid"]) for negative in negatives],
        "ctxs": _ranked_contexts(ranked),
    }


def fid_record(record: dict[str, Any], ranked: Sequence[RankedPassage]) -> dict[str, Any]:
    """Returns a released question in the input format of Fusion-in-Decoder.

    ``answers`` are the distinct names of all answers. ``ans_mappings`` groups them by answer. ``target`` is the
    expected output: the answers joined by ``SEPARATOR``.
    """
    mappings: dict[str, list[str]] = {}
    for answer in record["answer_list"]:
        names = mappings.setdefault(answer["answer_text"], [])
        names += [name for name in answer["aliases"] if name not in names]
    return {
        "id": record["qid"],
        "question": record["question_text"],
        "question_text": record["question_text"],
        "answers": list(dict.fromkeys(name for names in mappings.values() for name in names)),
        "ans_mappings": mappings,
        "target": SEPARATOR.join(answer["answer_text"] for answer in record["answer_list"]),
        "ctxs": _ranked_contexts(ranked),
    }


def _context(passage: GoldText | RankedPassage, score: float, pid: str) -> dict[str, Any]:
    return {
        "text": passage.text,
        "title": passage.title,
        "score": score,
        "chunk_id": passage.passage_id,
        "pid": pid,
    }


def _ranked_contexts(ranked: Sequence[RankedPassage]) -> list[dict[str, Any]]:
    return [
        {"id": passage.passage_id, "title": passage.title, "text": passage.text, "score": passage.score}
        for passage in ranked
    ]


@dataclass(frozen=True, slots=True)
class ContextsOptions(Checked):
    """Options of choosing passages."""

    most_ranked: Annotated[AtLeast1, Parameter("--top")] = 200
    """Maximum number of ranked passages used per question."""
    most_edits: Annotated[AtLeast0, Parameter("--alias-edits")] = MOST_EDITS
    """A passage mentions an answer if it contains one of its names with at most this number of edits. At most a quarter
    of the characters of a name may be edited."""


@dataclass(slots=True)
class ContextCounts:
    """Counts of the written questions."""

    questions: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    placed: int = 0
    without_positives: int = 0
    hard_negatives: int = 0
    fewer_negatives: int = 0
    without_retrieved: int = 0
    separator_in_answer: int = 0

    def see(self, split: str, context: Json, *, is_ranked: bool) -> None:
        """Counts a question in its form for retrievers. ``is_ranked`` is true if it had a ranked line."""
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


def contexts_report(tally: ContextCounts, unplaced: Mapping[str, int], rejected: Mapping[str, int]) -> Json:
    """Returns the counts of what was written, of proofs that no passage contains, and of ranked lines left out by
    reason.
    """
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
            "unplaced": {reason: unplaced[reason] for reason in UNPLACED_REASONS if unplaced.get(reason)},
        },
        "hard_negatives": tally.hard_negatives,
        "rejected": dict(sorted(rejected.items())),
    }


def pids_of(record: Json) -> Iterator[str]:
    """Iterates over the ids of the proofs of a released question, in order."""
    return (proof["pid"] for answer in record["answer_list"] for proof in answer["proof"])


def positives_of(record: Json, gold: GoldPassages) -> list[Positive]:
    """Returns the passages that contain the proofs of a released question, in the order of the proofs."""
    return [Positive(pid, found) for pid in pids_of(record) if (found := gold.of_proof(pid)) is not None]


def with_passages(
    record: Json, positives: Sequence[Positive], ranked: Sequence[RankedPassage], options: ContextsOptions
) -> tuple[Json, Json]:
    """Returns a released question in its form for retrievers and in its form for readers.

    Args:
        positives: in the order of the proofs of the question.
        ranked: passages that a retriever found, best first.
    """
    answers = ((answer["answer_text"], *answer["aliases"]) for answer in record["answer_list"])
    names = NameFinder((name for answer in answers for name in answer), most_edits=options.most_edits)
    gold_ids = {positive.passage.passage_id for positive in positives}
    negatives = hard_negatives(ranked, names, gold_ids=gold_ids, most=len(positives))
    return contexts_record(record, positives, negatives, ranked), fid_record(record, ranked)


def contexts_path(split: str) -> str:
    """Returns the path of a split's file for retrievers."""
    return f"{OF_RETRIEVERS}/{split}_data_with_contexts.jsonl"


def fid_path(split: str) -> str:
    """Returns the path of a split's file for Fusion-in-Decoder."""
    return f"{FID}/{split}_data.jsonl"
