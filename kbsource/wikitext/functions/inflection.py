"""Forms of words, by language: plural forms after a number, and grammatical cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from kbsource.wikitext.functions.arguments import read_rules
from kbsource.wikitext.functions.numbers import number_text, unformat_number

_LONGEST_WORD = 255  # in characters, as for titles; patterns are not searched in longer words
_LONGEST_NUMBER = 40  # in digits; of a longer number, the last digits decide
_EXPLICIT = re.compile(r"\d+=")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,2}))?", re.ASCII)
_RELATION = re.compile(r"([nivft])(?: % (\d+))? (!?)= ([\d.,]+)")


class _Relation(NamedTuple):
    """A condition on a number, such as ``n % 10 = 2..4,9``."""

    operand: str
    modulus: int  #: 0 without modulus
    is_not: bool
    ranges: tuple[tuple[int, int], ...]  #: first and last whole number

    def holds(self, operands: dict[str, float]) -> bool:
        value = operands[self.operand]
        if self.modulus:
            value %= self.modulus
        is_within = value == int(value) and any(first <= value <= last for first, last in self.ranges)
        return is_within != self.is_not


_Rule = tuple[tuple[_Relation, ...], ...]
"""A condition: one of these clauses must hold, with all of its relations."""


def _relation(written: str) -> _Relation:
    match = _RELATION.fullmatch(written)
    assert match is not None, written
    ends = [(piece.partition("..")[0], piece.rpartition("..")[2]) for piece in match[4].split(",")]
    return _Relation(
        match[1], int(match[2] or 0), bool(match[3]), tuple((int(first), int(second)) for first, second in ends)
    )


@cache
def _tables() -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Returns conditions of plural forms by language, and patterns of cases."""
    data = read_rules("inflection")
    plurals = {lang: tuple(row["forms"]) for row in data["plural"] for lang in row["langs"].split()}
    return plurals, data["grammar"]


@cache
def _plural_rules(lang: str) -> tuple[_Rule, ...]:
    plurals = _tables()[0]
    conditions = next(
        (plurals[code] for code in (lang, lang.partition("-")[0]) if code in plurals), ("i = 1 and v = 0",)
    )
    return tuple(
        tuple(tuple(map(_relation, clause.split(" and "))) for clause in condition.split(" or "))
        for condition in conditions
    )


def plural_index(number: str, lang: str) -> int:
    """Returns the index of the form, from 0, used with a plain number: ``1``, ``-2``, ``1.5``.

    >>> [plural_index(number, "ru") for number in ("1", "2", "5", "21", "1.5")]
    [0, 1, 2, 0, 3]
    """
    if "E" in number:
        number = f"{float(number):.0f}"
    whole, _, decimals = number.lstrip("+-").partition(".")
    whole, decimals = whole[-_LONGEST_NUMBER:], decimals[:_LONGEST_NUMBER]
    integer, fraction = int(whole or 0), int(decimals or 0)
    shown = decimals.rstrip("0")
    operands: dict[str, float] = {
        "n": float(f"{integer}.{shown}") if shown else integer,
        "i": integer,
        "v": len(decimals),
        "f": fraction,
        "t": int(shown or 0),
    }
    rules = _plural_rules(lang)
    for index, rule in enumerate(rules):
        if any(all(relation.holds(operands) for relation in clause) for clause in rule):
            return index
    return len(rules)


def plural_form(written: str, forms: Sequence[str], lang: str) -> str:
    """Returns the form for a number written in the language; ``12=dozen`` applies only to that number.

    Source: convertPlural of MediaWiki 1.39.
    """
    match = _NUMBER.match(unformat_number(written[: 2 * _LONGEST_NUMBER], lang))
    number = "0"
    if match is not None:
        is_plain = match[0].isdecimal()
        number = match[0].lstrip("0") or "0" if is_plain else number_text(float(match[0]))
    others: list[str] = []
    for form in forms:
        if _EXPLICIT.match(form):
            key, _, value = form.partition("=")
            if key == number:
                return value
        else:
            others.append(form)
    if not others:
        return ""
    return others[min(plural_index(number, lang), len(others) - 1)]


def inflect(word: str, case: str, lang: str) -> str:
    """Returns a word in a case, by MediaWiki's name of the case; the word itself if there is no rule for it.

    >>> inflect("русский", "languageadverb", "ru")
    'по-русски'
    """
    if len(word) > _LONGEST_WORD:
        return word
    for pattern, replacement in _tables()[1].get(lang, {}).get(case, ()):
        if found := re.search(pattern, word):
            return word[: found.start()] + found.expand(replacement) + word[found.end() :]
    return word
