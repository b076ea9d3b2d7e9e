"""A passage as a line of what retrievers read.

Source: Pyserini's JsonCollection (``id``, ``contents``; its encoders part ``contents`` at the newline into title and
text) and DPR's ``psgs_w100.tsv`` (columns ``id``, ``text``, ``title``, as Python's csv reads them with a tab).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from mapping.passages.cut import Passage

_ODD_IN_TSV = frozenset('"\t\r\n')


@dataclass(frozen=True, slots=True)
class LineForm:
    """A form of lines.

    Attributes:
        meaning: what reads it.
        folder: in the corpus.
        suffix: of its files.
        head: first line of a file, with its newline; empty without one.
        is_joined: all lines stand in one file, since its readers take one.
        line: gives a passage's line, with its newline.
    """

    meaning: str
    folder: str
    suffix: str
    head: bytes
    is_joined: bool
    line: Callable[[Passage], bytes]


def pyserini_line(passage: Passage) -> bytes:
    """Gives ``id`` and ``contents``: the title, a newline, the text."""
    return orjson.dumps({"id": passage.passage_id, "contents": f"{passage.title}\n{passage.text}"}) + b"\n"


def dpr_line(passage: Passage) -> bytes:
    """Gives id, text and title with tabs between; in quotes what has quotes or tabs in it."""
    return tsv_line(passage.passage_id, passage.text, passage.title)


def tsv_line(*values: str) -> bytes:
    """Gives values as a line of a table with tabs, as the csv module reads it: in quotes what has quotes, tabs or line
    ends in it (which of them that module itself sees to is not the same in each of its versions).

    >>> tsv_line("1", 'the "Sorn"', "A")
    b'1\\t"the ""Sorn\"""\\tA\\n'
    """
    return ("\t".join(map(_quoted, values)) + "\n").encode()


def _quoted(value: str) -> str:
    if _ODD_IN_TSV.isdisjoint(value):
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


FORMS: Mapping[str, LineForm] = {
    "pyserini": LineForm("JSON Lines for Pyserini and Anserini", "pyserini", "jsonl", b"", False, pyserini_line),
    "dpr": LineForm(
        "a TSV file for DPR and FiD", "dpr", "tsv", tsv_line("id", "text", "title"), is_joined=True, line=dpr_line
    ),
}
"""Forms by name."""
