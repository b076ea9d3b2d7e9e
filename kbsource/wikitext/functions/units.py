"""Units of measurement: looked up by the codes of ``{{convert}}``, with SI prefixes and quotients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

from kbsource.wikitext.functions.arguments import read_rules, table

_MULTIPLES = {"e3": "thousand", "e6": "million", "e9": "billion", "e12": "trillion", "e15": "quadrillion"}
_LONGEST_CODE = 48  # in characters; longer codes are not looked up
_OUTPUT_BREAKS = (" ", "+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement."""

    code: str  #: as written in the template
    kind: str  #: only units of the same kind can be converted into each other (``length``)
    scale: float  #: size in base units of the kind
    symbol: str  #: ``km``, ``sq mi``; a power is a raised digit
    #: ``name``, ``plural``: British spelling
    name: str
    plural: str
    default: str = ""  #: code of the output if the template names none; may be empty
    offset: float | None = None  #: value of absolute zero in this unit; None if it is not a temperature scale
    more: str = ""  #: ``integer`` or ``subunit``, exceptions to the rounding rule
    is_symbol_only: bool = False  #: shown by its symbol even if names are requested
    is_inverse: bool = False  #: value and size are inverse (litres per 100 km)
    #: word for the power of ten that the value is counted in (``million``), else empty
    multiple: str = ""
    power: int = 0  #: the power of ten of ``multiple`` (6)
    us_name: str = ""  #: American name; empty if it follows from the spelling rule
    symbol_plural: str = ""

    def american(self, name: str) -> str:
        """Returns one of the unit's names in American spelling."""
        if self.us_name:
            return self.us_name if name == self.name else self.us_name + "s"
        return name.replace("metre", "meter").replace("litre", "liter")


@cache
def _table() -> tuple[dict[str, Unit], dict[str, int], dict[str, tuple[str, ...]]]:
    """Returns units by code and alias, the power of SI prefixes by code, and the combined output codes."""
    units: dict[str, Unit] = {}
    prefixable: dict[str, int] = {}
    combinations: dict[str, tuple[str, ...]] = {}
    for kind, entries in read_rules("units").items():
        for code, entry in entries.items():
            if kind == "combinations":
                combinations[code] = tuple(entry)
                continue
            scale, symbol, name, default, facts = entry
            own = {"plural": f"{name}s"} | {key: facts[key] for key in facts if key not in ("aliases", "si")}
            unit = Unit(code=code, kind=kind, scale=float(scale), symbol=symbol, name=name, default=default, **own)
            for known in (code, *facts.get("aliases", ())):
                units.setdefault(known, unit)
                if "si" in facts:
                    prefixable.setdefault(known, int(facts["si"]))
    return units, prefixable, combinations


def find_unit(code: str) -> Unit | None:
    """Returns the unit that a code names: ``km``, ``e6acre``, ``mW``, ``kg/m2``; None for an unknown code."""
    return _find_unit(code) if len(code) <= _LONGEST_CODE else None


@lru_cache(maxsize=1 << 13)
def _find_unit(code: str) -> Unit | None:
    code = code.strip().replace("&nbsp;", " ").replace("\u00a0", " ")
    if not code:
        return None
    units, prefixable, _ = _table()
    found = units.get(code)
    if found is not None:
        return found
    if code[0] == "e" and code[1:2].isdecimal():
        digits = code[1:3] if code[1:3].isdecimal() else code[1:2]
        word = _MULTIPLES.get("e" + digits)
        base = find_unit(code[1 + len(digits) :]) if word else None
        if base is not None and word is not None:
            default = f"e{digits}{base.default}" if base.default and " " not in base.default else base.default
            scale = base.scale * 10.0 ** int(digits)
            return replace(base, code=code, scale=scale, multiple=word, power=int(digits), default=default)
        return None
    for length in (1, 2):
        prefix = table("si_prefixes").get(code[:length])
        base = units.get(code[length:]) if prefix else None
        if prefix and base and code[length:] in prefixable:
            return _prefixed(base, prefix, prefixable[code[length:]])
    if "/" in code:
        top, _, bottom = code.rpartition("/")
        over, under = find_unit(top), find_unit(bottom)
        if over is not None and under is not None and over.offset is None:
            return Unit(
                code=code,
                kind=f"{over.kind}/{under.kind}",
                scale=over.scale / under.scale,
                symbol=f"{over.symbol}/{under.symbol}",
                name=f"{over.name} per {under.name}",
                plural=f"{over.plural} per {under.name}",
                default=_quotient_default(over, under),
            )
    return None


def _prefixed(base: Unit, prefix: tuple[str, str, int], power: int) -> Unit:
    symbol, word, exponent = prefix
    plain = base.name.rpartition(" ")
    name = f"{plain[0]} {word}{plain[2]}".strip()
    return replace(
        base,
        code=symbol + base.code,
        scale=base.scale * 10.0 ** (exponent * power),
        symbol=symbol + base.symbol,
        name=name,
        plural=name + "s",
        us_name="",
    )


def _quotient_default(over: Unit, under: Unit) -> str:
    """Returns the default output of a quotient, made of the default outputs of both parts; empty if a part has none. A
    unit of time stays as it is.
    """
    top = over.default.split(" ")[0]
    if under.kind == "time":
        return f"{top}/{under.code}" if top else ""
    bottom = under.default.split(" ")[0]
    return f"{top}/{bottom}" if top and bottom else ""


def output_units(code: str) -> tuple[tuple[Unit, ...], ...]:
    """Returns the outputs that a code names: ``km nmi`` is two outputs of a single unit, ``ftin`` is one of two units;
    empty if unknown.
    """
    return _output_units(code) if len(code) <= _LONGEST_CODE else ()


@lru_cache(maxsize=1 << 13)
def _output_units(code: str) -> tuple[tuple[Unit, ...], ...]:
    code = code.strip()
    _, _, combinations = _table()
    if code in combinations:
        units = tuple(unit for unit in map(find_unit, combinations[code]) if unit is not None)
        return (units,) if len(units) == len(combinations[code]) else ()
    unit = find_unit(code)
    if unit is not None:
        return ((unit,),)
    code = code.replace("L/100 km", "L/100km")
    for separator in _OUTPUT_BREAKS:
        if separator in code:
            parts = [output_units(part) for part in code.split(separator) if part.strip()]
            if parts and all(parts):
                return tuple(text for part in parts for text in part)
    return ()


@cache
def subunits_in(first: Unit, second: Unit) -> int:
    """Returns how many of the second unit are in the first, if both form one measure (ft and in: 12), else 0."""
    _, _, combinations = _table()
    for codes in combinations.values():
        for over, under in pairwise(codes):
            if first.code == over and second.code == under:
                return round(first.scale / second.scale)
    if first.kind == second.kind == "mass" and first.code in ("LT", "ST", "long cwt") and second.scale < first.scale:
        return round(first.scale / second.scale)
    return 0
