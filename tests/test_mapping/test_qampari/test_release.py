"""Questions as QAMPARI's files have them, and the tables beside these."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.records import BadRecord
from kbsource.release.layout import stored_files
from kbsource.release.output import ReleaseFolder
from mapping.metrics.evaluation import QampariEvaluation, QampariFiles
from mapping.metrics.qampari import evaluate_qampari
from mapping.qampari.kind import QAMPARI_RELEASE, TABLES, read_form
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.release import (
    PUBLISHED,
    AnswerStatistics,
    Form,
    data_path,
    parse_qid,
    qid_of,
    released_record,
    write_release_files,
)
from mapping.sources.source import SPLITS, Split
from mapping.write.kilt import kilt_line
from tests.support.qampari import HOST, drawn, queries_of, question, undrawn, write_qampari
from tests.support.tables import read_table
from tests.support.verified import manifest_bytes

QID = "7__wikidata_comp__dev"
PROOF = ProofText("The Ullane Is long. It ends.", 12, "River Ullane", 3, 10, 38, 30, 0.875, "The Ullane is long.")
FILM = QuestionEntity("Down River", ("Down River", "Le Fleuve"), "Down River (film)", "Q5")
COMPOSED = Question(
    COMPOSITION,
    "P86__P57__Q1",
    "Who are the composers of films that were directed by Ann?",
    None,
    property_ids=("P57", "P86"),
    type_label="film",
    entities=(QuestionEntity("Ann", ("Ann", "Ann A."), "Ann Ann", "Q1"), QuestionEntity("X", ("X",), None, None)),
    n_answers=9,
    n_validated=8,
    answers=(
        QuestionAnswer("Brack", ("Brack", "B. Rack"), "Brack (composer)", "Q2", (PROOF, PROOF), FILM),
        QuestionAnswer("1905", ("1905",), None, None, (replace(PROOF, title="Löwe? 1%"),)),
    ),
)


def _record(**options: Any) -> dict[str, Any]:
    drawn_question = replace(COMPOSED, qid=QID, paraphrase=options.pop("text", None))
    given_form = {"host": HOST, "with_meta": False, "is_released_case": False, "seed": "", **options}
    return released_record(drawn_question, Form(**given_form))


def test_a_record_has_the_fields_of_released_ones_in_their_order() -> None:
    text = "The Ullane Is long. It ends."
    expected = {
        "qid": QID,
        "question_text": "Who are the composers of films that were directed by Ann?",
        "entities": [
            {"entity_text": "Ann", "entity_url": "https://en.wikipedia.org/wiki/Ann_Ann", "aliases": ["Ann", "Ann A."]},
            {"entity_text": "X", "aliases": ["X"]},
        ],
        "answer_list": [
            {
                "answer_text": "Brack",
                "aid": f"{QID}__0",
                "aliases": ["Brack", "B. Rack"],
                "answer_url": "https://en.wikipedia.org/wiki/Brack_(composer)",
                "proof": [
                    {
                        "proof_text": text,
                        "found_in_url": "https://en.wikipedia.org/wiki/River_Ullane",
                        "pid": f"{QID}__0__0",
                    },
                    {
                        "proof_text": text,
                        "found_in_url": "https://en.wikipedia.org/wiki/River_Ullane",
                        "pid": f"{QID}__0__1",
                    },
                ],
            },
            {
                "answer_text": "1905",
                "aid": f"{QID}__1",
                "aliases": ["1905"],
                "proof": [
                    {
                        "proof_text": text,
                        "found_in_url": "https://en.wikipedia.org/wiki/Löwe?_1%",
                        "pid": f"{QID}__1__0",
                    }
                ],
            },
        ],
    }
    assert json.dumps(_record()) == json.dumps(expected)


def test_a_paraphrase_is_asked_in_place_of_the_text() -> None:
    assert _record(text="Who wrote the music of Ann's films?")["question_text"] == "Who wrote the music of Ann's films?"


def test_proofs_can_be_written_in_the_case_of_released_ones() -> None:
    proofs = _record(is_released_case=True)["answer_list"][0]["proof"]
    assert [proof["proof_text"] for proof in proofs] == ["The ullane is long. It ends."] * 2


def test_meta_is_one_more_field() -> None:
    record = _record(with_meta=True)
    meta = record.pop("meta")
    place = {
        "page_id": 12,
        "element": 3,
        "start_char": 10,
        "end_char": 38,
        "entailment": 0.875,
        "hypothesis": "The Ullane is long.",
    }

    assert record == _record()
    assert meta == {
        "key": "P86__P57__Q1",
        "property_ids": ["P57", "P86"],
        "type_label": "film",
        "entity_ids": ["Q1", None],
        "n_answers": 9,
        "n_validated": 8,
        "answers": [
            {"item_id": "Q2", "via_id": "Q5", "proofs": [place, place]},
            {"item_id": None, "via_id": None, "proofs": [place]},
        ],
    }


def test_a_line_is_ascii_and_the_record_again() -> None:
    line = kilt_line(_record())
    assert line.isascii()
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == _record()


@given(st.integers(0, 1 << 60), st.sampled_from(SUBSETS), st.sampled_from(SPLITS))
def test_the_parts_of_a_qid_are_found_again(n: int, subset: str, split: Any) -> None:
    assert parse_qid(qid_of(n, subset, split)) == (n, subset, split)


@pytest.mark.parametrize(
    "qid",
    [
        "7__wikidata_comp",
        "07__wikidata_comp__dev",
        "-1__wikidata_comp__dev",
        "7__wikidata__dev",
        "7__wikidata_comp__dev ",
    ],
)
def test_what_is_no_qid_is_refused(qid: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_qid(qid)
    assert caught.value.reason == "malformed_qid"


def _questions_of_a_release() -> list[Question]:
    names = ["Brack", "Sorn", "Tey", "Ullane", "Halvane"]
    composed = question("P86__P57__Q2", [f"{name} Mill" for name in names], subset=COMPOSITION)
    met = question("P50__Q2__P57__Q3", [f"{name} Falls" for name in names], subset=INTERSECTION)
    return [
        drawn(question("P50__Q1", names), 0, "dev"),
        undrawn(question("P50__Q2", names)),
        drawn(question("P50__Q3", reversed(names)), 0, "test"),
        drawn(composed, 1, "dev"),
        drawn(met, 0, "train"),
    ]


def test_each_split_has_its_questions_in_their_order(tmp_path: Path) -> None:
    given_questions = _questions_of_a_release()
    folder = write_qampari(tmp_path / "release", given_questions)

    qids = {
        split: [json.loads(line)["qid"] for line in (folder / data_path(split)).read_text().splitlines()]
        for split in SPLITS
    }
    assert qids == {
        "train": ["0__wikidata_intersection__train"],
        "dev": ["0__wikidata_simple__dev", "1__wikidata_comp__dev"],
        "test": ["0__wikidata_simple__test"],
    }
    assert [convert(row, Question) for row in read_table(str(folder), "questions")] == given_questions
    queries = [convert(row, QueryRow) for row in read_table(str(folder), "queries")]
    assert queries == queries_of(given_questions)


@pytest.mark.parametrize("form", [Form(HOST, False, False, "s"), Form("simple.wikipedia.org", True, True, "t")])
def test_the_metrics_read_what_was_written(tmp_path: Path, form: Form) -> None:
    folder = write_qampari(tmp_path / "release", _questions_of_a_release(), form=form)
    gold = folder / data_path("dev")
    records = [json.loads(line) for line in gold.read_text("ascii").splitlines()]
    predictions = [
        {"qid": record["qid"], "predictions": [answer["aliases"][-1] for answer in record["answer_list"]]}
        for record in records
    ]
    retrieved = [
        {
            "qid": record["qid"],
            "ctxs": [
                {
                    "id": proof["pid"],
                    "title": proof["found_in_url"],
                    "text": f"{proof['proof_text']} {answer['answer_text']}",
                }
                for answer in record["answer_list"]
                for proof in answer["proof"]
            ],
        }
        for record in records
    ]
    for name, lines in (("predictions", predictions), ("retrieved", retrieved)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    rejected: list[BadRecord] = []
    files = QampariFiles(
        str(gold), predictions=str(tmp_path / "predictions.jsonl"), retrieved=str(tmp_path / "retrieved.jsonl")
    )
    scores = evaluate_qampari(files, QampariEvaluation(ks=(50,)), reject=rejected.append).to_json()

    assert rejected == []
    assert scores["questions"] == 2
    assert scores["reader"] == {"recall": 1, "precision": 1, "f1": 1, "f1_above": 1, "rec_above": 1}
    assert scores["arecall"] == {"50": 1}
    assert scores["erecall"] == {"50": 1}
    assert read_form(str(folder))[1] == form


def test_a_form_is_that_of_a_finished_release(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no finished release"):
        read_form(str(tmp_path))
    for manifest, said in (
        ("[]", "not a manifest of kbsource"),
        ("{", "not JSON"),
        ('{"format": "kbsource-release-1"}', "not a QAMPARI release"),
        (f'{{"format": "{QAMPARI_RELEASE.format}"}}', "changed since it was written"),
        (manifest_bytes({}, form=QAMPARI_RELEASE.format).decode(), "made by another version of kbsource"),
        (
            manifest_bytes({"form": {"host": "x"}}, form=QAMPARI_RELEASE.format).decode(),
            "made by another version of kbsource",
        ),
    ):
        (tmp_path / "manifest.json").write_text(manifest)
        with pytest.raises(SetupError, match=said):
            read_form(str(tmp_path))


def test_every_column_has_a_meaning() -> None:
    def check(fields: Any) -> None:
        for field in fields:
            assert (field.metadata or {}).get(b"description"), field.name
            inner = getattr(field.type, "value_type", field.type)
            if hasattr(inner, "get_field_index"):
                check(inner)

    for schema in TABLES.values():
        check(schema)


def begin(output: str) -> None:
    with ReleaseFolder(output, kind=QAMPARI_RELEASE):
        pass


def test_a_release_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    output = str(tmp_path / "release")
    begin(output)

    def questions() -> Iterator[Question]:
        yield drawn(question("P50__Q1", ["A", "B", "C", "D", "E"]), 0, "dev")
        raise SetupError("no more")

    with pytest.raises(SetupError, match="no more"):
        write_release_files(
            questions(), [], form=Form(HOST, with_meta=False, is_released_case=False, seed=""), output=output
        )
    assert stored_files(output) == ["BUILDING"]
    begin(output)


def _question(n: int, subset: str, n_answers: int, split: Split | None) -> Question:
    made_question = question(f"P50__Q{n}", [f"Answer {place}" for place in range(n_answers)], subset=subset)
    return undrawn(made_question) if split is None else drawn(made_question, n, split)


def _counted(questions: Iterable[Question]) -> dict[str, Any]:
    statistics = AnswerStatistics()
    given = list(questions)
    assert list(statistics.seen(given)) == given
    return statistics.values()


def test_the_published_sets_stand_beside_what_was_made() -> None:
    values = _counted(
        [
            _question(0, SIMPLE, 5, "train"),
            _question(1, COMPOSITION, 8, "train"),
            _question(0, SIMPLE, 7, "dev"),
            _question(0, SIMPLE, 6, "test"),
            _question(1, INTERSECTION, 9, "test"),
            _question(9, SIMPLE, 99, None),
        ]
    )

    assert values["kept"] == {SIMPLE: 4, COMPOSITION: 1, INTERSECTION: 1, TABLE_SIMPLE: 0, TABLE_COMPOSITION: 0}
    assert values["sampled"] == {
        "train": {SIMPLE: 1, COMPOSITION: 1},
        "dev": {SIMPLE: 1},
        "test": {SIMPLE: 1, INTERSECTION: 1},
    }
    assert values["answers"]["train"] == {
        "questions": 2,
        "mean": 6.5,
        "median": 6.5,
        "published_mean": 13.25,
        "published_median": 8,
        "words": 6.0,
        "published_words": 12.69,
        "distribution": {"< 5": 0, "5": 1, "6-7": 0, "8-15": 1, "16-50": 0, "51-100": 0, "> 100": 0},
    }
    assert values["answers"]["dev and test"]["distribution"]["6-7"] == 2
    # Training questions are no part of the numbers by subset.
    assert [values["answers"][SIMPLE][name] for name in ("questions", "mean", "median")] == [2, 6.5, 6.5]
    assert [values["answers"]["dev and test"][name] for name in ("questions", "mean", "median")] == [3, 7.33, 7]


@given(st.lists(st.tuples(st.sampled_from(SUBSETS), st.integers(1, 12), st.sampled_from((*SPLITS, None))), max_size=12))
def test_mean_and_median_are_those_of_the_answers_one_by_one(given: list[tuple[str, int, Split | None]]) -> None:
    values = _counted(_question(n, *arguments) for n, arguments in enumerate(given))

    groups: dict[str, list[int]] = {subset: [] for subset in SUBSETS}
    groups |= {"train": [], "dev and test": []}
    assert groups.keys() == values["answers"].keys() == PUBLISHED.keys()
    for subset, n_answers, split in given:
        if split is not None:
            groups["train" if split == "train" else "dev and test"].append(n_answers)
        if split in ("dev", "test"):
            groups[subset].append(n_answers)
    for name, counts in groups.items():
        found = values["answers"][name]
        mean = pytest.approx(sum(counts) / len(counts), abs=0.0051) if counts else None
        assert (found["questions"], found["mean"]) == (len(counts), mean)
        assert found["median"] == (median(counts) if counts else None)
        assert (found["published_mean"], found["published_median"]) == PUBLISHED[name]
        assert sum(found["distribution"].values()) == len(counts)
    assert sum(values["kept"].values()) == len(given)
    assert sum(sum(counts.values()) for counts in values["sampled"].values()) == sum(
        split is not None for *_, split in given
    )
