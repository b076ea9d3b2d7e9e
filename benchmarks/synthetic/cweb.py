"""Generates WNED-CWEB as XML with its texts: 40 annotations in a text of 2.5 KB, a fifth NIL, one in ten thousand
misplaced.

The size includes XML and texts; a third of it is texts. Half of the documents belong to the split that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_text

_ANNOTATIONS = 40
_TOKENS = 8
_TEXT_SHARE = 1 / 3


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes annotations and texts with this number of bytes."""
    texts = folder / "RawText"
    texts.mkdir(parents=True, exist_ok=True)
    path = write_text(folder / "clueweb.xml", _pieces(Words("cweb"), texts), n_bytes=int(n_bytes * (1 - _TEXT_SHARE)))
    with open(path, "a", encoding="utf-8") as file:
        file.write("</clueweb12.entityAnnotation>\n")
    return Synthetic("cweb", "dev", (path,), (str(texts),))


def _pieces(words: Words, texts: Path) -> Iterator[str]:
    rng = words.rng
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<clueweb12.entityAnnotation>\n'
    n_annotations = 0
    for number in count():
        name = f"clueweb12-{number:07}"
        text, annotations = "", []
        for _ in range(_ANNOTATIONS):
            n_annotations += 1
            text += words.text(_TOKENS) + " "
            mention = words.text(2)
            offset = len(text) + (n_annotations % 10_000 == 0)
            text += mention + " "
            title = "NIL" if rng.random() < 0.2 else words.title(rng.randrange(1_000_000))
            annotations.append(
                f"\t\t<annotation>\n\t\t\t<mention>{mention}</mention>\n\t\t\t<wikiName>{title}</wikiName>\n"
                f"\t\t\t<offset>{offset}</offset>\n\t\t\t<length>{len(mention)}</length>\n\t\t</annotation>\n"
            )
        (texts / name).write_text(text, encoding="utf-8")
        yield f'\t<document docName="{name}">\n{"".join(annotations)}\t</document>\n'
