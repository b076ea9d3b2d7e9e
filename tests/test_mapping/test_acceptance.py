"""Rules of --accept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.acceptance import SIGNALS, check_signals, read_rule

GOOD = {"bleu": 0.7, "entailment": 0.2, "neutral": 0.1, "contradiction": 0.7}


@pytest.mark.parametrize(
    ("rule", "holds"), [("NOT Bleu >= 1 OR bleu < 0", True), ("not not bleu>=.5and(entailment<1.)", True)]
)
def test_case_blanks_and_bare_points_do_not_matter(rule: str, holds: bool) -> None:
    assert read_rule(rule).holds(GOOD) is holds


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("", "column 1 one of bleu, entailment, neutral, contradiction is expected, it ends"),
        ("blue>=0.5", "column 1 one of bleu"),
        ("bleu", "column 5 one of >= > <= < is expected, it ends"),
        ("bleu==0.5", "column 5 one of >= > <= < is expected, found '='"),
        ("bleu>=1.5", "column 7 a number from 0 to 1 is expected, found '1.5'"),
        ("bleu>=-1", "column 7 a number from 0 to 1 is expected, found '-'"),
        ("bleu>=٠.٥", "column 7 a number from 0 to 1 is expected, found '٠'"),
        ("bleu>=0.5.5", "column 10 'and', 'or' or the end is expected, found '.5'"),
        ("bleu>=0.5, entailment>=0.5", "column 10 'and', 'or' or the end is expected, found ','"),
        ("bleu ≥ 0.5", "column 6 one of >= > <= < is expected, found '≥'"),
        ("bleu>=0.5 entailment>=0.5", "column 11 'and', 'or' or the end is expected, found 'entailment'"),
        ("(bleu>=0.5", "column 11 ')' is expected"),
        ("bleu>=0.5)", "column 10 'and', 'or' or the end"),
        ("bleu>=0.5 and", "column 14 one of bleu"),
        ("__import__('os')", "column 1 one of bleu"),
        ("(" * 5_000 + "bleu>=0", "at most 50 levels"),
        ("not " * 5_000 + "bleu>=0", "at most 50 levels"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(rule: str, complaint: str) -> None:
    with pytest.raises(SetupError) as caught:
        read_rule(rule)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("compare", [">=", ">", "<=", "<"])
def test_a_signal_that_is_not_there_meets_no_comparison(compare: str) -> None:
    assert not read_rule(f"entailment {compare} 0.5").holds({"bleu": 1.0, "entailment": None})


@st.composite
def rules(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """Gives a rule and the same in Python."""
    if depth == 0 or draw(st.booleans()):
        signal, compare = draw(st.sampled_from(SIGNALS)), draw(st.sampled_from((">=", ">", "<=", "<")))
        text = f"{signal} {compare} {draw(st.sampled_from(('0', '0.25', '0.5', '1', '1.0')))}"
        return text, text
    kind = draw(st.sampled_from(("and", "or", "not", "brackets")))
    left, right = draw(rules(depth - 1)), draw(rules(depth - 1))
    if kind == "not":
        return f"not ({left[0]})", f"not ({left[1]})"
    if kind == "brackets":
        return f"({left[0]})", f"({left[1]})"
    return f"{left[0]} {kind} {right[0]}", f"{left[1]} {kind} {right[1]}"


@given(rules(), st.fixed_dictionaries({name: st.sampled_from((0.0, 0.25, 0.5, 1.0)) for name in SIGNALS}))
def test_rules_mean_what_python_would_mean(rule: tuple[str, str], signals: dict[str, float]) -> None:
    text, python = rule
    assert read_rule(text).holds(signals) is bool(eval(python, {}, dict(signals)))


@given(st.text(alphabet="bleu>=<0.5() andortm\u00e9", max_size=30))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        rule = read_rule(text)
    except SetupError:
        return
    assert rule.holds(GOOD) in (True, False)


THREE = {"entailment": 2, "neutral": 1, "contradiction": 0, "n_outputs": 3}
TWO = {"entailment": 0, "neutral": None, "contradiction": None, "n_outputs": 2}


@pytest.mark.parametrize(
    ("rule", "labels"), [("neutral<0.5 and not contradiction>=0.5", THREE), ("bleu>=0.7 or entailment>=0.9", TWO)]
)
def test_a_rule_that_a_model_can_meet_passes(rule: str, labels: dict[str, int | None]) -> None:
    check_signals(rule, labels, model="models/some")


@pytest.mark.parametrize(
    ("rule", "unknown"),
    [
        ("neutral>=0.5", ["neutral"]),
        ("bleu>=0.7 or not contradiction>=0.5", ["contradiction"]),
        ("entailment>=0.5 and (neutral<=0.1 or contradiction<=0.1)", ["contradiction", "neutral"]),
    ],
)
def test_a_rule_about_what_a_model_does_not_tell_is_refused(rule: str, unknown: list[str]) -> None:
    with pytest.raises(SetupError) as caught:
        check_signals(rule, TWO, model="models/two")
    missing = f"models/two does not report {' or '.join(unknown)}, only entailment, not_entailment"
    solution = f"Remove {' and '.join(unknown)} from the rule, or give --model a model"
    assert str(caught.value).startswith(f"--accept {rule!r}: {missing}. {solution}")
