"""Draws the picture of the README, a record of FEVER aligned to the demo's release: ``python docs/picture.py DEMO``.

``DEMO`` is the folder that ``kbsource demo`` wrote. The picture is ``docs/alignment.svg``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mapping.inspector.marking import TextPiece, changed_words

PICTURE = Path(__file__).with_name("alignment.svg")
RECORD = "2001"
"""The record that is drawn: its sentence has changed since the dataset was made."""
_LINE, _CHARACTERS, _WIDTH = 22, 84, 780
_STYLES = {"old": 'fill="#b42318" text-decoration="line-through"', "new": 'fill="#067647" font-weight="bold"'}


def picture(alignment: Path, record_id: str = RECORD) -> str:
    """Returns the SVG of a record's first piece of evidence: old text, new text, and the words that changed."""
    row = next(row for row in _rows(alignment / "alignments") if row["example_id"] == record_id)
    (written,) = alignment.glob("*-kilt.jsonl")
    records = map(json.loads, written.read_text("utf-8").splitlines())
    claim = next(record["input"] for record in records if record["id"] == record_id)
    old, new = changed_words(row["evidence_text"], row["text"])
    place = f"element {row['start_element']}, characters {row['start_char']} to {row['end_char']}"
    lines: list[tuple[str, str]] = [("bold", escape(f"FEVER {record_id}: {claim}"))]
    lines.append(("label", "Evidence in the dataset"))
    lines += [("text", line) for line in _wrapped(old, "old")]
    lines.append(("label", escape(f"Found in the release: {row['title']} (page {row['page_id']}), {place}")))
    lines += [("text", line) for line in _wrapped(new, "new")]
    lines.append(("label", f"outcome {row['outcome']}, BLEU {row['score']:.4f}"))
    return _svg(lines)


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.parquet")):
        yield from pq.read_table(path).to_pylist()


def _wrapped(pieces: Iterable[TextPiece], style: str) -> Iterator[str]:
    """Yields lines of SVG, broken between words."""
    line, width = "", 0
    for piece in pieces:
        for word in piece.text.replace(" ", " \0").split("\0"):
            if width + len(word.rstrip()) > _CHARACTERS:
                yield line
                line, width = "", 0
            line += f"<tspan {_STYLES[style]}>{escape(word)}</tspan>" if piece.is_marked else escape(word)
            width += len(word)
    yield line


def _svg(lines: list[tuple[str, str]]) -> str:
    height = _LINE * len(lines) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        ' role="img" aria-label="A record of FEVER, its old evidence, and where the release has it">',
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d5dd"/>',
    ]
    looks = {
        "bold": 'font-size="16" font-weight="bold" font-family="sans-serif" fill="#101828"',
        "label": 'font-size="13" font-family="sans-serif" fill="#667085"',
        "text": 'font-size="14" font-family="monospace" fill="#101828"',
    }
    for number, (look, text) in enumerate(lines):
        place = f'x="20" y="{34 + number * _LINE}"'
        parts.append(f'<text {place} {looks[look]} xml:space="preserve">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    PICTURE.write_text(picture(Path(sys.argv[1]) / "aligned" / "fever" / "dev"), "utf-8")


if __name__ == "__main__":
    main()
