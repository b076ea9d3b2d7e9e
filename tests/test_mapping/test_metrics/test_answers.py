"""Recall, precision and F1 of lists of answers."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.metrics.answers import GoldNames, ListScore, answer_form, is_exact, score_list

ULLANE = GoldNames("River Ullane", ("River Ullane", "Ullane"))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("The  Beatles!", "beatles"),
        ("U.S.", "us"),
        ("an A-team", "ateam"),
        ("Théâtre de l’Œuvre", "théâtre de l’œuvre"),
        ("A The", ""),
        ("?!", ""),
        ("Theatre", "theatre"),
        ("line\nbreak", "line break"),
    ],
)
def test_form_in_which_answers_are_compared(text: str, form: str) -> None:
    assert answer_form(text) == form


@pytest.mark.parametrize(
    ("score", "has_half_f1", "has_high_recall"),
    [
        (ListScore(1, 2, 2), True, False),  # F1 is 0.5
        (ListScore(1, 1, 3), True, False),  # P 1, R 1/3: 0.5
        (ListScore(10, 20, 21), False, False),  # 20/41
        (ListScore(4, 4, 5), True, True),  # recall is 0.8
        (ListScore(4, 40, 5), False, True),
        (ListScore(79, 79, 100), True, False),
    ],
)
def test_thresholds_are_inclusive(score: ListScore, has_half_f1: bool, has_high_recall: bool) -> None:
    assert (score.has_half_f1, score.has_high_recall) == (has_half_f1, has_high_recall)


@pytest.mark.parametrize(
    ("case", "predictions", "is_right"),
    [
        ("a name in another form", ["the ullane!"], True),
        ("the display text", ["River Ullane"], True),
        ("one form twice", ["Ullane", "ullane"], True),
        ("nothing beside it", ["Ullane", "the"], True),
        ("another answer", ["Brack"], False),
        ("a part of the name", ["River"], False),
        ("two names are two predictions", ["Ullane", "River Ullane"], False),
        ("two answers where there is one", ["Ullane", "Brack"], False),
        ("no predictions", [], False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_single_answer_is_exact_or_wrong(case: str, predictions: list[str], is_right: bool) -> None:
    assert is_exact(predictions, ULLANE) is is_right


def test_what_has_no_form_is_no_exact_answer() -> None:
    assert not is_exact(["!!!"], GoldNames("!!!"))
    assert not is_exact([""], GoldNames("The The"))


@pytest.mark.parametrize(
    ("predictions", "answers", "counts"),
    [
        (["Ullane", "Not Relevant", "not relevant."], [ULLANE], (1, 1, 1)),
        (["Not Relevant"], [ULLANE], (0, 0, 1)),
        (["Ullane", "Not Relevant"], [ULLANE, GoldNames("Not Relevant (song)", ("Not Relevant",))], (2, 2, 2)),
        (["Ullane", "relevant"], [ULLANE], (1, 2, 1)),
    ],
)
def test_not_relevant_is_no_prediction(
    predictions: list[str], answers: list[GoldNames], counts: tuple[int, int, int]
) -> None:
    assert score_list(predictions, answers) == ListScore(*counts)
    if len(answers) == 1:
        assert is_exact(predictions, answers[0]) is (counts == (1, 1, 1))
    raw = score_list(predictions, answers, raw_predictions=True)
    assert raw.predicted == len(predictions)  # the released script knows no such words


NAMES = st.sampled_from("abcde")  # "a" is an article, and no name
GOLD = st.builds(GoldNames, NAMES, st.lists(NAMES, max_size=3).map(tuple))
LISTS = st.tuples(st.lists(NAMES, max_size=5), st.lists(GOLD, min_size=1, max_size=4))


@given(LISTS)
def test_maximum_is_the_best_of_all_ways_to_deal_out(lists: tuple[list[str], list[GoldNames]]) -> None:
    predictions, answers = lists
    wanted = sorted(set(predictions) - {"a"})

    def dealt(order: tuple[int, ...]) -> int:
        return sum(
            name in (answers[i].text, *answers[i].aliases) for i, name in zip(order, wanted, strict=False) if i >= 0
        )

    places = [*range(len(answers)), *(-1 for _ in wanted)]
    best = max(map(dealt, set(permutations(places, len(wanted)))))
    assert score_list(predictions, answers, matching="maximum").covered == best
    greedy = score_list(predictions, answers).covered
    assert best / 2 <= greedy <= best


@given(LISTS, st.data())
def test_laws_of_a_score(lists: tuple[list[str], list[GoldNames]], data: st.DataObject) -> None:
    predictions, answers = lists
    score = score_list(predictions, answers, matching="maximum")
    assert 0 <= score.covered <= min(score.predicted, score.gold)
    if score.covered:
        harmonic = 2 * score.precision * score.recall / (score.precision + score.recall)
        assert score.f1 == pytest.approx(harmonic)
    assert score_list(data.draw(st.permutations(predictions)), answers, matching="maximum") == score
    assert score_list([f"The {prediction}!" for prediction in predictions], answers, matching="maximum") == score
    more = score_list([*predictions, data.draw(NAMES)], answers, matching="maximum")
    assert score.covered <= more.covered <= score.covered + 1


@given(st.lists(GOLD, min_size=1, max_size=6, unique_by=lambda answer: answer.text))
def test_predicting_the_answers_is_perfect(answers: list[GoldNames]) -> None:
    named = [answer for answer in answers if answer.text != "a"]
    score = score_list([answer.text for answer in named], answers, matching="maximum")
    assert (score.covered, score.predicted) == (len(named), len(named))


WRITTEN = st.sampled_from(
    ["Mercury", "mercury", "The Mercury!", "Sorn", "U.S.", "us", "Río", "RÍO", "x-y", "x y", "the", ""]
)
WRITTEN_GOLD = st.builds(GoldNames, WRITTEN, st.lists(WRITTEN, max_size=3).map(tuple))


@given(st.lists(WRITTEN, max_size=6), st.lists(WRITTEN_GOLD, min_size=1, max_size=5))
def test_greedy_as_slow_and_obvious_code_has_it(predictions: list[str], answers: list[GoldNames]) -> None:
    seen: set[str] = set()
    left = list(range(len(answers)))
    for form in map(answer_form, predictions):
        if form and form not in seen:
            seen.add(form)
            named = [
                i for i in left if form in {answer_form(alias) for alias in (answers[i].text, *answers[i].aliases)}
            ]
            left.remove(named[0]) if named else None
    assert score_list(predictions, answers) == (len(answers) - len(left), len(seen), len(answers))


@given(st.lists(WRITTEN, max_size=6), st.lists(WRITTEN_GOLD, min_size=1, max_size=5))
def test_all_quirks_together_are_the_released_script(predictions: list[str], answers: list[GoldNames]) -> None:
    names_of: dict[str, tuple[str, ...]] = {}
    for answer in answers:
        names_of[answer.text] = answer.aliases
    text_of: dict[str, str] = {}
    for text, names in names_of.items():
        for name in names:
            text_of[name] = text
    covered = set()
    for prediction in set(predictions):
        for name, text in text_of.items():
            if answer_form(name) == answer_form(prediction):
                covered.add(text)
                break

    score = score_list(predictions, answers, raw_predictions=True, listed_names=True, last_owner=True)
    assert score == (len(covered), len(set(predictions)), len(answers))


MIRAVEL = GoldNames("Lake Miravel", ("Lake Miravel", "the Mere"))


HALVANE = GoldNames("Halvane", ())


@pytest.mark.parametrize(
    ("case", "predictions", "answers", "score"),
    [
        ("an alias covers", ["ullane"], [ULLANE, MIRAVEL], (1, 1, 2)),
        ("a display text that is no alias covers", ["Halvane"], [HALVANE], (1, 1, 1)),
        ("articles and punctuation are nothing", ["The River Ullane.", "mere"], [ULLANE, MIRAVEL], (2, 2, 2)),
        ("no predictions", [], [ULLANE], (0, 0, 1)),
        ("only empty predictions", ["", "the", "..."], [ULLANE], (0, 0, 1)),
        ("a wrong prediction costs precision", ["Ullane", "Thames"], [ULLANE], (1, 2, 1)),
        ("one form is one prediction", ["Ullane", "ullane", "the Ullane!"], [ULLANE], (1, 1, 1)),
        ("two names of one answer are two predictions", ["Ullane", "River Ullane"], [ULLANE, HALVANE], (1, 2, 2)),
        ("answers of one text are two", ["Mercury"], [GoldNames("Mercury"), GoldNames("Mercury")], (1, 1, 2)),
        (
            "a shared name covers one answer, another name the other",
            ["Mercury", "Mercury (god)"],
            [GoldNames("Mercury"), GoldNames("Mercury (god)", ("Mercury",))],
            (2, 2, 2),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_counts_of_a_question(
    case: str, predictions: list[str], answers: list[GoldNames], score: tuple[int, int, int]
) -> None:
    assert score_list(predictions, answers) == score
