"""Rules that decide which alignments are kept: ``bleu>=0.7 or entailment>=0.9``.

A rule is a Python expression built only from ``signal compare number``, ``and``, ``or``, ``not`` and parentheses; case
does not matter. If an alignment lacks a signal, every comparison with that signal is false.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from kbsource.errors import SetupError

SIGNALS = ("bleu", "entailment", "neutral", "contradiction")

_COMPARES = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_NODES = dict(zip((ast.GtE, ast.Gt, ast.LtE, ast.Lt), _COMPARES.values(), strict=True))
_TOKEN = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)|[A-Za-z_]+|>=|<=|\S")
_SIGNAL = f"one of {', '.join(SIGNALS)}"
_COMPARE = f"one of {' '.join(_COMPARES)}"
_NUMBER = "a number from 0 to 1"
_NEXT = "'and', 'or' or the end"
_DEEPEST = 50


class Rule(NamedTuple):
    """A parsed rule."""

    tree: ast.expr

    def holds(self, signals: Mapping[str, float | None]) -> bool:
        """Returns whether the signals satisfy the rule."""
        return _holds(self.tree, signals)

    def signals(self) -> frozenset[str]:
        """Returns the signals that the rule uses."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))


def read_rule(text: str) -> Rule:
    """Parses a rule.

    Raises:
        SetupError: the text is not a rule. The message names the position, the text found there, and the expected text.

    >>> rule = read_rule("bleu>=0.7 or entailment>=0.9")
    >>> rule.holds({"bleu": 0.3, "entailment": 0.95}), rule.holds({"bleu": 0.3, "entailment": None})
    (True, False)
    """
    return Rule(ast.parse(" ".join(_checked(text)), mode="eval").body)


def check_signals(text: str, labels: Mapping[str, int | None], *, model: str) -> None:
    """Checks that a model reports every signal that a rule compares.

    ``labels`` are the labels of the model, as in ``ModelLabels`` of ``mapping.entail``. Raises SetupError if a signal
    is missing, since comparisons with it would always be false.
    """
    unknown = [name for name in sorted(read_rule(text).signals()) if name in labels and labels[name] is None]
    if not unknown:
        return
    told = [name for name in SIGNALS if labels.get(name) is not None]
    if len(told) < (labels["n_outputs"] or 0):
        told.append("not_entailment")
    raise SetupError(
        f"--accept {text!r}: {model} does not report {' or '.join(unknown)}, only {', '.join(told)}. "
        f"Remove {' and '.join(unknown)} from the rule, or give --model a model that reports entailment, neutral and "
        "contradiction."
    )


def _checked(text: str) -> Iterator[str]:
    """Reads a rule token by token and refuses what Python's grammar allows but rules do not."""
    expected, opened = _SIGNAL, [""]  # the open parentheses and ``not`` around the next signal
    for found in (*_TOKEN.finditer(text), None):
        token = found[0].lower() if found else ""
        if expected == _SIGNAL and len(opened) > _DEEPEST:
            raise _fault(text, found, f"at most {_DEEPEST} levels")
        if expected == _SIGNAL and token in ("not", "("):
            opened.append(token)
        elif expected == _SIGNAL and token in SIGNALS:
            expected = _COMPARE
        elif expected == _COMPARE and token in _COMPARES:
            expected = _NUMBER
        elif expected == _NUMBER and found and found["number"] and float(token) <= 1:
            expected, token = _NEXT, str(float(token))  # 01 is not a number in Python
        elif expected == _NEXT and token in ("and", "or"):
            expected = _SIGNAL
        elif expected == _NEXT and token == ")" and opened[-1] == "(":
            opened.pop()
        elif expected != _NEXT or found or opened[-1]:
            raise _fault(text, found, "')'" if expected == _NEXT and opened[-1] else expected)
        while expected == _NEXT and opened[-1] == "not":
            opened.pop()
        yield token


def _fault(text: str, found: re.Match[str] | None, expected: str) -> SetupError:
    column = found.start() + 1 if found else len(text.rstrip()) + 1
    seen = f"found {found[0]!r}" if found else "it ends"
    near = get_close_matches(found[0].lower(), SIGNALS, 1) if found and expected == _SIGNAL else ()
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SetupError(
        f"--accept {text!r}: at column {column} {expected} is expected, {seen}.{hint} "
        'Example: --accept "bleu>=0.7 or entailment>=0.9"'
    )


def _holds(node: ast.AST, signals: Mapping[str, float | None]) -> bool:
    match node:
        case ast.BoolOp(op=ast.And(), values=terms):
            return all(_holds(term, signals) for term in terms)
        case ast.BoolOp(values=terms):
            return any(_holds(term, signals) for term in terms)
        case ast.UnaryOp(operand=term):
            return not _holds(term, signals)
        case ast.Compare(left=ast.Name(id=name), ops=[compare], comparators=[ast.Constant(value=float(bound))]):
            value = signals.get(name)
            return value is not None and _NODES[type(compare)](value, bound)
    raise AssertionError(node)  # _checked rejects everything else
