"""Rules that say which alignments are kept: ``bleu>=0.7 or entailment>=0.9``.

::

    rule       = both { "or" both }
    both       = term { "and" term }
    term       = "not" term | "(" rule ")" | signal compare number
    signal     = "bleu" | "entailment" | "neutral" | "contradiction"
    compare    = ">=" | ">" | "<=" | "<"
    number     = 0 … 1

A signal that an alignment does not have meets no comparison.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

from kbsource.errors import SetupError

SIGNALS = ("bleu", "entailment", "neutral", "contradiction")
Signals = Mapping[str, float | None]

_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)|(?P<word>[A-Za-z_]+)|(?P<sign>>=|<=|[<>()]))")
_DEEPEST = 50


class Rule(Protocol):
    """A rule that was read."""

    def holds(self, signals: Signals) -> bool:
        """Says whether the signals meet it."""
        ...

    def signals(self) -> frozenset[str]:
        """Gives the signals that it looks at."""
        ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """``signal compare bound``."""

    signal: str
    compare: str
    bound: float

    def holds(self, signals: Signals) -> bool:
        value = signals.get(self.signal)
        return value is not None and _COMPARES[self.compare](value, self.bound)

    def signals(self) -> frozenset[str]:
        return frozenset((self.signal,))


@dataclass(frozen=True, slots=True)
class Every:
    """All of some rules."""

    rules: tuple[Rule, ...]

    def holds(self, signals: Signals) -> bool:
        return all(rule.holds(signals) for rule in self.rules)

    def signals(self) -> frozenset[str]:
        return frozenset().union(*(rule.signals() for rule in self.rules))


@dataclass(frozen=True, slots=True)
class Either:
    """One of some rules, or more."""

    rules: tuple[Rule, ...]

    def holds(self, signals: Signals) -> bool:
        return any(rule.holds(signals) for rule in self.rules)

    def signals(self) -> frozenset[str]:
        return frozenset().union(*(rule.signals() for rule in self.rules))


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary of a rule."""

    rule: Rule

    def holds(self, signals: Signals) -> bool:
        return not self.rule.holds(signals)

    def signals(self) -> frozenset[str]:
        return self.rule.signals()


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def read_rule(text: str) -> Rule:
    """Gives the rule that a text states.

    Raises:
        SetupError: it is none; the message has the place, what stands there and what was expected.

    >>> rule = read_rule("bleu>=0.7 or entailment>=0.9")
    >>> rule.holds({"bleu": 0.3, "entailment": 0.95}), rule.holds({"bleu": 0.3, "entailment": None})
    (True, False)
    """
    return _Reader(text).read()


def check_signals(text: str, labels: Mapping[str, int | None], *, model: str) -> None:
    """Looks whether a model tells all that a rule compares.

    Args:
        text: of the rule.
        labels: place of each of the model's labels among its outputs, None for those it does not have, and
            ``n_outputs``; as ``mapping.entail.model_labels.Labels`` has them.
        model: its name, for messages.

    Raises:
        SetupError: it does not, so that a comparison is never met.
    """
    compared = read_rule(text).signals()
    unknown = [name for name in sorted(compared) if name in labels and labels[name] is None]
    if not unknown:
        return
    told = [name for name in SIGNALS if labels.get(name) is not None]
    if len(told) < (labels["n_outputs"] or 0):
        told.append("not_entailment")
    are = "is" if len(unknown) == 1 else "are"
    raise SetupError(
        f"--accept {text!r}: {', '.join(unknown)} {are} never known, for {model} tells {', '.join(told)} alone. "
        "Leave it out of the rule, or give --verify a model that tells entailment, neutral and contradiction."
    )


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def read(self) -> Rule:
        rule = self._rule()
        if self._peek().kind != "end":
            self._fail("'and', 'or' or the end")
        return rule

    def _split(self) -> list[_Token]:
        tokens, position = [], 0
        text = self._text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                column = position + len(text[position:]) - len(text[position:].lstrip())
                tokens.append(_Token("stray", text[column], column + 1))
                break
            kind = found.lastgroup
            tokens.append(_Token(kind, found[kind], found.start(kind) + 1))
            position = found.end()
        return [*tokens, _Token("end", "", len(text) + 1)]

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        if self._peek().text.lower() != text:
            return False
        self._next += 1
        return True

    def _rule(self) -> Rule:
        rules = [self._both()]
        while self._takes("or"):
            rules.append(self._both())
        return rules[0] if len(rules) == 1 else Either(tuple(rules))

    def _both(self) -> Rule:
        rules = [self._term()]
        while self._takes("and"):
            rules.append(self._term())
        return rules[0] if len(rules) == 1 else Every(tuple(rules))

    def _term(self) -> Rule:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(f"at most {_DEEPEST} levels")
        try:
            if self._takes("not"):
                return Not(self._term())
            if self._takes("("):
                rule = self._rule()
                if not self._takes(")"):
                    self._fail("')'")
                return rule
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Rule:
        if self._peek().text.lower() not in SIGNALS:
            self._fail(f"one of {', '.join(SIGNALS)}")
        signal = self._take().text.lower()
        if self._peek().text not in _COMPARES:
            self._fail(f"one of {' '.join(_COMPARES)}")
        compare = self._take().text
        if self._peek().kind != "number" or float(self._peek().text) > 1:
            self._fail("a number from 0 to 1")
        return Comparison(signal, compare, float(self._take().text))

    def _fail(self, expected: str) -> NoReturn:
        token = self._peek()
        found = f"found {token.text!r}" if token.text else "it ends"
        raise SetupError(
            f"--accept {self._text!r}: at column {token.column} {expected} is expected, {found}. "
            'Example: --accept "bleu>=0.7 or entailment>=0.9"'
        )
