from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.wikitext.expander import render_use
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.numbers import parse_number, plain_minus, round_digits
from kbsource.wikitext.functions.units import find_unit, output_units, subunits_in
from kbsource.wikitext.templates import split_template
from tests.support.real_data import real_path

_TEXT = re.compile(rb"<text[^>]*>(.*?)</text>", re.DOTALL)
_USE = re.compile(r"\{\{\s*(?:convert|cvt)\s*\|[^{}]*\}\}", re.IGNORECASE)
_OUTPUT_ONLY = ("output only", "output number only", "number", "out")


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("1,250.5", 1250.5, "1,250.5"),
        ("−3", -3.0, "−3"),
        ("&minus;3", -3.0, "−3"),
        (".5", 0.5, "0.5"),
        ("1/2", 0.5, "1⁄2"),
        ("2+1/2", 2.5, "2+1⁄2"),
        ("2-1/2", 2.5, "2+1⁄2"),
        ("2½", 2.5, "2½"),
        ("1.2e6", 1.2e6, "1.2×10⁶"),
        (" 12\x02", 12.0, "12"),
    ],
)
def test_numbers_as_templates_write_them(text: str, value: float, shown: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert number.value == pytest.approx(value)
    assert number.shown == shown


@pytest.mark.parametrize("text", ["", "abc", "12 km", "1-", "1/0", "1.2.3", "9" * 60])
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("code", "symbol", "scale"),
    [
        ("km", "km", 1000.0),
        ("km2", "km²", 1e6),
        ("hm", "hm", 100.0),
        ("GW", "GW", 1e9),
        ("e6acre", "acre", 4046.8564224e6),
        ("kg/ha", "kg/ha", 1e-4),
        ("MW", "MW", 1e6),
        ("mW", "mW", 1e-3),
    ],
)
def test_units_by_code(code: str, symbol: str, scale: float) -> None:
    unit = find_unit(code)
    assert unit is not None
    assert unit.symbol == symbol
    assert unit.scale == pytest.approx(scale)


def test_units_of_one_measure() -> None:
    feet, inches, pounds = (find_unit(code) for code in ("ft", "in", "lb"))
    assert feet is not None
    assert inches is not None
    assert pounds is not None
    assert subunits_in(feet, inches) == 12
    assert subunits_in(feet, pounds) == 0
    assert [[unit.code for unit in units] for units in output_units("km ftin")] == [["km"], ["ft", "in"]]


def test_default_outputs_are_units() -> None:
    for code in ("m", "km", "kg", "lb", "t", "C", "psi", "hp", "L", "USgal", "mpgUS", "N.m", "kWh", "kn", "ha"):
        unit = find_unit(code)
        assert unit is not None
        outputs = output_units(unit.default)
        assert outputs, code
        assert {element.kind for units in outputs for element in units} == {unit.kind}


@given(st.floats(min_value=1e-6, max_value=1e12), st.integers(min_value=-6, max_value=8))
def test_rounding_is_never_off_by_more_than_half_a_place(value: float, precision: int) -> None:
    error = abs(float(round_digits(value, precision)) - value)
    assert error <= 0.5 * 10.0**-precision * (1 + 1e-6) + 1e-9 * value + 1e-13


@given(
    st.floats(min_value=-1e6, max_value=1e6, allow_nan=False),
    st.sampled_from([("km", "mi"), ("kg", "lb"), ("C", "F"), ("ft", "m"), ("ha", "acre"), ("hp", "kW")]),
    st.integers(min_value=0, max_value=4),
)
def test_a_measure_says_its_input_and_the_right_output(value: float, units: tuple[str, str], decimals: int) -> None:
    written = f"{value:.3f}"
    template = Template("Convert", (written, *units, str(decimals)), {"abbr": "on", "comma": "off"})
    text = plain_minus(render_use(template, PageFacts("en")).wikitext)
    match = re.fullmatch(r"(-?[\d.]+) (\S+) \((-?[\d.]+) (\S+)\)", text.replace("\u00a0", " "))
    assert match is not None, text
    assert float(match.group(1)) == float(written)
    source, target = find_unit(units[0]), find_unit(units[1])
    assert source is not None
    assert target is not None
    if source.offset is None or target.offset is None:
        wanted = float(written) * source.scale / target.scale
    else:
        wanted = (float(written) - source.offset) * source.scale / target.scale + target.offset
    assert math.isclose(float(match.group(3)), wanted, rel_tol=1e-9, abs_tol=0.51 * 10.0**-decimals)


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))


def test_no_number_of_a_real_convert_vanishes() -> None:
    import bz2
    import html

    path = real_path("dumps/gensim_enwiki-p10p30302-shortened.xml.bz2")
    page = PageFacts("en", timestamp="2016-02-19T12:00:00Z")
    n_uses = 0
    for match in _TEXT.finditer(bz2.decompress(path.read_bytes())):
        for use in _USE.findall(html.unescape(match.group(1).decode("utf-8"))):
            template = split_template(use[2:-2])
            assert template is not None
            if template.named.get("disp") in _OUTPUT_ONLY:
                continue
            n_uses += 1
            rendering = render_use(template, page)
            said = _numbers(rendering.wikitext)
            assert rendering.outcome == "rendered"
            for argument in template.positional:
                if parse_number(argument) is None:
                    break
                assert _numbers(argument)[0] in said, (use, rendering.wikitext)
    assert n_uses > 400
