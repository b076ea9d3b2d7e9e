"""What is dropped, kept without provenance or kept whole, by dataset and split."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from mapping.decide.policy import POLICIES, REASONS, Decision, dataset_named, decide
from mapping.records import Evidence, EvidenceKey, Example, Output, PageKey, ReleasedExample
from mapping.search.numbering import Place, Placed
from mapping.sources import SOURCES
from mapping.sources.reading.base import Split

EVIDENCE = Evidence(PageKey("title", "T"), "text")
PLACE = Place(1, 0, 1, 4)

# One letter an evidence.
PLACED = {
    "x": Placed("exact", 1, "T", "S", PLACE, score=1.0),
    "h": Placed("near", 1, "T", "S", PLACE, score=0.5),
    "w": Placed("weak", 1, "T", "S", PLACE, score=0.4999999),
    "0": Placed("weak", 1, "T", "S", PLACE, score=0.0),
    "n": Placed("weak", 1, "T"),
    "k": Placed("exact", 1, "T", "S", None, score=1.0),
    "p": Placed("page_only", 1, "T"),
    "m": Placed("page_missing", None, None),
    "a": Placed("page_ambiguous", 1, "T"),
    "e": Placed("empty_evidence", 1, "T"),
}


def _decide(outputs: str, dataset: str, split: Split, threshold: float = 0.5) -> Decision:
    """Decides on a record whose outputs are words: an answer, a colon, the evidence. ``-`` is no answer."""
    made: list[Output] = []
    placed: dict[EvidenceKey, Placed] = {}
    for index, word in enumerate(outputs.split()):
        answer, _, letters = word.partition(":")
        made.append(Output(None if answer == "-" else answer, (EVIDENCE,) * len(letters)))
        placed |= {(index, place): PLACED[letter] for place, letter in enumerate(letters)}
    example = Example("1", "q", tuple(made), None, file="f", line=1)
    return decide(example, placed, POLICIES[dataset][split], threshold=threshold)


def _shown(decision: Decision) -> str:
    """Shows fates as ``+`` whole (with the number of spans written), ``~`` answer alone, ``-`` dropped."""
    signs = {"whole": "+", "answer_only": "~", "dropped": "-"}
    return " ".join(signs[one.form] + (str(len(one.kept)) if one.form == "whole" else "") for one in decision.outputs)


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


def test_a_record_without_outputs_is_written_as_it_is() -> None:
    assert _decide("", "fever", "test") == Decision(None, (), ())


@pytest.mark.parametrize("letter", sorted(PLACED))
@pytest.mark.parametrize("split", get_args(Split))
@pytest.mark.parametrize("dataset", sorted(POLICIES))
def test_every_output_has_one_fate_and_every_loss_a_known_reason(dataset: str, split: Split, letter: str) -> None:
    decision = _decide(f"a:{letter} b:x{letter} -:{letter}", dataset, split)
    assert len(decision.outputs) == 3
    for fate in decision.outputs:
        assert (fate.form == "whole") == (fate.reason is None)
        assert fate.reason is None or fate.reason in REASONS
    assert decision.reason is None or decision.reason in REASONS
    if POLICIES[dataset][split].needs_provenance and decision.reason is None:
        assert any(fate.kept for fate in decision.outputs)


def test_all_have_a_threshold_but_entity_linking_and_train_keeps_answers() -> None:
    for dataset, splits in POLICIES.items():
        is_linking = dataset in ("aidayago2", "wned", "cweb")
        assert {splits[split].has_threshold for split in get_args(Split)} == {not is_linking}
        if not is_linking:
            train = splits["train"]
            assert (train.weak, train.unplaced, train.needs_provenance) == ("keep_answer", "keep_answer", False)


@pytest.mark.parametrize("split", get_args(Split))
def test_a_published_record_of_answers_alone_stays_one(split: Split) -> None:
    outputs = (Output("yes"), Output("aye"))
    example = ReleasedExample("1", "q", outputs, None, file="f", line=1, released={})
    decision = decide(example, {}, POLICIES["hotpotqa"][split])
    assert (_shown(decision), decision.reason) == ("+0 +0", None)


def test_every_source_has_a_policy() -> None:
    assert set(SOURCES) <= POLICIES.keys()


@pytest.mark.parametrize(
    ("file", "dataset"),
    [
        ("fever-dev-kilt.jsonl", "fever"),
        ("triviaqa-test_id_without_answers-kilt.jsonl", "triviaqa"),
        ("structured_zeroshot-train-kilt.jsonl", "structured_zeroshot"),
        ("mine.jsonl", "kilt"),
    ],
)
def test_the_name_of_a_kilt_file_names_its_dataset(file: str, dataset: Any) -> None:
    assert dataset_named(file) == dataset
