"""Which examples Hypothesis draws."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples

DRAWN: list[int] = []


@given(st.integers())
def draw(number: int) -> None:
    DRAWN.append(number)


def test_every_run_draws_the_same_examples() -> None:
    assert settings().derandomize
    assert settings.get_current_profile_name() == "same"
    draw()
    first = DRAWN.copy()
    DRAWN.clear()
    draw()
    assert first == DRAWN


def test_fuzzing_draws_others_and_more_and_says_how_to_repeat_a_failure() -> None:
    fuzz = settings.get_profile("fuzz")
    assert not fuzz.derandomize
    assert fuzz.print_blob
    assert fuzz.max_examples == 20 * settings().max_examples
    assert examples(30) == 30
