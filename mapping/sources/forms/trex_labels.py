"""English labels and aliases out of Wikidata's JSON dump, read once, front to back.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html (form of entities; one a line in dumps).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.sources.reading.base import Tally
from mapping.sources.reading.examples import keep_texts
from mapping.sources.reading.fields import Json, text_at
from mapping.sources.reading.files_in import RawRecord, iter_lines
from mapping.sources.reading.scratch import Scratch

_LANGUAGES = ("en", "mul")
"""English, then what Wikidata says once for all languages, which English readers see where there is nothing else."""
_HEAD = re.compile(rb'\{\s*(?:"type"\s*:\s*"[a-z]+"\s*,\s*)?"id"\s*:\s*"([A-Z][0-9]+)"')


class EntityLabels(NamedTuple):
    """What English readers see an entity called: its label, and other names in their order."""

    label: str
    aliases: tuple[str, ...]


def iter_entities(storage: Storage, path: str) -> Iterator[RawRecord]:
    """Gives the entities of a dump, one a line; the array's brackets and commas are no part of them."""
    for raw in iter_lines(storage, path):
        data = raw.data.strip(b"[], \t")
        if data:
            yield raw._replace(data=data)


def keep_labels(files: Iterable[Iterable[RawRecord]], *, scratch: Scratch, tally: Tally) -> Iterator[BadRecord]:
    """Keeps the labels of wanted entities; gives the entities that cannot be used."""
    return keep_texts(files, key_and_text=_id_and_labels, scratch=scratch, tally=tally)


def labels_of(entity: str, scratch: Scratch) -> EntityLabels | None:
    """Gives the labels that were kept of an entity; None where it is unknown or has no English label."""
    kept = scratch.get(entity)
    if kept is None:
        return None
    label, aliases = orjson.loads(kept)
    return None if label is None else EntityLabels(label, tuple(aliases))


def english(entity: Json) -> tuple[str | None, list[str]]:
    """Gives label and aliases of an entity, each alias once.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    labels, aliases = _terms(entity, "labels"), _terms(entity, "aliases")
    found = [labels[language] for language in _LANGUAGES if language in labels]
    others = [other for language in _LANGUAGES for other in aliases.get(language, ())]
    return (
        _value(found[0]) if found else None,
        list(dict.fromkeys(map(_value, others))),
    )


def _terms(entity: Json, key: str) -> dict[str, Any]:
    """Gives an entity's terms by language; PHP writes an object without any as a list."""
    value = entity.get(key) or {}
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"{key!r}: expected an object, found {repr(value)[:80]}")
    return value


def _value(term: object) -> str:
    if not isinstance(term, dict):
        raise RecordError("wrong_type", f"a term is an object, found {repr(term)[:80]}")
    return text_at(term, "value")


def _id_and_labels(raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
    # Nearly all entities are of no use here, and their ids can be seen without parsing them.
    if head := _HEAD.match(raw.data):
        return head[1].decode("ascii"), lambda: orjson.dumps(english(_parsed(raw)))
    entity = _parsed(raw)
    return text_at(entity, "id"), lambda: orjson.dumps(english(entity))


def _parsed(raw: RawRecord) -> Json:
    try:
        entity = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", str(error)) from error
    if not isinstance(entity, dict):
        raise RecordError("wrong_type", "an entity is an object")
    return entity
