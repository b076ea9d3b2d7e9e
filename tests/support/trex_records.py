"""Documents of T-REx and entities of Wikidata made up for a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mapping.records import Example
from mapping.sources.reading.base import Split
from mapping.sources.trex import TrexOptions
from tests.support.dataset_sources import Reading, read_source

ITEM, PROPERTY = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


DATE = "^^http://www.w3.org/2001/XMLSchema#dateTime"


ALL = TrexOptions(min_facts=1)


def trex_part(uri: str, surface: str | None = None) -> dict[str, Any]:
    return {"uri": uri, "boundaries": [0, 1] if surface else None, "surfaceform": surface, "annotator": "x"}


def trex_triple(
    subject: str, relation: str, object_: str, sentence: int | None = 0, /, **surfaces: str
) -> dict[str, Any]:
    return {
        "subject": trex_part(ITEM + subject, surfaces.get("subject")),
        "predicate": trex_part(PROPERTY + relation, surfaces.get("relation")),
        "object": trex_part(object_ if "^^" in object_ else ITEM + object_, surfaces.get("object")),
        "sentence_id": sentence,
        "dependency_path": None,
        "confidence": None,
        "annotator": "Simple-Aligner",
    }


def trex_document(item: str, *triples: Any, sentences: tuple[str, ...] = ("One.", "Two.", "Three.")) -> dict[str, Any]:
    bounds, at = [], 0
    for sentence in sentences:
        bounds.append([at, at + len(sentence)])
        at += len(sentence) + 1
    return {
        "docid": ITEM + item,
        "title": f"Page {item}",
        "uri": ITEM + item,
        "text": " ".join(sentences),
        "sentences_boundaries": bounds,
        "words_boundaries": [],
        "entities": [],
        "triples": list(triples),
    }


def labelled_entity(name: str, label: str | None = None, *aliases: str) -> dict[str, Any]:
    return {
        "type": "property" if name[0] == "P" else "item",
        "id": name,
        "labels": {"en": {"language": "en", "value": label or f"label {name}"}},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else [],
    }


NAMED = [labelled_entity(name) for name in ("Q1", "Q2", "Q3", "Q4", "P1", "P2")]


def read_trex(
    folder: Path,
    documents: list[Any],
    entities: list[Any],
    *,
    split: Split = "train",
    options: TrexOptions = ALL,
    is_checked: bool = True,
) -> Reading:
    (folder / "re-nlg_0.json").write_text(
        "[" + ",\n".join(one if isinstance(one, str) else json.dumps(one) for one in documents) + "]"
    )
    lines = [one if isinstance(one, str) else json.dumps(one) for one in entities]
    (folder / "wikidata.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    wikidata = folder / "wikidata.json"
    return read_source("trex", folder, wikidata, split=split, options=options, is_checked=is_checked)


def answers_with_sentences(example: Example) -> list[tuple[str | None, list[str | None]]]:
    return [(output.answer, [one.text for one in output.evidence]) for output in example.outputs]
