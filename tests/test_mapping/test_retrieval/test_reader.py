"""Prompts of a reader, passages that fit, and answers as predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbsource.errors import RecordError, SetupError
from mapping.retrieval.generator import Generator
from mapping.retrieval.queries import Hit, Query, queries_of
from mapping.retrieval.reader import Prompt, answer_questions, contexts_of, read_prompt, with_template_question
from mapping.retrieval.runs import prediction_id
from mapping.retrieval.system_options import ReaderOptions, ReadForm
from tests.support.fake_reader import FUSING, FakeGenerator

FORMS = ["closed", "read", "fid", "pig", "best", "rag-sequence", "rag-token", "extractive", "fact-checking"]
FORMS_OF_MARKS = [form for form in FORMS if form != "extractive"]
BARE = Prompt("{passages}{question}", "{title} {text} ")
SORN = Hit("3__0", "3", "Sorn", "rises in <<Brack>>")
TEY = Hit("5__1", "5", "Tey", "knows <<the Brack>>")
ULLANE = Hit("7", "7", "Ullane", "<<Miravel#Tey>> and more")
NOTHING = Hit("9__0", "9", "Nil", "<<no answer>>")


def _answered(
    *contexts: Hit, form: ReadForm = "read", benchmark: str = "kilt", most: int = 100, top: int = 9, text: str = "?"
) -> Any:
    model = FakeGenerator(ReaderOptions(FUSING))
    model.max_tokens = most
    asked = Query("a", text, benchmark=benchmark, contexts=contexts)
    (found,) = answer_questions([asked], model, form=form, prompt=BARE, top=top)
    return json.loads(found) if isinstance(found, bytes) else found


@pytest.mark.parametrize(
    ("form", "answer", "pages"),
    [
        ("closed", "", []),
        ("read", "Miravel#Tey#Brack#the Brack", ["7", "3", "5"]),
        ("fid", "Miravel#Tey#Brack#the Brack", ["7", "3", "5"]),
        # Two say Brack, in forms that are one, and come first.
        ("pig", "Brack", ["3", "5", "7"]),
        # All are equally probable.
        ("best", "Miravel#Tey", ["7", "3", "5"]),
        ("rag-sequence", "the Brack", ["7", "3", "5"]),
        ("rag-token", "the Brack by token", ["7", "3", "5"]),
    ],
)
def test_every_form_answers_with_the_passages_that_were_read(form: ReadForm, answer: str, pages: list[str]) -> None:
    best = msgspec.structs.replace(TEY, score=1.0)
    found = _answered(ULLANE, SORN, best, form=form)
    (output,) = found["output"]
    assert (found["id"], found["input"], output["answer"]) == ("a", "?", answer)
    assert [span["wikipedia_id"] for span in output["provenance"]] == pages
    assert [span.get("passage_id") for span in output["provenance"] if span["wikipedia_id"] == "7"] == [None] * (
        "7" in pages
    )


def test_a_list_of_answers_is_the_union_of_what_the_passages_give() -> None:
    found = _answered(SORN, NOTHING, TEY, ULLANE, form="pig", benchmark="qampari")
    assert (found["qid"], found["predictions"]) == ("a", ["Brack", "Miravel", "Tey"])
    assert [ctx["id"] for ctx in found["ctxs"]] == ["3__0", "9__0", "5__1", "7"]
    assert _answered(SORN, ULLANE, benchmark="qampari")["predictions"] == ["Brack", "Miravel", "Tey"]
    assert _answered(benchmark="qampari", form="pig")["predictions"] == []


def _scored(number: int, answer: str, score: int) -> Hit:
    return Hit(f"{number}__0", str(number), "T", f"<<{answer}>> @{score}")


@pytest.mark.parametrize(
    ("passages", "answer", "pages"),
    [
        ([(1, "Tey", -3), (2, "Brack", -1), (3, "Sorn", -2)], "Brack", ["2", "3", "1"]),
        # "none" is no answer, however probable; passages without one are last, as they were retrieved.
        ([(1, "none", -1), (2, "None", 0), (3, "Sorn", -9)], "Sorn", ["3", "1", "2"]),
        ([(1, "Tey", -2), (2, "none", -1), (3, "Tey", -2)], "Tey", ["1", "3", "2"]),
        ([(1, "none", -1), (2, "no answer", 0)], "", ["1", "2"]),
        ([], "", []),
    ],
)
def test_the_best_answer_is_the_most_probable_one_that_is_not_none(
    passages: list[tuple[int, str, int]], answer: str, pages: list[str]
) -> None:
    output = _answered(*(_scored(*scored_passage) for scored_passage in passages), form="best", benchmark="amber")[
        "output"
    ]
    assert output["answer"] == answer
    assert [span["wikipedia_id"] for span in output["provenance"]] == pages


def test_the_best_list_is_that_of_one_passage() -> None:
    found = _answered(_scored(1, "Tey#Sorn", -2), _scored(2, "Brack", -3), form="best", benchmark="qampari")
    assert found["predictions"] == ["Tey", "Sorn"]


def test_a_slot_is_asked_by_one_of_its_template_questions() -> None:
    record = {"id": "a", "input": "Sorn [SEP] mouth", "meta": {"template_questions": ["Where?", "What?", " "]}}
    (query,) = queries_of(record)
    drawn = {seed: with_template_question(query, record, seed).template_question for seed in map(str, range(20))}
    assert {*drawn.values()} == {"Where?", "What?"}
    assert drawn == {seed: with_template_question(query, record, seed).template_question for seed in drawn}
    asked = with_template_question(query, record, "0")
    assert BARE.text(asked, ()) == asked.template_question
    assert asked.input == "Sorn [SEP] mouth"  # which the prediction has
    for other in ({"id": "a", "input": "x"}, {"meta": None}, {"meta": {"template_questions": []}}):
        assert with_template_question(query, other, "0") == query
    for wrong in ({"meta": 1}, {"meta": {"template_questions": "Who?"}}, {"meta": {"template_questions": [[]]}}):
        with pytest.raises(RecordError, match="wrong_type"):
            with_template_question(query, wrong, "0")


def test_a_set_of_amber_has_one_output_and_only_the_first_passages_are_read() -> None:
    found = _answered(NOTHING, SORN, benchmark="amber", top=1)
    assert (found["output"]["answer"], len(found["output"]["provenance"])) == ("", 1)


def test_passages_that_do_not_fit_are_left_out_and_a_first_one_is_cut() -> None:
    # Four tokens a passage, with its title, and one of the question.
    both = _answered(SORN, TEY, most=9)["output"][0]
    assert [passage["passage_id"] for passage in both["provenance"]] == ["3__0", "5__1"]
    output = _answered(SORN, TEY, most=8)["output"][0]
    assert ([span["passage_id"] for span in output["provenance"]], output["answer"]) == (["3__0"], "Brack")
    cut = _answered(SORN, TEY, most=4)["output"][0]
    assert ([span["text"] for span in cut["provenance"]], cut["answer"]) == (["rises in"], "")
    assert _answered(SORN, most=2)["output"][0]["provenance"] == []
    assert _answered(SORN, TEY, most=4, form="pig")["output"][0]["provenance"][1]["text"] == "knows <<the"


def test_a_question_that_is_too_long_is_refused() -> None:
    refused = _answered(SORN, text="one two three four five", most=4)
    assert (refused.reason, refused.detail) == (
        "prompt_too_long",
        "a: the question without passages has 5 tokens; 4 fit",
    )


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"qid": "a", "ctxs": [{"id": "3__0", "title": "Sorn", "text": "x"}]}, [Hit("3__0", "3", "Sorn", "x")]),
        ({"id": 7, "ctxs": [{"id": 12, "text": "x"}]}, [Hit("12", "12", "", "x")]),
        (
            {
                "id": "a",
                "output": [
                    {"provenance": [{"wikipedia_id": 3, "text": "x", "passage_id": "3__1"}, {"wikipedia_id": 4}]}
                ],
            },
            [Hit("3__1", "3", "", "x")],
        ),
        ({"id": "a", "output": {"provenance": [{"wikipedia_id": "3", "text": "x"}]}}, [Hit("3", "3", "", "x")]),
    ],
)
def test_passages_of_every_form_are_read(record: Any, expected: list[Hit]) -> None:
    assert contexts_of(record) == expected
    assert prediction_id(record) == str(record.get("qid", record.get("id")))


@pytest.mark.parametrize("form", FORMS_OF_MARKS)
@pytest.mark.parametrize(
    "text",
    ["[START_ENT] Brack [END_ENT] and Tey", "Brack and [START_ENT] Tey [END_ENT]", "Sorn [SEP] mouth", "Hi.\nWho?"],
)
def test_a_prompt_has_the_input_with_its_marks(form: ReadForm, text: str) -> None:
    assert text in read_prompt(None, form).text(Query("a", text), [SORN])


def test_a_prompt_of_ones_own_has_the_input_or_its_words(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("prompt = '{input}|{question}'")
    asked = Query("a", "Sorn [SEP] mouth")
    assert read_prompt(str(path), "closed").text(asked, ()) == "Sorn [SEP] mouth|Sorn mouth"
    for field in ("input", "question"):
        path.write_text(f"prompt = '{{{field}}} {{passages}}'\npassage = '{{text}}'")
        assert read_prompt(str(path), "read").text(asked, ()).endswith("mouth ")


def test_the_prediction_has_the_input_as_the_record_has_it() -> None:
    assert _answered(SORN, text="Sorn [SEP] <<mouth>>")["input"] == "Sorn [SEP] <<mouth>>"
    listed = _answered(SORN, text="Who\nis [SEP]?", benchmark="qampari")
    assert listed["question"] == "Who\nis [SEP]?"


def test_not_relevant_is_no_answer() -> None:
    odd = Hit("9__1", "9", "Nil", "<<Not Relevant>>")
    assert _answered(SORN, odd, form="pig", benchmark="qampari")["predictions"] == ["Brack"]
    assert _answered(odd, SORN, form="pig")["output"][0]["answer"] == "Brack"
    assert _answered(odd, form="pig")["output"][0]["answer"] == ""


def test_what_is_filled_in_is_no_prompt() -> None:
    context = Hit("1", "1", "{question}", "{text}")
    assert BARE.text(Query("a", "{title}"), [context]) == "{question} {text} {title}"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_prompt(form: ReadForm) -> None:
    text = read_prompt(None, form).text(Query("a", "Who?"), [Hit("1", "1", "Sorn", "It is.")])
    assert "Who?" in text
    assert ("It is." in text) == (form not in ("closed", "extractive", "fact-checking"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt = ", "is not valid TOML"),
        ("prompt = 'x {question}'", "give prompt and passage"),
        ("prompt = '{question}'\npassage = '{text}'", "prompt lacks {passages}"),
        ("prompt = '{question} {passages} {text}'\npassage = '{text}'", "prompt has {text}"),
        ("prompt = '{question} {passages}'\npassage = '{title}'", "passage lacks {text}"),
        ("prompt = '{question} {passages}'\npassage = '{text} {input}'", "passage has {input}"),
        ("prompt = 'x {passages}'\npassage = '{text}'", "prompt lacks {input}"),
    ],
)
def test_a_prompt_that_means_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(SetupError, match=said.replace("{", r"\{")):
        read_prompt(str(tmp_path / "p.toml"), "read")


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\3\4", b"{}"])
def test_a_file_that_is_no_gguf_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(SetupError, match=r"model\.gguf: is not a GGUF file\. Download the model again"):
        Generator.sha256(ReaderOptions(str(tmp_path / "model.gguf")))
