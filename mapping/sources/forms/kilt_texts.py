"""Paragraphs of the knowledge source that a KILT file was made for, by page id."""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson

from kbsource.errors import RecordError
from kbsource.files import Storage, join
from kbsource.kilt_names import LEAD
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import MANIFEST
from mapping.search.numbering import Numbering, paragraphs_of
from mapping.sources.reading.fields import text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_lines

OldPage = tuple[list[str], list[str]]
"""Paragraphs of a page, the title in front, and the section of each, without newline."""
Paragraphs = Callable[[str], OldPage | None]
"""Page id -> paragraphs, None for an unknown page."""

# A record of the released file begins with its id, so that most need not be parsed.
_ID_IN_FRONT = re.compile(rb'\{"_id": ?"([0-9]+)", ?"wikipedia_id": ?"\1"')


def is_release(path: str, storage: Storage) -> bool:
    """Says whether a path is a release of this project, rather than a file with KILT's own knowledge source."""
    return storage.exists(join(path, MANIFEST))


def check_knowledge_source(path: str, storage: Storage) -> None:
    """Looks at the beginning of what a KILT file is said to be made for.

    Raises:
        SetupError: it is neither a finished release nor KILT's knowledge source.
    """
    if is_release(path, storage):
        KnowledgeSource.open(path, storage).close()
        return
    check_shape(
        path,
        iter_lines(storage, path),
        lambda record: {"wikipedia_id", "text"} <= record.keys() and isinstance(record["text"], list),
        expected="the folder of a finished release, or kilt_knowledgesource.json: one JSON object a line with"
        " wikipedia_id and text, a list of paragraphs",
    )


def release_paragraphs(source: KnowledgeSource, numbering: Numbering) -> Paragraphs:
    """Gives a look-up in a release, whose spans count paragraphs so."""

    def paragraphs(page_id: str) -> OldPage | None:
        page = source.by_id(int(page_id)) if page_id.isascii() and page_id.isdecimal() else None
        return None if page is None else paragraphs_of(page, numbering)

    return paragraphs


def id_and_paragraphs(raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
    """Gives page id and paragraphs of a record of KILT's knowledge source.

    Raises:
        RecordError: ``malformed_json``, ``missing_field``, ``wrong_type``.
    """
    found = _ID_IN_FRONT.match(raw.data)
    if found:
        return found[1].decode("ascii"), lambda: _paragraphs(_parsed(raw))
    record = _parsed(raw)
    return text_at(record, "wikipedia_id"), lambda: _paragraphs(record)


def _parsed(raw: RawRecord) -> dict[str, object]:
    try:
        record = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", str(error)) from error
    if not isinstance(record, dict):
        raise RecordError("wrong_type", "a page is an object")
    return record


def _paragraphs(record: dict[str, object]) -> bytes:
    texts = record.get("text")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RecordError("wrong_type", "'text' of a page is a list of strings")
    return orjson.dumps(texts)


def stored_paragraphs(text: bytes | None) -> OldPage | None:
    """Gives the paragraphs that ``id_and_paragraphs`` stored, with their sections."""
    if text is None:
        return None
    texts, sections = orjson.loads(text), [LEAD]
    for one in texts:
        sections.append(one.rstrip("\n") if one.startswith("Section::::") else sections[-1])
    return texts, sections[1:]
