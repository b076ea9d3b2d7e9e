"""The TSV form of entity-linking datasets: a token a line, documents one after the other.

Columns: token, ``B`` or ``I``, whole mention, YAGO entity or ``--NME--``, address of the page, its number, Freebase id.
Lines of mentions without a page end after the fourth. A line with fewer columns is an ordinary token, a blank line
ends a sentence, ``-DOCSTART- (<id>)`` begins a document.

Source: the README of AIDA-YAGO2-dataset.tsv, https://www.mpi-inf.mpg.de/yago-naga/aida.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kbsource.errors import RecordError
from mapping.sources.reading.files_in import RawRecord

DOCSTART = "-DOCSTART-"
NO_ENTITY = "--NME--"
_N_COLUMNS_WITHOUT_PAGE = 4
_N_COLUMNS = 6


@dataclass(slots=True)
class TokenMention:
    """A mention at tokens ``[start, end)`` of its document; ``url`` None where it has no page."""

    start: int
    end: int
    text: str
    url: str | None
    raw: RawRecord


@dataclass(slots=True)
class TokenDocument:
    """A document of a TSV.

    Attributes:
        doc_id: as in its first line; None where tokens come before any, or the line names none.
        tokens: in order; empty for a blank line.
        mentions: in order.
        problems: lines that could not be used, with the reason.
    """

    doc_id: str | None
    tokens: list[str] = field(default_factory=list)
    mentions: list[TokenMention] = field(default_factory=list)
    problems: list[tuple[RawRecord, RecordError]] = field(default_factory=list)


def iter_documents(lines: Iterable[RawRecord]) -> Iterator[TokenDocument]:
    """Gives the documents of a TSV, one at a time.

    Args:
        lines: all lines of the file, blank ones included.
    """
    document = TokenDocument(None)
    is_open = False
    for raw in lines:
        try:
            line = raw.text()
        except RecordError as error:
            document.problems.append((raw, error))
            is_open = False
            continue
        if line.startswith(DOCSTART):
            yield document
            document = _begin(raw, line)
            is_open = False
            continue
        columns = line.split("\t")
        tag = columns[1] if len(columns) >= _N_COLUMNS_WITHOUT_PAGE else ""
        try:
            mention = _mention(columns, tag, raw, at=len(document.tokens))
        except RecordError as error:
            document.problems.append((raw, error))
            mention = None
            tag = ""
        if mention is not None:
            document.mentions.append(mention)
            is_open = True
        elif tag == "I" and is_open:
            document.mentions[-1].end += 1
        else:
            is_open = False
        document.tokens.append(columns[0].strip())
    yield document


def _begin(raw: RawRecord, line: str) -> TokenDocument:
    rest = line.removeprefix(DOCSTART).strip()
    doc_id = rest[rest.find("(") + 1 : rest.rfind(")")].strip() if rest.endswith(")") and "(" in rest else ""
    if doc_id:
        return TokenDocument(doc_id)
    error = RecordError("malformed_docstart", f"expected {DOCSTART} (<id>), found {line[:80]!r}")
    return TokenDocument(None, problems=[(raw, error)])


def _mention(columns: list[str], tag: str, raw: RawRecord, *, at: int) -> TokenMention | None:
    """Gives the mention that a line opens, None where it opens none."""
    if not tag and len(columns) < _N_COLUMNS_WITHOUT_PAGE:
        if len(columns) > 1 and columns[1].strip() in ("B", "I"):
            raise RecordError("missing_column", f"an annotated line with {len(columns)} columns")
        return None
    if tag not in ("B", "I"):
        raise RecordError("bad_tag", f"expected B or I, found {tag!r}")
    if tag == "I":
        return None
    if columns[3].strip() == NO_ENTITY or len(columns) == _N_COLUMNS_WITHOUT_PAGE:
        return TokenMention(at, at + 1, columns[2], None, raw)
    if len(columns) < _N_COLUMNS or not columns[4].strip():
        raise RecordError("missing_column", f"a mention with {len(columns)} columns, or without an address")
    return TokenMention(at, at + 1, columns[2], columns[4].strip(), raw)
