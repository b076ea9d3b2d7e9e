"""The metrics of KILT beside slow, plain ones that share nothing with the product, ROUGE-L included; predictions of an
old snapshot, moved to the one of the gold records."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry
from kbsource.release.output import commit
from kbsource.release.sql import with_counts
from mapping.metrics.evaluation import KiltEvaluation, KiltFiles
from mapping.metrics.evaluator import EvaluationResult
from mapping.metrics.kilt import Crosswalk, KiltScores, evaluate_kilt, evaluate_tasks, leaderboard_text
from mapping.schema import CROSSWALK
from mapping.write.kind import ALIGNMENT
from tests.support.alignments import write_records

Record = dict[str, Any]

KEYS_OF_ANSWERS = ("accuracy", "em", "f1", "rougel")


def normalise(text: str) -> str:
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(answer: str, gold: str) -> float:
    left, right = normalise(answer).split(), normalise(gold).split()
    n_left, n_right, rest, n_common = len(left), len(right), list(right), 0
    for token in left:
        if token in rest:
            rest.remove(token)
            n_common += 1
    return (
        0.0
        if n_common == 0
        else 2 * (n_common / n_left) * (n_common / n_right) / (n_common / n_left + n_common / n_right)
    )


def common_words(left: list[str], right: list[str]) -> set[str]:
    """The words of a longest common subsequence, of several the one that the package takes."""
    length = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            length[i + 1][j + 1] = length[i][j] + 1 if a == b else max(length[i][j + 1], length[i + 1][j])
    words, i, j = set(), len(left), len(right)
    while i and j:
        if left[i - 1] == right[j - 1]:
            words.add(left[i - 1])
            i, j = i - 1, j - 1
        elif length[i - 1][j] > length[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words


def rouge_l(answer: str, gold: str) -> float:
    sentences = [[" ".join(part.split()).split(" ") for part in text.split(".") if part] for text in (answer, gold)]
    if not all(sentences):
        return 0.0
    guessed, wanted = sentences
    union: set[str] = set()
    for reference in wanted:
        for hypothesis in guessed:
            union |= common_words(reference, hypothesis)
    recall = len(union) / len({word for sentence in wanted for word in sentence})
    precision = len(union) / len({word for sentence in guessed for word in sentence})
    return 2 * precision * recall / (precision + recall + 1e-8)


def ids(provenance: Sequence[Record], keys: Sequence[str]) -> list[str]:
    found: list[str] = []
    for span in provenance:
        if all(span.get(key) is not None for key in keys):
            place = "+".join(str(span[key]).strip() for key in keys)
            if place not in found:
                found.append(place)
    return found


def scores_of(gold: Record, guess: Record | None, ks: Sequence[int], keys: Sequence[str]) -> dict[str, float]:
    outputs = guess["output"] if guess is not None else []
    answer = str(outputs[0]["answer"]).strip() if len(outputs) == 1 and outputs[0].get("answer") is not None else ""
    places = [output["provenance"] for output in outputs if "provenance" in output]
    spans = places[0] if len(places) == 1 else []
    answers = {output["answer"].strip() for output in gold["output"] if (output.get("answer") or "").strip()}
    titles = {
        span["title"].strip()
        for output in gold["output"]
        for span in output.get("provenance", [])
        if (span.get("title") or "").strip()
    }
    result = dict.fromkeys(KEYS_OF_ANSWERS, 0.0)
    if answer and answers:
        result["accuracy"] = float(answer in answers)
        result["em"] = max(float(normalise(answer) == normalise(text)) for text in answers)
        result["f1"] = max(f1(answer, text) for text in answers)
        result["rougel"] = max(rouge_l(answer, text) for text in answers)
    for name in KEYS_OF_ANSWERS:
        result[f"KILT-{name}"] = result[name] if r_precision(gold, spans, ["wikipedia_id"]) == 1 else 0.0
    result["Rprec"] = r_precision(gold, spans, keys)
    sets: list[set[str]] = []
    for output in gold["output"]:
        wanted = set(ids(output.get("provenance", []), keys))
        if wanted and wanted not in sets:
            sets.append(wanted)
    # Each set stands where the last of its pages is; pages before that vanish, as do those of sets that never end.
    rank: list[Any] = []
    predicted = ids(spans, keys)
    for number, place in enumerate(predicted):
        seen = set(predicted[: number + 1])
        holders = [at for at, wanted in enumerate(sets) if place in wanted]
        for at in holders:
            rank = [entry for entry in rank if entry != ("part of", at)]
            rank.append(True if sets[at] <= seen else ("part of", at))
        if not holders:
            rank.append(False)
    for k in ks:
        n_true = len([entry for entry in rank[:k] if entry is True])
        result[f"precision@{k}"] = n_true / k
        if k > 1:
            result[f"recall@{k}"] = n_true / len(sets) if sets else 0.0
            result[f"success_rate@{k}"] = 1.0 if n_true else 0.0
        texts = [normalise(span["text"]) for span in spans[:k] if "text" in span]
        forms = [normalise(text) for text in answers if normalise(text)]
        names = [normalise(text) for text in titles if normalise(text)]
        with_answer = [text for text in texts if any(form in text for form in forms)]
        result[f"answer_in_context@{k}"] = float(bool(with_answer))
        result[f"answer_and_ent_in_context@{k}"] = float(any(name in text for text in with_answer for name in names))
        result[f"entity_in_context@{k}"] = float(any(name in text for text in texts for name in names))
    result["entity_in_input"] = float(
        any(normalise(title) in normalise(gold.get("input", "")) for title in titles if normalise(title))
    )
    return result


def r_precision(gold: Record, spans: Sequence[Record], keys: Sequence[str]) -> float:
    best = 0.0
    for output in gold["output"]:
        wanted = ids(output.get("provenance", []), keys)
        if wanted:
            best = max(best, len([place for place in ids(spans, keys)[: len(wanted)] if place in wanted]) / len(wanted))
    return best


PAGE = ("wikipedia_id",)
SECTION = ("wikipedia_id", "section")
PARAGRAPHS = ("wikipedia_id", "start_paragraph_id", "end_paragraph_id")


def row(example: str, old: str, paragraph: int, new: tuple[str, int] | None) -> dict[str, Any]:
    value: dict[str, Any] = dict.fromkeys(CROSSWALK.names)
    value |= {"example_id": example, "output": 0, "evidence": 0, "outcome": "aligned" if new else "missing"}
    value |= {"old_wikipedia_id": old, "old_start_paragraph_id": paragraph, "old_end_paragraph_id": paragraph}
    value["old_section"] = f"Old {paragraph}"
    if new is not None:
        value |= {"new_wikipedia_id": new[0], "new_title": "T", "new_start_paragraph_id": new[1]}
        value |= {"new_end_paragraph_id": new[1], "new_start_character": 0, "new_end_character": 9}
        value["new_section"] = f"New {new[1]}"
    return value


def aligned(folder: Path, rows: list[dict[str, Any]]) -> str:
    name, entries = "crosswalk/crosswalk-00000-of-00001.parquet", []
    if rows:
        (folder / "crosswalk").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=CROSSWALK), folder / name)
        entries.append(FileEntry(name, len(rows), (folder / name).stat().st_size, "0" * 64))
    facts = {"options": {"threshold": 0.5}, "records": {"read": 0}}
    commit(ALIGNMENT, ALIGNMENT.listing(entries, with_counts(ALIGNMENT, entries, facts, str(folder))), str(folder))
    return str(folder)


@pytest.fixture
def crosswalk(tmp_path: Path) -> Crosswalk:
    rows = [
        row("a", "7", 1, ("70", 4)),
        row("b", "7", 1, ("70", 5)),
        row("c", "8", 2, None),
        row("c", "9", 2, None),
        row("d", "9", 3, ("9", 3)),
        row("b", "7", 1, ("70", 6)),
        row("e", "7", 4, None),
    ]
    return Crosswalk(aligned(tmp_path, rows))


@pytest.mark.parametrize(
    ("case", "record", "keys", "span", "moved", "outcome"),
    [
        ("a page goes where any evidence in it went", "z", PAGE, {"wikipedia_id": 7}, {"wikipedia_id": "70"}, "moved"),
        ("one without evidence keeps its id", "z", PAGE, {"wikipedia_id": "5"}, {"wikipedia_id": "5"}, "page_kept"),
        ("a gone page is right nowhere", "z", PAGE, {"wikipedia_id": "8"}, {"wikipedia_id": "8 (gone)"}, "page_gone"),
        ("one place that is gone leaves the page", "z", PAGE, {"wikipedia_id": "9"}, {"wikipedia_id": "9"}, "moved"),
        ("a place of the same record comes first", "b", PARAGRAPHS, ("7", 1), ("70", 5), "moved"),  # its first
        ("else the first one", "z", PARAGRAPHS, ("7", 1), ("70", 4), "moved"),
        (
            "a section alone goes where evidence in it went",
            "b",
            SECTION,
            {"wikipedia_id": "7", "section": "Old 1\n"},
            {"wikipedia_id": "70", "section": "New 5"},
            "moved",
        ),
        (
            "another section cannot be known",
            "b",
            SECTION,
            {"wikipedia_id": "7", "section": "Old 9"},
            {"wikipedia_id": "70", "section": "moved to an unknown position"},
            "place_unknown",
        ),
        (
            "another place cannot be known",
            "a",
            PARAGRAPHS,
            ("7", 2),
            ("70", "moved to an unknown position"),
            "place_unknown",
        ),
        (
            "not on a kept page either",
            "a",
            PARAGRAPHS,
            ("5", 2),
            ("5", "moved to an unknown position"),
            "place_unknown",
        ),
    ],
)
def test_places(
    case: str, record: str, keys: Sequence[str], span: Any, moved: Any, outcome: str, crosswalk: Crosswalk
) -> None:
    def full(value: Any) -> dict[str, Any]:
        return value if isinstance(value, dict) else dict(zip(PARAGRAPHS, (*value, value[1]), strict=True))

    assert crosswalk.move(record, [full(span)], keys) == [full(moved)]
    assert crosswalk.moved == {outcome: 1}


def test_an_alignment_without_a_crosswalk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has no crosswalk"):
        Crosswalk(aligned(tmp_path, []))


Record = dict[str, Any]


def evaluated(
    folder: Path,
    gold: Iterable[object],
    guesses: Iterable[object],
    *,
    files: dict[str, str] | None = None,
    **options: Any,
) -> tuple[EvaluationResult[KiltScores], list[BadRecord]]:
    rejected: list[BadRecord] = []
    given = KiltFiles(
        str(write_records(folder / "gold.jsonl", gold)),
        str(write_records(folder / "guess.jsonl", guesses)),
        **(files or {}),
    )
    scores = evaluate_kilt(given, KiltEvaluation(**options), reject=rejected.append)
    return scores, rejected


def gold(record_id: str, *outputs: Record, text: str = "") -> Record:
    return {"id": record_id, "input": text, "output": list(outputs)}


def pages(*page_ids: str | int, answer: str | None = None) -> Record:
    output: Record = {"provenance": [{"wikipedia_id": page_id} for page_id in page_ids]}
    return output if answer is None else {"answer": answer, **output}


@pytest.mark.parametrize(
    ("case", "gold_sets", "predicted", "expected"),
    [
        ("first", ["ab", "c"], "xab", {"recall@5": 0.5, "precision@5": 0.2, "Rprec": 0.5}),
        ("a page in two sets", ["ab", "b"], "ab", {"recall@5": 1.0, "Rprec": 1.0, "precision@1": 1.0}),
        ("a page that two sets share", ["ab", "ac"], "abc", {"recall@5": 1.0, "Rprec": 1.0}),
        ("no place at all", ["ab"], "", {"recall@5": 0.0, "Rprec": 0.0, "success_rate@5": 0.0}),
        ("equal sets are one", ["ab", "ba"], "ab", {"recall@5": 1.0, "precision@5": 0.2}),
    ],
)
def test_worked_examples(
    case: str, gold_sets: list[str], predicted: str, expected: dict[str, float], tmp_path: Path
) -> None:
    record = gold("1", *(pages(*gold_set, answer="x") for gold_set in gold_sets))
    scores, _ = evaluated(tmp_path, [record], [{"id": "1", "output": [pages(*predicted)]}])
    assert {name: scores.first.mean(name) for name in expected} == expected


ANSWERS = ["", "The", "a", "Ullane", "the Ullane", "River Ullane.", "Lake Miravel. It is deep.", ".", "1984", "U.S."]
TITLES = ["Ullane", "The", "River Ullane", "  ", "Halvane Isles", None]
TEXTS = ["The Ullane rises in Lake Miravel.", "", "Halvane Isles", "1984 was a year; the U.S. too"]


def random_span(chance: random.Random, *, with_text: bool) -> Record:
    span: Record = {"wikipedia_id": chance.choice(["1", 1, " 2", "3", 4, None])}
    if chance.random() < 0.1:
        del span["wikipedia_id"]
    if chance.random() < 0.8:
        span["section"] = chance.choice(["Lead", "History"])
    if chance.random() < 0.8:
        span["title"] = chance.choice(TITLES)
    if with_text and chance.random() < 0.7:
        span["text"] = chance.choice(TEXTS)
    return span


def random_output(chance: random.Random, *, with_text: bool) -> Record:
    output: Record = {}
    if chance.random() < 0.8:
        output["answer"] = chance.choice(ANSWERS)
    if chance.random() < 0.8:
        output["provenance"] = [random_span(chance, with_text=with_text) for _ in range(chance.randint(0, 5))]
    return output


def random_pair(chance: random.Random, number: int) -> tuple[Record, Record | None]:
    record = gold(f"{number}", *(random_output(chance, with_text=False) for _ in range(chance.randint(1, 4))))
    record["input"] = chance.choice(["Where does the Ullane rise?", "", "Halvane Isles [START_ENT] x"])
    if chance.random() < 0.1:
        del record["input"]
    if chance.random() < 0.1:
        return record, None
    n_outputs = 1 if chance.random() < 0.8 else chance.choice([0, 2])
    outputs = [random_output(chance, with_text=True) for _ in range(n_outputs)]
    return record, {"id": number if chance.random() < 0.5 else f" {number} ", "output": outputs}


@pytest.mark.parametrize("keys", [("wikipedia_id",), ("wikipedia_id", "section")])
def test_every_value_is_that_of_a_slow_evaluation(keys: tuple[str, ...], tmp_path: Path) -> None:
    chance = random.Random(f"kilt {keys}")
    pairs = [random_pair(chance, number) for number in range(500)]
    ks = (1, 2, 5)
    scores, _ = evaluated(
        tmp_path, [record for record, _ in pairs], [guess for _, guess in pairs if guess], ks=ks, rank_keys=keys
    )
    expected = [scores_of(record, guess, ks, keys) for record, guess in pairs]
    assert set(scores.first.columns) == expected[0].keys()
    assert all(sum(gold_scores[name] for gold_scores in expected) > 0 for name in scores.first.columns)
    for row, values in zip(scores.first.rows(), expected, strict=True):
        del row["id"]
        assert row == pytest.approx(values, abs=1e-9)


def test_what_cannot_be_used_is_named_and_scores_nothing(tmp_path: Path) -> None:
    right = {"output": [pages("1", answer="Ullane")]}
    scores, rejected = evaluated(
        tmp_path,
        [gold(record_id, pages("1", answer="Ullane")) for record_id in "abcde"] + [{"id": "f", "output": []}],
        [
            {"id": "a", **right},
            {"id": "a", **right},
            {"id": "b", "output": [pages("1"), {"answer": "Ullane"}]},
            {"id": "c", "output": [pages("1"), pages("1", answer="Ullane")]},
            {"id": "z", **right},
            {"id": "d", "output": "Ullane"},
        ],
    )
    assert [(bad.reason, bad.stage, bad.key) for bad in rejected] == [
        ("duplicate_id", "predictions", "a"),
        ("several_provenances", "predictions", "c"),
        ("wrong_type", "predictions", "d"),
        ("no_answer", "predictions", "b"),
        ("no_answer", "predictions", "c"),
        ("no_output", "gold", "f"),
        ("unknown_id", "predictions", "z"),
    ]
    value = scores.to_json()
    assert (value["records"], value["without_prediction"], value["downstream"]["accuracy"]) == (5, 2, 0.2)
    assert value["retrieval"]["Rprec"] == 0.4


def test_a_retriever_is_evaluated_by_its_places_alone(tmp_path: Path) -> None:
    scores, rejected = evaluated(
        tmp_path, [gold("a", pages("1", answer="x"))], [{"id": "a", "output": [pages("1"), {"answer": "x"}]}]
    )
    assert (rejected, list(scores.to_json())[:2]) == ([], ["records", "retrieval"])
    assert "no prediction has an answer" in scores.to_text()


@pytest.mark.parametrize(
    ("quirk", "gold_output", "name", "plain", "released"),
    [
        ("empty_sets", {"answer": "x", "provenance": []}, "recall@5", 1.0, 0.5),
        ("partial_ids", {"provenance": [{"section": "Lead"}]}, "recall@5", 1.0, 0.5),
        ("null_ids", {"provenance": [{"wikipedia_id": None}]}, "recall@5", 1.0, 0.5),
        ("empty_answers", {"answer": "The"}, "answer_in_context@1", 0.0, 1.0),
    ],
)
def test_quirks(quirk: str, gold_output: Record, name: str, plain: float, released: float, tmp_path: Path) -> None:
    record = gold("a", pages("1", answer="Ullane"), gold_output)
    guess = {"id": "a", "output": [{"provenance": [{"wikipedia_id": "1", "text": "water"}]}]}
    values = [
        evaluated(tmp_path, [record], [guess], quirks=frozenset(quirks))[0].first.mean(name) for quirks in ((), [quirk])
    ]
    assert values == [plain, released]


def test_a_long_answer_is_scored(tmp_path: Path) -> None:
    text = " ".join(f"w{number}" for number in range(1500))
    scores, _ = evaluated(tmp_path, [gold("a", pages("1", answer=text))], [{"id": "a", "output": [{"answer": text}]}])
    assert scores.first.mean("rougel") == pytest.approx(1, abs=1e-6)


def test_two_systems_are_compared(tmp_path: Path) -> None:
    records = [gold(f"{number}", pages("1", answer="x")) for number in range(40)]
    wrong, right = [
        [{"id": f"{number}", "output": [{"answer": "x" if number >= first else "y"}]} for number in range(40)]
        for first in (20, 0)
    ]
    second = {"compare": str(write_records(tmp_path / "second.jsonl", right))}
    scores, _ = evaluated(tmp_path, records, wrong, files=second, resamples=2000)
    low, high = scores.first.intervals["accuracy"]
    assert 0.3 < low < 0.4
    assert 0.6 < high < 0.7
    difference = scores.differences["accuracy"]
    assert difference.mean == 0.5
    assert difference.interval.low > 0.3
    assert difference.p < 0.001
    assert scores.differences["Rprec"].p == 1
    assert scores.to_json() == evaluated(tmp_path, records, wrong, files=second, resamples=2000)[0].to_json()
    assert "+50.00" in scores.to_text()


def test_the_leaderboard(tmp_path: Path) -> None:
    for folder in ("gold", "guess"):
        (tmp_path / folder).mkdir()
    for task in ("nq", "fever", "wow", "quiz"):
        write_records(tmp_path / "gold" / f"{task}-dev-kilt.jsonl", [gold("a", pages("1", answer="The Ullane"))])
    write_records(tmp_path / "gold" / "notes.jsonl", [{"of": "no task"}])
    for task in ("quiz", "nq", "fever"):
        guess = {"id": "a", "output": [pages("1", answer="Ullane")]}
        write_records(tmp_path / "guess" / f"{task}-dev-kilt.jsonl", [guess])
    files = KiltFiles(str(tmp_path / "gold"), str(tmp_path / "guess"), all_tasks=True)
    scores, missing = evaluate_tasks(files, KiltEvaluation(), reject=lambda _: None)
    assert missing == ["wow-dev-kilt.jsonl"]
    text = leaderboard_text(scores)
    assert [line.split() for line in text.splitlines()] == [
        ["records", "metric", "score", "KILT", "Rprec", "rec@5"],
        ["fever-dev-kilt.jsonl", "1", "accuracy", "0.00", "0.00", "100.00", "100.00"],
        ["nq-dev-kilt.jsonl", "1", "em", "100.00", "100.00", "100.00", "100.00"],
        ["quiz-dev-kilt.jsonl", "1", "–", "–", "100.00", "100.00"],
    ]


def test_a_bad_gold_record_is_named_and_its_prediction_is_not(tmp_path: Path) -> None:
    good, guesses = gold("b", pages("1", answer="x")), [{"id": name, "output": [pages("1")]} for name in "ab"]
    scores, rejected = evaluated(tmp_path, [{"id": "a", "output": 3}, good], guesses)

    assert scores.first.ids == ["b"]
    assert [(bad_record.reason, bad_record.stage, bad_record.key) for bad_record in rejected] == [
        ("wrong_type", "gold", "a")
    ]


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="records of KILT with id and output"):
        evaluated(tmp_path, [{"id": "a", "input": "x"}], [{"id": "a", "output": []}])
