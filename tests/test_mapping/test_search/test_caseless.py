"""Names are found exactly where re.IGNORECASE finds them."""

from __future__ import annotations

import re
import sys
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.search.caseless import find_whole, fold_case

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
ODD = "iIİıſsSKkKßẞςσΣµμΜͅιΙᾈẛṡﬅﬆꙋᲈÅåΩωǅǆǄ_ -.'a1٣é"


def test_folding_keeps_every_code_point_in_its_place() -> None:
    assert all(len(fold_case(one)) == 1 for one in EVERY)
    every = "".join(EVERY)
    assert all(one == fold_case(alone) for one, alone in zip(fold_case(every), EVERY, strict=True))


def test_every_code_point_matches_what_it_is_folded_to() -> None:
    for start in range(0, len(EVERY), 1 << 12):
        part = "".join(EVERY[start : start + (1 << 12)])
        assert re.fullmatch(re.escape(part), fold_case(part), re.IGNORECASE)
        assert re.fullmatch(re.escape(fold_case(part)), part, re.IGNORECASE)


def test_code_points_match_exactly_those_that_are_folded_alike() -> None:
    alike = defaultdict(set)
    for one in EVERY:
        alike[fold_case(one)].add(one)
    groups = [group for group in alike.values() if len(group) > 1]
    assert len(groups) > 1300
    changed = {one for group in groups for one in group}
    changing = "".join(sorted(changed))
    for group in groups:
        for one in group:
            assert set(re.findall(re.escape(one), changing, re.IGNORECASE)) == group
    # No other code point is matched by these, or has a lower case but itself.
    others = "".join(one for one in EVERY if one not in changed)
    assert not re.search(f"[{re.escape(changing)}]", others, re.IGNORECASE)
    assert all(one.lower() == one for one in others)


@pytest.mark.parametrize(
    ("name", "text", "starts"),
    [
        ("Kelvin", "300 \u212aelvin", [4]),
        ("IZMIR", "in İzmır", [3]),
        ("ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ", [0]),
        ("straße", "STRAẞE, STRASSE", [0]),
        ("Ullan", "Ullane, Ullan, _Ullan, Ullan2, ullan", [8, 31]),
        ("a a", "a a a a", [0, 4]),
        ("aa", "aaa aa", [4]),
        ("-a", "b-a -a", [4]),
    ],
)
def test_whole_names_are_found(name: str, text: str, starts: list[int]) -> None:
    assert list(find_whole(fold_case(name), text, fold_case(text))) == starts


@given(st.text(ODD, min_size=1, max_size=4), st.text(ODD, max_size=30))
def test_the_same_as_by_regular_expression(name: str, text: str) -> None:
    expected = [found.span() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    found = [(start, start + len(name)) for start in find_whole(fold_case(name), text, fold_case(text))]
    assert found == expected


@given(st.text(min_size=1, max_size=5), st.text(max_size=30))
def test_the_same_as_by_regular_expression_for_any_letters(name: str, text: str) -> None:
    text = f"{text} {name.swapcase()} {name}"
    expected = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    assert list(find_whole(fold_case(name), text, fold_case(text))) == expected
