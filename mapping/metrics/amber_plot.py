"""Popularity gaps and accuracy, drawn as SVG."""

from __future__ import annotations

from mapping.metrics.amber import BIN_PERCENT, N_BINS, AmberScores

_WIDTH, _HEIGHT, _LEFT, _TOP = 480, 240, 60, 30
_TEXT = '<text x="{}" y="{}" text-anchor="middle" font-family="sans-serif" font-size="11">{}</text>'


def gap_plot(scores: AmberScores) -> str:
    """Gives a bar for each bin: by how many points the heads' queries have the higher accuracy; a line for all sets."""
    gap = scores.to_json()["popularity_gap"]
    shown = [one["difference"] for one in gap["bins"]] + [gap["all"]]
    top = max([10.0, *(abs(value) for value in shown if value is not None)])
    has_negative = any(value is not None and value < 0 for value in shown)
    unit = _HEIGHT / (top * (2 if has_negative else 1))
    zero, step = _TOP + top * unit, _WIDTH / N_BINS
    parts = [_TEXT.format(_LEFT + _WIDTH / 2, 16, "accuracy@1 of head less tail, in points, by gap in popularity")]
    for number, value in enumerate(shown[:-1]):
        x = _LEFT + (number + 0.5) * step
        ends = f"{number * BIN_PERCENT}–{(number + 1) * BIN_PERCENT} %" if number < N_BINS - 1 else "≥ 80 %"
        parts.append(_TEXT.format(round(x, 1), _TOP + _HEIGHT + 18, ends))
        if value is not None:
            y, height = zero - max(value, 0) * unit, abs(value) * unit
            bar = f'<rect x="{x - step * 0.3:.1f}" y="{y:.1f}" width="{step * 0.6:.1f}" height="{height:.1f}"'
            parts += [f'{bar} fill="#4878a8"/>', _TEXT.format(round(x, 1), f"{y - 4:.1f}", f"{value:.1f}")]
    lines = [(zero, "#000", "0")]
    if gap["all"] is not None:
        lines.append((zero - gap["all"] * unit, "#c44", f"all {gap['all']:.1f}"))
    for y, colour, name in lines:
        line = f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_LEFT + _WIDTH}" y2="{y:.1f}" stroke="{colour}"/>'
        parts += [line, _TEXT.format(_LEFT / 2, f"{y + 4:.1f}", name)]
    size = f'width="{_LEFT + _WIDTH + 10}" height="{_TOP + _HEIGHT + 30}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([*head, *parts, "</svg>", ""])
