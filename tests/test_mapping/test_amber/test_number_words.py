"""Numbers in words are inflect's, which is imported without its type checks."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

from mapping.amber.sets import number_in_words

_WORDS = """
import json, sys
from mapping.amber.sets import number_in_words

print(json.dumps([[number_in_words(amount) for amount in json.load(sys.stdin)], "typeguard" in sys.modules]))
"""
_CHECKED = """
import json, sys
import inflect

def words(amount):
    try:
        return [inflect.engine().number_to_words(amount)]
    except inflect.NumOutOfRangeError:
        return []

print(json.dumps([[words(amount) for amount in json.load(sys.stdin)], "typeguard" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0", "zero"),
        ("1066", "one thousand and sixty-six"),
        ("20345", "twenty thousand, three hundred and forty-five"),
        ("007", "seven"),
        ("3.140", "three point one four zero"),
        ("1" + "0" * 35, "one hundred decillion"),
        ("1" + "0" * 36, None),
        ("1e3", None),
        ("-1", None),
        ("", None),
    ],
)
def test_numbers_in_words(amount: str, words: str | None) -> None:
    assert number_in_words(amount) == (() if words is None else (words,))


def _printed(program: str, amounts: list[str]) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(amounts).encode(), stdout=subprocess.PIPE, check=True
    )
    printed: list[object] = json.loads(done.stdout)
    return printed


@pytest.mark.slow  # the type checks take two seconds
def test_words_are_the_same_without_type_checks() -> None:
    random = Random(7)
    digits = ["".join(random.choices("0123456789", k=length)) for length in range(1, 40) for _ in range(20)]
    amounts = [
        *map(str, range(1200)),
        *digits,
        *(f"{whole}.{part}" for whole, part in zip(digits, digits[::-1], strict=True)),
    ]

    words, is_checked = _printed(_WORDS, amounts)

    assert not is_checked
    assert _printed(_CHECKED, amounts) == [words, True]
