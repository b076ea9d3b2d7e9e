"""What is dropped, kept without provenance or kept whole, by dataset and split."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.errors import SetupError
from mapping.decide import REASONS, Cuts, Decision, OutputFate, decide, split_ends, with_outcome, write_places_once
from mapping.records import (
    PARTIAL,
    SCORED,
    Alignment,
    Evidence,
    EvidenceKey,
    Example,
    Output,
    PageKey,
    Place,
    ReleasedExample,
)
from mapping.sources import all_sources
from mapping.sources.source import Split
from tests.support.aligned import aligned

EVIDENCE = Evidence(PageKey("title", "T"), "text")
PLACE = Place(1, 0, 1, 4)

# One letter an evidence.
PLACED = {
    "x": aligned("exact", 1, "T", "S", PLACE, score=1.0),
    "h": aligned("near", 1, "T", "S", PLACE, score=0.5),
    "w": aligned("weak", 1, "T", "S", PLACE, score=0.4999999),
    "0": aligned("weak", 1, "T", "S", PLACE, score=0.0),
    "n": aligned("weak", 1, "T"),
    "k": aligned("exact", 1, "T", "S", None, score=1.0),
    "p": aligned("page_only", 1, "T"),
    "m": aligned("page_missing", None, None),
    "a": aligned("page_ambiguous", 1, "T"),
    "e": aligned("empty_evidence", 1, "T"),
}


def _decide(outputs: str, dataset: str, split: Split, threshold: float = 0.5) -> Decision:
    """Decides on a record whose outputs are words: an answer, a colon, the evidence. ``-`` is no answer."""
    made: list[Output] = []
    placed: dict[EvidenceKey, Alignment] = {}
    for index, word in enumerate(outputs.split()):
        answer, _, letters = word.partition(":")
        made.append(Output(None if answer == "-" else answer, (EVIDENCE,) * len(letters)))
        placed |= {(index, place): PLACED[letter] for place, letter in enumerate(letters)}
    example = Example("1", "q", tuple(made), None, file="f", line=1)
    return decide(example, placed, all_sources()[dataset].policies[split], threshold=threshold)


def _shown(decision: Decision) -> str:
    """Shows fates as ``+`` whole (with the number of spans written), ``~`` answer alone, ``-`` dropped."""
    signs = {"whole": "+", "answer_only": "~", "dropped": "-"}
    return " ".join(
        signs[output.form] + (str(len(output.kept)) if output.form == "whole" else "") for output in decision.outputs
    )


CASES: list[tuple[str, Split, str, str, str | None]] = [
    # FEVER: a set stands as a whole or not at all.
    ("fever", "dev", "S:x S:h", "+1 +1", None),
    ("fever", "dev", "S:xw S:h", "- +1", None),
    ("fever", "dev", "S:xw S:m", "- -", "below_threshold"),
    ("fever", "dev", "S:xm", "-", "page_missing"),
    ("fever", "test", "S:w", "-", "below_threshold"),
    ("fever", "train", "S:w S:0", "~ -", None),
    ("fever", "train", "S:e S:xm S:h", "- - +1", None),
    ("fever", "train", "S:n", "~", None),
    # HotpotQA: one set; a missing page drops the question.
    ("hotpotqa", "dev", "yes:xh", "+2", None),
    ("hotpotqa", "dev", "yes:xe", "-", "empty_evidence"),
    ("hotpotqa", "train", "yes:xe", "~", None),
    ("hotpotqa", "train", "yes:ee", "~", None),
    ("hotpotqa", "dev", "yes:xw", "-", "below_threshold"),
    ("hotpotqa", "train", "yes:xw", "~", None),
    ("hotpotqa", "train", "yes:xm", "~", None),
    ("hotpotqa", "dev", "yes:wm", "-", "page_missing"),
    # Entity linking is never filtered by score; without the page there is no record.
    ("aidayago2", "dev", "-:p", "+1", None),
    ("wned", "test", "-:m", "-", "page_missing"),
    ("cweb", "dev", "-:a", "-", "page_ambiguous"),
    # Natural Questions: what is not found stays as an answer; train needs no provenance.
    ("nq", "dev", "a:x b:w c -:x -:w", "+1 ~ +0 +1 -", None),
    ("nq", "dev", "a:w b:m", "~ ~", "below_threshold"),
    ("nq", "train", "a:m b:n", "~ ~", None),
    ("nq", "train", "-:m", "-", "page_missing"),
    # TriviaQA: one alias is enough; an alias is not said twice.
    ("triviaqa", "dev", "a:x a:m b:w b:m", "+1 - ~ -", None),
    ("triviaqa", "train", "a:m", "~", "page_missing"),
    # Names that are not found word for word have no provenance where another is.
    ("triviaqa", "dev", "a:x b:h c:x", "+1 ~ +1", None),
    ("triviaqa", "dev", "a:h b:w", "+1 ~", None),
    ("triviaqa", "train", "a:0 b:x -:h", "~ +1 -", None),
    ("triviaqa", "train", "a:0 b:w", "~ ~", None),
    ("triviaqa", "train", "a:n a:m b:m", "~ - ~", None),
    ("triviaqa", "train", "a:m a:a b:m", "~ - ~", "page_missing"),
    ("triviaqa", "dev", "a:n b:m", "~ ~", "no_match"),
    ("triviaqa", "dev", "a:x a:x b:x", "+1 - +1", None),
    ("trex", "dev", "a:x a:w alias", "+1 - +0", None),
    ("trex", "dev", "a:w alias", "- +0", "below_threshold"),
    ("structured_zeroshot", "train", "a:m", "~", None),
    ("structured_zeroshot", "dev", "a:m", "-", "page_missing"),
    ("eli5", "train", "a b", "+0 +0", None),
    ("eli5", "dev", "a b", "+0 +0", None),
    ("eli5", "dev", "a b -:m", "+0 +0 -", "page_missing"),
    ("eli5", "dev", "a -:x", "+0 +1", None),
    ("wow", "dev", "a:w", "-", "below_threshold"),
    ("jsonl", "dev", "a:k", "-", "no_kilt_paragraph"),
    ("jsonl", "dev", "a:px", "+2", None),
    ("kilt", "train", "a:m", "~", None),
    # An output that is nothing without its provenance goes; a record that has no other goes with it.
    ("trex", "train", "-:w a:x", "- +1", None),
    ("wow", "train", "-:w", "-", "below_threshold"),
]


@pytest.mark.parametrize(("dataset", "split", "outputs", "fates", "reason"), CASES)
def test_fates(dataset: str, split: Split, outputs: str, fates: str, reason: str | None) -> None:
    decision = _decide(outputs, dataset, split)
    assert (_shown(decision), decision.reason) == (fates, reason)


def test_the_threshold_is_kept_and_only_less_is_dropped() -> None:
    assert _decide("S:h", "fever", "dev", threshold=0.5).reason is None
    assert _decide("S:h", "fever", "dev", threshold=0.50001).reason == "below_threshold"
    assert _decide("S:w", "fever", "dev", threshold=0.4).reason is None


@pytest.mark.parametrize(
    ("outcome", "score", "expected"),
    [
        (SCORED, 0.5, "near"),
        (SCORED, 0.4999999, "weak"),
        (SCORED, 0.0, "weak"),
        (SCORED, None, "weak"),
        ("exact", 1.0, "exact"),
        ("page_only", None, "page_only"),
    ],
)
def test_the_threshold_names_what_was_only_scored(outcome: str, score: float | None, expected: str) -> None:
    assert with_outcome(aligned(outcome, score=score), 0.5).outcome == expected


def test_a_record_without_outputs_is_written_as_it_is() -> None:
    assert _decide("", "fever", "test") == Decision(None, (), ())


@pytest.mark.parametrize("letter", sorted(PLACED))
@pytest.mark.parametrize("split", get_args(Split))
@pytest.mark.parametrize("dataset", sorted(all_sources()))
def test_every_output_has_one_fate_and_every_loss_a_known_reason(dataset: str, split: Split, letter: str) -> None:
    decision = _decide(f"a:{letter} b:x{letter} -:{letter}", dataset, split)
    assert len(decision.outputs) == 3
    for fate in decision.outputs:
        assert (fate.form == "whole") == (fate.reason is None)
        assert fate.reason is None or fate.reason in REASONS
    assert decision.reason is None or decision.reason in REASONS
    if all_sources()[dataset].policies[split].needs_provenance and decision.reason is None:
        assert any(fate.kept for fate in decision.outputs)


def test_all_have_a_threshold_but_entity_linking_and_train_keeps_answers() -> None:
    for dataset, source in all_sources().items():
        splits = source.policies
        is_linking = dataset in ("aidayago2", "wned", "cweb")
        assert {splits[split].has_threshold for split in get_args(Split)} == {not is_linking}
        if not is_linking:
            train = splits["train"]
            assert (train.lost, train.needs_provenance) == ("keep_answer", False)


@pytest.mark.parametrize("split", get_args(Split))
def test_a_published_record_of_answers_alone_stays_one(split: Split) -> None:
    outputs = (Output("yes"), Output("aye"))
    example = ReleasedExample("1", "q", outputs, None, file="f", line=1, released={})
    decision = decide(example, {}, all_sources()["hotpotqa"].policies[split])
    assert (_shown(decision), decision.reason) == ("+0 +0", None)


def at(start: int, *, page_id: int = 1, score: float = 0.1, paragraph: int = 3) -> Alignment:
    """Gives an evidence of ten characters."""
    return aligned("weak", page_id, "A", "Abstract.", Place(paragraph, start, paragraph, start + 10), score)


def kept_of(evidences: list[Alignment], rescued: set[int], *, by_paragraph: bool = False) -> tuple[int, ...]:
    """Gives what is written of a set, and of the same evidences as partial ones."""
    placed = {
        (index, place): replace(evidence, is_chosen_by_model=place in rescued)
        for index in (0, PARTIAL)
        for place, evidence in enumerate(evidences)
    }
    places = tuple(range(len(evidences)))
    paragraphs: frozenset[EvidenceKey] = frozenset(placed) if by_paragraph else frozenset()
    decision = Decision(None, (OutputFate("whole", None, places),), places, paragraphs)
    written = write_places_once(decision, placed)
    assert written == decision._replace(outputs=(OutputFate("whole", None, written.partial),), partial=written.partial)
    return written.partial


@pytest.mark.parametrize(
    ("evidences", "rescued", "kept"),
    [
        ([at(0), at(0)], {0, 1}, (0,)),
        ([at(0), at(20), at(0)], {0, 1, 2}, (0, 1)),
        # what was found stays, wherever it stands in the set
        ([at(0), at(0, score=1.0)], {0}, (1,)),
        ([at(0, score=1.0), at(0)], {1}, (0,)),
        ([at(0), at(0, score=1.0), at(0, score=0.9)], {0}, (1, 2)),
        # other places
        ([at(0), at(1)], {0, 1}, (0, 1)),
        ([at(0), at(0, page_id=2)], {0, 1}, (0, 1)),
        # what no model chose is left as it is
        ([at(0, score=1.0), at(0, score=1.0)], set(), (0, 1)),
        ([at(0, score=1.0), at(0, score=1.0), at(20)], {2}, (0, 1, 2)),
        ([aligned("page_only", 1, "A"), aligned("page_only", 1, "A"), at(0)], {2}, (0, 1, 2)),
    ],
)
def test_a_place_comes_once_into_a_set_because_of_a_rescue(
    evidences: list[Alignment], rescued: set[int], kept: tuple[int, ...]
) -> None:
    assert kept_of(evidences, rescued) == kept


def test_of_evidence_by_paragraph_the_paragraph_is_the_place() -> None:
    sentences = [at(0), at(20), at(0, paragraph=4)]
    assert kept_of(sentences, {0, 1, 2}, by_paragraph=True) == (0, 2)
    assert kept_of(sentences, {0, 1, 2}) == (0, 1, 2)


def test_sets_do_not_look_at_each_other() -> None:
    placed = {(0, 0): replace(at(0), is_chosen_by_model=True), (1, 0): replace(at(0), is_chosen_by_model=True)}
    fates = (OutputFate("whole", None, (0,)), OutputFate("whole", None, (0,)), OutputFate("dropped", "no_match", ()))
    assert write_places_once(Decision(None, fates), placed).outputs == fates


SPLITS: tuple[Split, ...] = ("train", "dev", "test")


def _standing(stands: list[bool]) -> list[int]:
    return [ordinal for ordinal, standing in enumerate(stands) if standing]


def test_the_first_that_stand_are_dev_and_as_many_after_them_are_test() -> None:
    assert split_ends([1, 4, 5, 9, 12], 2) == Cuts(dev=4, test=9)


def test_no_more_records_are_looked_at_than_are_needed() -> None:
    standing = iter(range(10))
    split_ends(standing, 2)
    assert next(standing) == 4


def test_too_few_records_stop_the_job() -> None:
    with pytest.raises(SetupError, match="3 records pass the filter of dev and test, but 4 are needed"):
        split_ends([0, 1, 2], 2)


@given(st.lists(st.booleans()), st.integers(0, 4))
def test_each_record_is_in_one_split_and_sizes_are_exact(stands: list[bool], n_records: int) -> None:
    n_records = min(n_records, sum(stands) // 2)
    cuts = split_ends(_standing(stands), n_records)
    written = {
        split: [
            ordinal
            for ordinal, standing in enumerate(stands)
            # The filter of dev and test drops what does not stand; that of train keeps it.
            if cuts.takes(ordinal, split, passes=standing) and (standing or split == "train")
        ]
        for split in SPLITS
    }
    assert len(written["dev"]) == len(written["test"]) == n_records
    assert sorted(ordinal for ordinals in written.values() for ordinal in ordinals) == list(range(len(stands)))
