"""``kbsource read`` by a reader without a model; models of transformers are in ``test_generation_torch``."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from kbsource.errors import RecordError, SetupError
from kbsource.records import BadRecord
from mapping.entail.signal import Pair, Verdict
from mapping.retrieval.fact_checker import check_claims
from mapping.retrieval.page_lookup import PageLookup
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.reader import read_prompt
from mapping.retrieval.system_options import ReaderOptions
from pipelines.cli import main
from pipelines.jobs import read as job
from pipelines.jobs.read import write_predictions
from pipelines.options.read import ReadOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.alignments import read_lines, write_records
from tests.support.fake_reader import FUSING, OPENER

QUESTIONS = [{"id": f"q{number}", "input": f"Who is {number}?"} for number in range(40)]
FOUND = [
    {
        "id": f"q{number}",
        "output": [
            {"provenance": [{"wikipedia_id": str(number + at), "text": f"<<{number}>>", "title": "T"} for at in (0, 1)]}
        ],
    }
    for number in range(40)
]

GOLD = {"answer": "Halvane Isles", "provenance": [{"wikipedia_id": "12", "title": "Halvane Isles"}]}


def _read(
    folder: Path,
    questions: list[Any],
    found: list[Any] | None = None,
    *,
    workers: int = 1,
    told: TextIO | None = None,
    **given: Any,
) -> tuple[tuple[int, int, int, list[BadRecord]], list[dict[str, Any]]]:
    retrieved = None if found is None else str(write_records(folder / "found.jsonl", found))
    reader = ReaderOptions(given.pop("model", FUSING), opener=OPENER, max_tokens=given.pop("max_tokens", 100))
    path = write_records(folder / "questions.jsonl", questions)
    output = folder / given.pop("output", "out.jsonl")
    given.setdefault("form", "read")
    options = ReadOptions(str(path), output=str(output), reader=reader, retrieved=retrieved, **given)
    flags = beam_flags("local", workers=workers, beam_args=())
    made = write_predictions(options, flags=flags, progress=Progress(told or io.StringIO()))
    return made, read_lines(output)


@pytest.mark.slow  # worker processes
def test_questions_are_answered_in_their_order_by_any_number_of_workers(tmp_path: Path) -> None:
    made, lines = _read(tmp_path, QUESTIONS, FOUND)
    assert made == (40, 0, 0, [])
    assert [(line["id"], line["output"][0]["answer"]) for line in lines] == [(f"q{n}", f"{n}#{n}") for n in range(40)]
    _read(tmp_path, QUESTIONS, FOUND, workers=2, output="two.jsonl")
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "found.jsonl",
        "out.jsonl",
        "questions.jsonl",
        "two.jsonl",
    ]


def test_predictions_of_lists_are_evaluated_with_their_passages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [{"answer_text": name, "aliases": []} for name in ("Brack", "Tey")]
    ctxs = [
        {"id": f"{n}__0", "title": "T", "text": f"It is <<{name}>>, {name}."}
        for n, name in enumerate(("Brack", "Sorn"))
    ]
    question = {"qid": "1__wikidata_simple__dev", "question_text": "Which?", "answer_list": answers, "ctxs": ctxs}
    gold = {**question, "positive_ctxs": [{"chunk_id": "7__0", "title": "Tey", "text": "<<Tey>>", "pid": "p"}]}
    made, (line,) = _read(tmp_path, [gold], form="pig")
    assert (line["predictions"], made[3]) == (["Brack", "Sorn"], [])
    _, (of_gold,) = _read(tmp_path, [gold], form="fid", passages_key="positive_ctxs", output="oracle.jsonl")
    assert (of_gold["predictions"], of_gold["ctxs"][0]["id"]) == (["Tey"], "7__0")
    path, gold_path = str(tmp_path / "out.jsonl"), write_records(tmp_path / "gold.jsonl", [question])
    assert main(["evaluate", "qampari", str(gold_path), "--predictions", path, "--retrieved", path, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["reader"]["recall"], said["reader"]["precision"], said["arecall"]["10"]) == (0.5, 0.5, 0.5)


def test_a_linked_mention_has_the_page_of_its_answer_as_provenance(
    tmp_path: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["Halvane", "Halvane Isles", "halvane Isles", "Sorn and nothing else", "42", ""]
    questions = [
        {"id": str(n), "input": f"x [START_ENT] <<{answer}>> [END_ENT]", "output": [GOLD]}
        for n, answer in enumerate(answers)
    ]
    plain = {"id": "plain", "input": "<<Halvane Isles>>", "output": [GOLD]}
    _, without = _read(tmp_path, questions, form="closed")
    assert [line["output"] for line in without] == [[{"answer": answer, "provenance": []}] for answer in answers]
    for redirects, found in ((False, 1), (True, 2)):
        options: dict[str, Any] = {"kb": str(release), "redirects": redirects, "output": f"{redirects}.jsonl"}
        made, lines = _read(tmp_path, [*questions, plain], form="closed", **options)
        assert made == (7, 0, 0, [])
        assert [line["output"][0]["answer"] for line in lines] == [*answers, "Halvane Isles"]  # as they are written
        pages = [line["output"][0]["provenance"] for line in lines]
        assert pages[1] == [{"wikipedia_id": "12", "title": "Halvane Isles"}]
        assert pages[0] == (pages[1] if redirects else [])
        assert pages[2:] == [[]] * 5  # exactly the title; and only a mention is linked
        gold, path = tmp_path / "questions.jsonl", tmp_path / f"{redirects}.jsonl"
        assert main(["evaluate", "kilt", str(gold), str(path), "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["kilt"]["KILT-accuracy"] == pytest.approx(1 / 7)
        assert said["retrieval"]["Rprec"] == pytest.approx(found / 7)
    _read(tmp_path, [*questions, plain], form="closed", workers=2, **options | {"output": "two.jsonl"})
    assert (tmp_path / "two.jsonl").read_bytes() == path.read_bytes()


class SeeingChecker:
    """Keeps what it judges."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        self.seen.extend(pair.premise for pair in pairs)
        return [Verdict(0.5, 0.3, 0.2) for _ in pairs]


def test_the_first_sentences_of_pages_are_read_in_place_of_passages(release: Path) -> None:
    pages = PageLookup(str(release))
    hits = tuple(Hit(f"{page}__{number}", str(page), "T", "x") for number, page in enumerate((12, 12)))
    model: Any = SeeingChecker()
    given: dict[str, Any] = {"prompt": read_prompt(None, "fact-checking"), "top": 9, "pages": pages, "n_sentences": 1}
    (line,) = check_claims([Query("a", "Claim.", contexts=hits)], model, **given)
    assert isinstance(line, bytes)
    first, two = pages.beginning("12", 1), pages.beginning("12", 2)
    assert first.text
    assert two.text.startswith(f"{first.text} ")
    assert model.seen == [f"Halvane Isles: {first.text}"]
    page = {"wikipedia_id": "12", "title": "Halvane Isles", "text": first.text}
    assert json.loads(line)["output"] == [{"answer": "SUPPORTS", "provenance": [page]}]
    lost = Hit("999999__0", "999999", "T", "x")
    (refused,) = check_claims([Query("b", "Claim.", contexts=(lost,))], model, **given)
    assert isinstance(refused, RecordError)
    assert (refused.reason, refused.detail) == ("unknown_page", "b: the release has no page '999999'")


def test_slots_are_asked_by_a_template_question(tmp_path: Path) -> None:
    slots: list[dict[str, Any]] = [
        {
            "id": f"q{n}",
            "input": f"T{n} [SEP] x",
            "meta": {"template_questions": [f"<<a{n}>>", f"<<b{n}>>", f"<<c{n}>>"]},
        }
        for n in range(40)
    ]
    bare = [
        {"id": "bare", "input": "<<T>> [SEP] x"},
        {"id": "bad", "input": "x", "meta": {"template_questions": [1, {}]}},
    ]
    told = io.StringIO()
    made, lines = _read(tmp_path, [*slots, *bare], form="closed", template_seed="s", told=told)
    assert (made[0], [(bad_record.key, bad_record.reason) for bad_record in made[3]]) == (
        41,
        [("line 42", "wrong_type")],
    )
    assert [line["input"] for line in lines] == [slot["input"] for slot in (*slots, bare[0])]
    answers = [line["output"][0]["answer"] for line in lines]
    assert {answer[0] for answer in answers[:40]} == {"a", "b", "c"}
    assert answers[40] == "T"
    assert "1 question without template_questions: the field input is read instead." in told.getvalue()
    given: dict[str, Any] = {"form": "closed", "workers": 2}
    _read(tmp_path, [*slots, *bare], template_seed="s", output="two.jsonl", **given)
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    _read(tmp_path, [*slots, *bare], template_seed="other", output="other.jsonl", form="closed")
    assert (tmp_path / "other.jsonl").read_bytes() != (tmp_path / "out.jsonl").read_bytes()


def test_what_cannot_be_used_is_told_and_the_others_are_answered(tmp_path: Path) -> None:
    long = {"id": "long", "input": "one two three four five six seven eight nine ten"}
    found = [*FOUND[:1], "{no json", {"id": "other", "output": []}, FOUND[0]]
    made, lines = _read(tmp_path, [*QUESTIONS[:2], long, "[]", QUESTIONS[0]], found, max_tokens=9)
    assert [line["id"] for line in lines] == ["q0", "q1"]
    reasons = ["malformed_json", "duplicate_question", "wrong_type", "duplicate_question", "unknown_question"]
    assert [bad_record.reason for bad_record in made[3]] == [*reasons, "prompt_too_long"]
    assert made[:3] == (3, 2, 1)


def test_a_run_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = job.answer_questions

    def stopped(questions: Any, *given: Any, **options: Any) -> Any:
        asked.extend(question.query_id for question in questions)
        if len(asked) == 32:
            raise SetupError("stopped")
        return real(questions, *given, **options)

    monkeypatch.setattr(job, "answer_questions", stopped)
    told = io.StringIO()
    with pytest.raises(Exception, match="stopped"):
        _read(tmp_path, QUESTIONS, FOUND, told=told)
    (left,) = tmp_path.glob("*.partial")
    assert f"The finished part is in {left}." in told.getvalue()
    _, lines = _read(tmp_path, QUESTIONS, FOUND)
    assert len(lines) == 40
    assert len(asked) == 32 + 24  # of the first run one group was done


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"form": "fid", "model": "plain"}, "has no encoder"),
        ({"prompt": "none.toml"}, "none.toml"),
        ({"questions": [{"x": 1}]}, "has no questions"),
        ({"redirects": True}, "--redirects needs --kb"),
        ({"kb": "none"}, "none"),
        ({"first_sentences": 1}, "--first-sentences needs --kb"),
        ({"first_sentences": 1, "kb": "x"}, "--first-sentences works only with --form fact-checking, not with read"),
        ({"form": "rag-token", "model": "plain"}, "--form rag-token: plain has no encoder"),
    ],
)
def test_a_reader_that_cannot_be_is_told(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        _read(tmp_path, given.pop("questions", QUESTIONS), FOUND, **given)
    assert not [*tmp_path.glob("*.partial")]
