"""Documents of T-REx: DBpedia abstracts with the triples of Wikidata that their sentences state.

Source: https://hadyelsahar.github.io/t-rex/ (form of the JSON files; the annotators that aligned the triples).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from mapping.sources.reading.examples import ExclusionError
from mapping.sources.reading.fields import Json, is_integer, list_at, objects_at, text_at
from mapping.sources.reading.files_in import MAX_RECORD_BYTES, RawRecord

_ITEM = re.compile(r"https?://www\.wikidata\.org/(?:entity|wiki)/(Q[1-9][0-9]{0,17})")
_PROPERTY = re.compile(r".*/(P[1-9][0-9]{0,17})")
_LITERAL = "^^"
# Its triples stand in no sentence.
_NO_ALIGNER = "No-Aligner"


class TrexDocument(NamedTuple):
    """One abstract.

    Attributes:
        item: Wikidata's id of what its page is about, ``Q`` and a number.
        title: of its page.
        text: of the abstract.
        sentences: start and end of each sentence in the text, as written.
        triples: as written.
    """

    item: str
    title: str
    text: str
    sentences: list[Any]
    triples: list[Json]

    def sentence(self, number: int) -> str:
        """Gives the text of a sentence.

        Raises:
            RecordError: ``unknown_sentence``, ``wrong_type``.
        """
        if not 0 <= number < len(self.sentences):
            raise RecordError("unknown_sentence", f"{self.title!r} has {len(self.sentences)} sentences, no {number}")
        bounds = self.sentences[number]
        if not (isinstance(bounds, list) and len(bounds) == 2 and all(map(is_integer, bounds))):
            raise RecordError("wrong_type", f"a sentence's boundaries are two integers, found {repr(bounds)[:80]}")
        start, end = bounds
        if not 0 <= start <= end <= len(self.text):
            raise RecordError("unknown_sentence", f"{self.title!r} has {len(self.text)} characters, not {bounds}")
        return self.text[start:end]


class TrexMention(NamedTuple):
    """A fact where a sentence states it.

    Attributes:
        subject, relation: Wikidata's ids.
        object: the same, or a literal as written.
        sentence: number in its document.
        surfaces: words of the sentence for subject, relation and object; None for what it does not name.
    """

    subject: str
    relation: str
    object: str
    sentence: int
    surfaces: tuple[str | None, str | None, str | None]


def parse_document(raw: RawRecord) -> TrexDocument:
    """Gives a document.

    Raises:
        RecordError: ``malformed_json``, ``missing_field``, ``record_too_long``, ``unknown_uri``, ``wrong_type``.
    """
    if len(raw.data) > MAX_RECORD_BYTES:
        raise RecordError("record_too_long", f"more than {MAX_RECORD_BYTES} bytes")
    try:
        value = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", f"{error} in {raw.data[:80]!r}") from error
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"expected an object, found {repr(value)[:80]}")
    return TrexDocument(
        _item(text_at(value, "docid" if "docid" in value else "uri")),
        text_at(value, "title"),
        text_at(value, "text"),
        list_at(value, "sentences_boundaries"),
        objects_at(value, "triples"),
    )


def mention_of(triple: Json) -> TrexMention:
    """Gives the mention that a triple is.

    Raises:
        ExclusionError: ``no_sentence``.
        RecordError: ``missing_field``, ``unknown_uri``, ``wrong_type``.
    """
    sentence = triple.get("sentence_id")
    if sentence is None or triple.get("annotator") == _NO_ALIGNER:
        raise ExclusionError("no_sentence")
    if not is_integer(sentence):
        raise RecordError("wrong_type", f"'sentence_id': expected an integer, found {repr(sentence)[:80]}")
    subject, relation, object_ = (_part(triple, name) for name in ("subject", "predicate", "object"))
    written = text_at(object_, "uri")
    return TrexMention(
        _item(text_at(subject, "uri")),
        _property(text_at(relation, "uri")),
        written if _LITERAL in written else _item(written),
        sentence,
        (_surface(subject), _surface(relation), _surface(object_)),
    )


def literal_value(written: str) -> str | None:
    """Gives the value of a literal without its type; None for an item.

    >>> literal_value("1821-05-04T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime")
    '1821-05-04T00:00:00Z'
    """
    value, mark, _ = written.rpartition(_LITERAL)
    return value if mark else None


def _part(triple: Json, name: str) -> Json:
    value = triple.get(name)
    if not isinstance(value, dict):
        raise RecordError("missing_field" if name not in triple else "wrong_type", f"{name!r} of a triple is an object")
    return value


def _surface(part: Json) -> str | None:
    surface = part.get("surfaceform")
    if surface is not None and not isinstance(surface, str):
        raise RecordError("wrong_type", f"'surfaceform': expected a string, found {repr(surface)[:80]}")
    return surface or None


def _item(uri: str) -> str:
    return _id(_ITEM, uri, "item")


def _property(uri: str) -> str:
    return _id(_PROPERTY, uri, "property")


def _id(pattern: re.Pattern[str], uri: str, kind: str) -> str:
    found = pattern.fullmatch(uri)
    if found is None:
        raise RecordError("unknown_uri", f"{uri[:200]!r} is no {kind} of Wikidata")
    return found[1]
