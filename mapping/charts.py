"""Charts as SVG: columns or bars of one or more series, readable in dark and light, with their values in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

STYLE = """
.chart{--ink:#1d2733;--faint:#586474;--grid:#dde3ea;--ground:#fff;
--series-0:#2b6a99;--series-1:#b8581b;--series-2:#5a7d2a;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media (prefers-color-scheme:dark){.chart{--ink:#e4e9f0;--faint:#a3afbd;--grid:#333d4a;--ground:#161c24;
--series-0:#74b0de;--series-1:#eb9a63;--series-2:#a5cc72}}
.chart text{fill:var(--ink)}.chart .faint{fill:var(--faint)}.chart .ground{fill:var(--ground)}
.chart line{stroke:var(--grid)}.chart .zero{stroke:var(--faint)}
.chart .level{stroke:var(--series-1);stroke-dasharray:5 3}
.chart .halo{paint-order:stroke;stroke:var(--ground);stroke-width:5px}
.chart .series-0{fill:var(--series-0)}.chart .series-1{fill:var(--series-1)}.chart .series-2{fill:var(--series-2)}
.chart .end{text-anchor:end}.chart .middle{text-anchor:middle}
""".strip()
"""Colours and type of every chart; what shows charts inside a page of its own has it there once."""

_WIDTH, _PLOT_HEIGHT, _TOP, _RIGHT, _LETTER = 540, 190, 34, 516, 6.6
_BAR, _GAP, _WIDEST_LABEL = 16, 8, 34


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one kind, in the order of the chart's labels; None where there is none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What is drawn.

    Attributes:
        title: what it is of.
        about: a sentence for those who cannot see it, and below it.
        label_name: what the labels are.
        labels: of columns from left to right, or of bars from top to bottom.
        series: at most three.
        style: ``columns`` for what is in order, as bins are; ``bars`` for what has names.
        is_share: values are shares, 0 to 1, and shown in per cent.
        level: a line across columns: its value and name.
    """

    title: str
    about: str
    label_name: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    style: Literal["columns", "bars"] = "columns"
    is_share: bool = False
    level: tuple[float, str] | None = None


def number_text(value: float) -> str:
    """Gives a number for reading, with thousands separators and at most two decimals.

    >>> number_text(1234), number_text(0.5), number_text(-2.0), number_text(1234.567)
    ('1,234', '0.5', '-2', '1,234.57')
    """
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def share_text(value: float) -> str:
    """Gives a share in per cent.

    >>> share_text(0.12345), share_text(1)
    ('12.3 %', '100.0 %')
    """
    return f"{value:.1%}".replace("%", " %")


def svg(chart: Chart, *, name: str = "chart", is_alone: bool = True) -> str:
    """Gives a chart as SVG.

    Args:
        chart: what is drawn.
        name: prefix of its ids, unique in a page.
        is_alone: it is a file of its own: with style, ground and title to see.
    """
    height, drawn = (_columns if chart.style == "columns" else _bars)(chart)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-labelledby="{name}-title {name}-about">',
        f'<title id="{name}-title">{escape(chart.title)}</title>',
        f'<desc id="{name}-about">{escape(chart.about)}</desc>',
    ]
    if is_alone:
        head += [f"<style>{STYLE}</style>", '<rect class="ground" width="100%" height="100%"/>']
        head.append(_text(_WIDTH / 2, 14, chart.title, "middle"))
    return "\n".join([*head, *_legend(chart), *drawn, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(text)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{kind}"/>'


def _rect(x: float, y: float, width: float, height: float, number: int, said: str) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} class="series-{number}"><title>{escape(said)}</title></rect>'


def _legend(chart: Chart) -> Iterator[str]:
    x = 8.0
    for number, series in enumerate(chart.series if len(chart.series) > 1 else ()):
        yield f'<circle cx="{x + 5:.1f}" cy="22" r="5" class="series-{number}"/>'
        yield _text(x + 15, 26, series.name)
        x += 15 + _LETTER * len(series.name) + 24


def _said(chart: Chart, value: float) -> str:
    return share_text(value) if chart.is_share else number_text(value)


def _ticks(values: list[float]) -> list[float]:
    """Gives round numbers from at most the least value and 0 to at least the greatest, whole ones of whole ones.

    >>> _ticks([0.0, 7.0]), _ticks([-12.0, 30.0]), _ticks([2]), _ticks([])
    ([0.0, 2.0, 4.0, 6.0, 8.0], [-20.0, -10.0, 0.0, 10.0, 20.0, 30.0], [0.0, 1.0, 2.0], [0.0, 1.0])
    """
    least, most = min([0.0, *values]), max([0.0, *values])
    if least == most:
        return [0.0, 1.0]
    size = 10.0 ** math.floor(math.log10((most - least) / 4))
    step = size * next(times for times in (1, 2, 2.5, 5, 10) if (most - least) / (times * size) <= 5)
    if all(isinstance(value, int) for value in values):
        step = max(step, 1.0)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _scale(chart: Chart) -> list[float]:
    values = [value for series in chart.series for value in series.values if value is not None]
    return _ticks([*values, *([chart.level[0]] if chart.level else [])])


def _columns(chart: Chart) -> tuple[int, Iterator[str]]:
    return _TOP + _PLOT_HEIGHT + 44, _column_parts(chart)


def _column_parts(chart: Chart) -> Iterator[str]:
    ticks = _scale(chart)
    names = [_said(chart, tick) for tick in ticks]
    left = 16 + _LETTER * max(map(len, names))
    bottom, unit = _TOP + _PLOT_HEIGHT, _PLOT_HEIGHT / (ticks[-1] - ticks[0])
    for tick, tick_name in zip(ticks, names, strict=True):
        y = bottom - (tick - ticks[0]) * unit
        yield _line(left, y, _RIGHT, y, "" if tick else "zero")
        yield _text(left - 6, y + 4, tick_name, "faint end")
    zero = bottom + ticks[0] * unit
    step = (_RIGHT - left) / max(len(chart.labels), 1)
    width = step * 0.8 / len(chart.series)
    every = math.ceil(len(chart.labels) * _LETTER * (1 + max(map(len, chart.labels), default=0)) / (_RIGHT - left))
    for place, label in enumerate(chart.labels):
        x = left + place * step
        if place % max(every, 1) == 0:
            yield _text(x + step / 2, bottom + 16, label, "middle")
        for number, series in enumerate(chart.series):
            if (value := series.values[place]) is None:
                continue
            own, y = x + step * 0.1 + number * width, zero - max(value, 0) * unit
            said = _said(chart, value)
            yield _rect(own, y, width, abs(value) * unit, number, f"{label}: {said}")
            if value and len(said) * _LETTER < width + 4:
                yield _text(own + width / 2, y - 4, said, "faint middle")
    yield _text((left + _RIGHT) / 2, bottom + 36, chart.label_name, "faint middle")
    if chart.level is not None:
        y = zero - chart.level[0] * unit
        yield _line(left, y, _RIGHT, y, "level")
        yield _text(_RIGHT, y - 4, chart.level[1], "end halo")


def _bars(chart: Chart) -> tuple[int, Iterator[str]]:
    row = _BAR * len(chart.series) + _GAP
    return 8 + (_TOP if len(chart.series) > 1 else 8) + row * len(chart.labels), _bar_parts(chart, row)


def _bar_parts(chart: Chart, row: int) -> Iterator[str]:
    top, ticks = (_TOP if len(chart.series) > 1 else 8), _scale(chart)
    shown = [label if len(label) <= _WIDEST_LABEL else f"{label[: _WIDEST_LABEL - 1]}…" for label in chart.labels]
    left = 16 + _LETTER * max(map(len, shown), default=0)
    unit = (_WIDTH - left - 70) / ticks[-1]
    for place, label in enumerate(shown):
        y = top + place * row
        yield _text(left - 8, y + (row - _GAP) / 2 + 4, label, "end")
        for number, series in enumerate(chart.series):
            if (value := series.values[place]) is None:
                continue
            said, own = _said(chart, value), y + number * _BAR
            yield _rect(left, own, value * unit, _BAR - 2, number, f"{chart.labels[place]}: {said}")
            yield _text(left + value * unit + 6, own + 11, said, "faint")
    yield _line(left, top, left, top + row * len(shown) - _GAP, "zero")
