"""What is made of the scores that a reader gives to each passage: spans, classes of claims, RAG's weights."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from mapping.retrieval.fact_checker import check_claims
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.reader import contexts_of, log_shares, read_prompt
from mapping.retrieval.span_reader import BestSpan, QuestionPassage, extract_answers


def _hit(number: int, text: str, page: int | None = None) -> Hit:
    return Hit(f"{page or number}__{number}", str(page or number), "T", text)


class FakeSpans:
    """The span is what stands between << and >>, its score the number behind it; a question of "long" is too long."""

    def check(self, question: str) -> None:
        if question == "long":
            raise RecordError("prompt_too_long", "the question by itself has 9 tokens; 3 fit")

    def spans(self, pairs: Sequence[QuestionPassage]) -> list[BestSpan | None]:
        found = []
        for _, context, start, end in pairs:
            assert context[start:end] in context
            text, _, score = context.partition("@")
            found.append(BestSpan(text.index("<<") + 2, text.index(">>"), float(score)) if "<<" in text else None)
        return found


def _extracted(*hits: Hit, benchmark: str = "kilt", top: int = 9, prompt: str | None = None) -> Any:
    asked = [Query("a", "long", contexts=hits), Query("b", "Who?", benchmark=benchmark, contexts=hits)]
    model: Any = FakeSpans()
    refused, line = extract_answers(asked, model, prompt=read_prompt(prompt, "extractive"), top=top)
    assert isinstance(refused, RecordError)
    assert (refused.reason, refused.detail) == ("prompt_too_long", "a: the question by itself has 9 tokens; 3 fit")
    assert isinstance(line, bytes)
    return json.loads(line)


@pytest.mark.parametrize(
    ("texts", "answer", "pages"),
    [
        (["x <<Tey>> @1", "<<Sorn>> @3", "<<Brack>> @2"], "Sorn", "231"),
        (["<<Tey>> @-4", "nothing", "<<Brack>> @-2", "<<Sorn>> @0.5"], "Sorn", "4312"),
        (["<<Tey>> @-4", "<<Brack>> @0"], "", "21"),  # no answer is at least as good
        (["<<Tey>> @1", "<<Sorn>> @1"], "Tey", "12"),
        ([], "", ""),
    ],
)
def test_the_best_span_that_is_no_no_answer(texts: list[str], answer: str, pages: str) -> None:
    (output,) = _extracted(*(_hit(number, text) for number, text in enumerate(texts, start=1)))["output"]
    assert output["answer"] == answer
    assert [span["wikipedia_id"] for span in output["provenance"]] == [*pages]


def test_a_list_has_the_spans_of_all_passages() -> None:
    hits = [_hit(number, text) for number, text in enumerate(["<<Tey>> @1", "<<the Tey>> @3", "<<X>> @-1", "<<Y>> @2"])]
    assert _extracted(*hits, benchmark="qampari")["predictions"] == ["the Tey", "Y"]
    assert _extracted(*hits, benchmark="qampari", top=1)["predictions"] == ["Tey"]


def test_a_span_is_of_the_passage_whatever_the_prompt_puts_around_it(tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    path.write_text("prompt = '{input}'\npassage = '{title}: {text} of {title}'")
    context = read_prompt(str(path), "extractive").context(_hit(1, "x {text}"))
    assert context.text == "T: x {text} of T"
    assert context.text[context.start_char : context.end_char] == "x {text}"
    path.write_text("prompt = 'long'\npassage = '{text}'")
    with pytest.raises(Exception, match="prompt lacks"):
        read_prompt(str(path), "extractive")


class FakeChecker:
    """A passage has the three probabilities that its text lists."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        if any(pair.hypothesis == "long" for pair in pairs):
            return [UnjudgedPair("hypothesis_too_long", "9 tokens; 3 fit") for _ in pairs]
        return [
            UnjudgedPair("empty_premise", "")
            if "blank" in pair.premise
            else Verdict(*map(float, pair.premise[3:].split()))
            for pair in pairs
        ]


def _checked(*texts: str, benchmark: str = "kilt", text: str = "Claim.", top: int = 9) -> Any:
    hits = tuple(_hit(number, passage_text) for number, passage_text in enumerate(texts, start=1))
    model: Any = FakeChecker()
    prompt = read_prompt(None, "fact-checking")
    (line,) = check_claims([Query("a", text, benchmark=benchmark, contexts=hits)], model, prompt=prompt, top=top)
    return json.loads(line) if isinstance(line, bytes) else line


YES, NO, NEI = "0.7 0.2 0.1", "0.1 0.3 0.6", "0.2 0.5 0.3"
SURE_YES, SURE_NO = "0.9 0.1 0", "0 0.2 0.8"


@pytest.mark.parametrize(
    ("texts", "kilt", "amber"),
    [
        ([YES, YES, SURE_NO], "SUPPORTS", "REFUTES"),
        ([NEI, NEI, SURE_YES], "REFUTES", "SUPPORTS"),  # most say that there is not enough information
        ([YES, NEI], "SUPPORTS", "SUPPORTS"),  # as many: the more probable
        ([NEI, NO], "REFUTES", "REFUTES"),
        ([YES, NO, NEI], "SUPPORTS", "SUPPORTS"),
        ([NEI], "REFUTES", ""),
        (["blank", SURE_YES], "SUPPORTS", "SUPPORTS"),
        ([], "REFUTES", ""),
    ],
)
def test_a_claim_has_the_class_of_most_passages_or_the_most_probable_one(
    texts: list[str], kilt: str, amber: str
) -> None:
    (output,) = _checked(*texts)["output"]
    assert output["answer"] == kilt
    assert _checked(*texts, benchmark="amber")["output"]["answer"] == amber


def test_passages_come_in_the_order_of_the_answers_probability() -> None:
    def order(*texts: str, benchmark: str = "kilt") -> str:
        output = _checked(*texts, benchmark=benchmark)["output"]
        places = (output if benchmark == "amber" else output[0])["provenance"]
        return "".join(place["wikipedia_id"] for place in places)

    assert order(NO, YES, SURE_YES, "blank") == "3214"
    assert order(NEI, SURE_NO, NO) == "231"
    assert order(NEI, "0.1 0.5 0.4", benchmark="amber") == "21"
    assert order(YES, YES) == "12"


def test_a_claim_that_cannot_be_judged_is_refused() -> None:
    for found, expected in (
        (_checked(YES, text="long"), ("prompt_too_long", "a: the claim without passages has 9 tokens; 3 fit")),
        (_checked(YES, benchmark="qampari"), ("no_claim", "a: a question for a list is not a claim")),
    ):
        assert (found.reason, found.detail) == expected


def test_passages_have_shares_by_their_scores() -> None:
    shares = [math.exp(log_share) for log_share in log_shares([2.0, 1.0, 0.0])]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] / shares[1] == pytest.approx(math.e)
    assert log_shares([1e6, 0.0])[0] == pytest.approx(0)


def test_scores_of_passages_are_read() -> None:
    def found(*scores: Any) -> list[float]:
        places = [{"wikipedia_id": "1", "text": "x", **({} if score is None else {"score": score})} for score in scores]
        return [hit.score for hit in contexts_of({"id": "a", "output": [{"provenance": places}]})]

    assert found("1.5", 2) == [1.5, 2.0]
    assert found(None, None) == [0.0, 0.0]
    for wrong, reason in (("x", "wrong_type"), ("nan", "wrong_type"), ("inf", "wrong_type"), (None, "missing_field")):
        with pytest.raises(RecordError, match=reason):
            found(1, wrong)
