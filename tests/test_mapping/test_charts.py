"""Charts as SVG."""

from __future__ import annotations

import doctest
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from mapping import charts
from mapping.charts import Chart, Series, svg

_SVG = "{http://www.w3.org/2000/svg}"


def chart(*series: tuple[float | None, ...], **changed: Any) -> Chart:
    named = tuple(Series(f"series {number}", values) for number, values in enumerate(series))
    labels = tuple(f"l{number}" for number in range(len(series[0]))) if series else ()
    return Chart(**{"title": "T", "about": "A.", "label_name": "l", "labels": labels, "series": named, **changed})


def bars(drawn: Chart) -> list[dict[str, float]]:
    """Gives the rectangles of values, with their numbers."""
    found = ET.fromstring(svg(drawn, is_alone=False)).findall(f"{_SVG}rect")
    return [{name: float(rect.attrib[name]) for name in ("x", "y", "width", "height")} for rect in found]


def test_examples() -> None:
    assert doctest.testmod(charts).failed == 0


def test_columns_are_as_high_as_their_values_and_stand_on_zero() -> None:
    one, two, less = bars(chart((1, 2, -1)))
    assert two["height"] == pytest.approx(2 * one["height"], abs=0.2)
    zero = one["y"] + one["height"]
    assert two["y"] + two["height"] == pytest.approx(zero, abs=0.2)
    assert (less["y"], less["height"]) == (pytest.approx(zero, abs=0.2), one["height"])


@pytest.mark.parametrize("style", ["columns", "bars"])
def test_every_series_has_its_bars_and_what_is_not_known_has_none(style: Any) -> None:
    drawn = chart((1, None, 3), (4, 5, None), style=style)
    assert len(bars(drawn)) == 4
    assert svg(drawn).count("<circle") == 2  # the legend


@pytest.mark.parametrize("style", ["columns", "bars"])
@pytest.mark.parametrize("values", [(), (0,), (None,), (0, 0, 0), (1e9, 1)])
def test_nothing_nought_and_the_greatest_are_drawn_within_the_picture(values: Any, style: Any) -> None:
    drawn = chart(values, style=style)
    width, height = map(float, ET.fromstring(svg(drawn)).attrib["viewBox"].split()[2:])
    for bar in bars(drawn):
        assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= width
        assert 0 <= bar["y"] <= bar["y"] + bar["height"] <= height


def test_what_cannot_be_seen_is_said() -> None:
    root = ET.fromstring(svg(chart((1,)), name="c"))
    assert (root.attrib["role"], root.attrib["aria-labelledby"]) == ("img", "c-title c-about")
    assert [root.findtext(f"{_SVG}{tag}") for tag in ("title", "desc")] == ["T", "A."]


def test_hostile_names_stay_text() -> None:
    hostile = '</text><script>alert("1")</script>&'
    text = svg(chart((1,), (2,), title=hostile, about=hostile, labels=(hostile,), label_name=hostile))
    assert "<script" not in text
    assert hostile in (ET.fromstring(text).findtext(f"{_SVG}title") or "")


def test_a_file_of_its_own_has_a_style_and_a_page_has_it_once_for_all() -> None:
    assert "<style>" in svg(chart((1,)))
    assert "prefers-color-scheme:dark" in svg(chart((1,)))
    assert "<style>" not in svg(chart((1,)), is_alone=False)


def test_labels_that_would_overlap_are_left_out() -> None:
    labels = tuple(f"{number}–{number + 1}" for number in range(200))
    shown = [text.text for text in ET.fromstring(svg(chart(tuple(range(200)), labels=labels))).iter(f"{_SVG}text")]
    assert 5 < sum(text in labels for text in shown) < 30


def test_a_level_is_a_line_with_its_name() -> None:
    assert '<line x1="' in svg(chart((1,), level=(2.0, "all 2.0")))
    assert "all 2.0</text>" in svg(chart((1,), level=(2.0, "all 2.0")))
