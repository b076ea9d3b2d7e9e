"""Arithmetic of ``{{#expr:}}``.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions#.23expr, operators and their precedence.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

from kbsource.wikitext.functions.measures.numbers import plain_minus

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|([a-z]+)|(<=|>=|!=|<>|[-+*/^()<>=]))\s*")
_MAX_LENGTH = 2000  # tokens; an article's expressions have a few dozen
_BINARY: dict[str, tuple[int, Callable[[float, float], float]]] = {
    "^": (8, lambda left, right: math.pow(left, right)),
    "*": (7, operator.mul),
    "/": (7, operator.truediv),
    "div": (7, operator.truediv),
    "mod": (7, lambda left, right: math.fmod(int(left), int(right))),
    "fmod": (7, math.fmod),
    "+": (6, operator.add),
    "-": (6, operator.sub),
    "round": (5, lambda left, right: _round(left, int(right))),
    "=": (4, lambda left, right: float(left == right)),
    "!=": (4, lambda left, right: float(left != right)),
    "<>": (4, lambda left, right: float(left != right)),
    "<": (4, lambda left, right: float(left < right)),
    ">": (4, lambda left, right: float(left > right)),
    "<=": (4, lambda left, right: float(left <= right)),
    ">=": (4, lambda left, right: float(left >= right)),
    "and": (3, lambda left, right: float(bool(left) and bool(right))),
    "or": (2, lambda left, right: float(bool(left) or bool(right))),
}
_UNARY: dict[str, Callable[[float], float]] = {
    "-": operator.neg,
    "+": operator.pos,
    "not": lambda value: float(not value),
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)),
    "floor": lambda value: float(math.floor(value)),
    "trunc": lambda value: float(math.trunc(value)),
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
}
_UNARY_RANK = 9
_CONSTANTS = {"pi": math.pi, "e": math.e}


def _round(value: float, digits: int) -> float:
    scale = 10.0 ** max(min(digits, 20), -20)
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-12), value) / scale


def evaluate(text: str) -> float | None:
    """Gives the value of an expression; None when it is none or has no finite value."""
    tokens = _tokens(plain_minus(text).lower())
    if tokens is None or not tokens:
        return None
    try:
        value = _run(tokens)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return value if value is not None and math.isfinite(value) else None


def _tokens(text: str) -> list[str | float] | None:
    tokens: list[str | float] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= _MAX_LENGTH:
            return None
        number, word, sign = match.groups()
        if number is not None:
            tokens.append(float(number))
        elif word is not None:
            tokens.append(_CONSTANTS.get(word, word))
        else:
            tokens.append(sign)
        position = match.end()
    return tokens


def _run(tokens: list[str | float]) -> float | None:
    """Runs Dijkstra's shunting yard; None when operands and operators do not fit together."""
    values: list[float] = []
    waiting: list[tuple[int, str]] = []  # (rank, operator); unary ones have _UNARY_RANK, brackets 0

    def reduce() -> bool:
        rank, name = waiting.pop()
        if rank == _UNARY_RANK:
            if not values:
                return False
            values.append(_UNARY[name](values.pop()))
            return True
        if len(values) < 2:
            return False
        right = values.pop()
        values.append(_BINARY[name][1](values.pop(), right))
        return True

    expects_operand = True
    for token in tokens:
        if isinstance(token, float):
            if not expects_operand:
                return None
            values.append(token)
            expects_operand = False
        elif token == "(":
            if not expects_operand:
                return None
            waiting.append((0, token))
        elif token == ")":
            while waiting and waiting[-1][0]:
                if not reduce():
                    return None
            if not waiting or expects_operand:
                return None
            waiting.pop()
        elif expects_operand:
            if token not in _UNARY:
                return None
            waiting.append((_UNARY_RANK, token))
        else:
            if token not in _BINARY:
                return None
            rank = _BINARY[token][0]
            while waiting and waiting[-1][0] >= rank:
                if not reduce():
                    return None
            waiting.append((rank, token))
            expects_operand = True
    while waiting:
        if not waiting[-1][0] or not reduce():
            return None
    return values[0] if len(values) == 1 else None


def number_text(value: float) -> str:
    """Gives a value as MediaWiki prints it: whole numbers without a point, at most 14 significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.14g}".replace("e+", "E+").replace("e-", "E-")
