"""Generates documents of T-REx of about 5 kB: three to five sentences, a dozen entities, about seven triples.

Half of the triples are about the document's own page, and half of these have a random page as object. One triple in ten
is not stated by a sentence, one in twenty names no item of Wikidata, and one in twenty has a date as object. A few
facts are in the abstracts of a hundred pages. One document in ten thousand is truncated. Wikidata has one line for each
page and each relation; half of the lines have aliases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.synthetic.form import Synthetic, Words, write_array, write_text

_N_RELATIONS = 200
_ENTITY, _PROPERTY = "http://www.wikidata.org/entity/Q", "http://www.wikidata.org/prop/direct/P"
_DATE = "T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime"
_DOCUMENTS_A_FILE = 10_000


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes documents with this number of bytes in several files, and the labels of everything that they name."""
    words = Words("trex")
    documents = _Documents(words)
    left = n_bytes
    while left > 0:
        start = documents.n_documents
        path = folder / "documents" / f"re-nlg_{start}-{start + _DOCUMENTS_A_FILE}.json"
        write_array(path, documents.elements(_DOCUMENTS_A_FILE), n_bytes=left)
        left -= path.stat().st_size
    lines = _entities(words, documents.n_documents + 1)
    wikidata = write_text(folder / "wikidata.json", lines, n_bytes=1 << 60)
    return Synthetic("trex", "train", (str(folder / "documents"),), (wikidata,), {"min_facts": 100})


class _Documents:
    def __init__(self, words: Words) -> None:
        self._words = words
        self.n_documents = 0

    def elements(self, n_documents: int) -> Iterator[str]:
        for _ in range(n_documents):
            self.n_documents += 1
            element = json.dumps(self._document(self.n_documents))
            yield element[:400] + '": "}' if self.n_documents % 10_000 == 9_999 else element

    def _document(self, number: int) -> dict[str, Any]:
        words, rng = self._words, self._words.rng
        sentences = [words.sentence(rng.randint(12, 24)) for _ in range(rng.randint(3, 5))]
        bounds, word_bounds, at = [], [], 0
        for sentence in sentences:
            bounds.append([at, at + len(sentence)])
            for word in sentence.split(" "):
                word_bounds.append([at, at + len(word)])
                at += len(word) + 1
        triples = [self._triple(number, len(sentences)) for _ in range(rng.randint(2, 12))]
        return {
            "docid": f"{_ENTITY}{number}",
            "title": words.title(number),
            "uri": f"{_ENTITY}{number}",
            "text": " ".join(sentences),
            "sentences_boundaries": bounds,
            "words_boundaries": word_bounds,
            "entities": [triple[part] for triple in triples for part in ("subject", "object")],
            "triples": triples,
        }

    def _triple(self, number: int, n_sentences: int) -> dict[str, Any]:
        rng = self._words.rng
        if rng.random() < 0.01:
            subject, relation, object_ = number // 500 * 500 + 1, 1, f"{_ENTITY}{number // 500 + 1}"
        else:
            subject = number if rng.random() < 0.5 else rng.randint(1, number)
            relation = min(int(rng.expovariate(0.03)) + 1, _N_RELATIONS)
            object_ = f"{_ENTITY}{rng.randint(1, number if rng.random() < 0.5 else min(number, 1000))}"
        kind = rng.random()
        if kind < 0.05:
            object_ = f"{rng.randint(1500, 2020)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}{_DATE}"
        elif kind < 0.1:
            object_ = "http://dbpedia.org/resource/Nothing"
        return {
            "subject": self._part(f"{_ENTITY}{subject}", rng.random() < 0.7),
            "predicate": self._part(f"{_PROPERTY}{relation}", rng.random() < 0.3),
            "object": self._part(object_, True),
            "sentence_id": None if rng.random() < 0.1 else rng.randrange(n_sentences),
            "dependency_path": None,
            "confidence": None,
            "annotator": "Simple-Aligner",
        }

    def _part(self, uri: str, is_named: bool) -> dict[str, Any]:
        surface = self._words.text(2) if is_named else None
        boundaries = [0, len(surface)] if surface else None
        return {"uri": uri, "boundaries": boundaries, "surfaceform": surface, "annotator": "Wikidata_Spotlight_Linker"}


def _entities(words: Words, n_items: int) -> Iterator[str]:
    yield "[\n"
    names = (*(f"P{number}" for number in range(1, _N_RELATIONS + 1)), *(f"Q{number}" for number in range(1, n_items)))
    for name in names:
        aliases = [{"language": "en", "value": words.text(2)} for _ in range(words.rng.choice((0, 0, 1, 3)))]
        entity = {
            "type": "property" if name.startswith("P") else "item",
            "id": name,
            "labels": {"en": {"language": "en", "value": words.text(2)}},
            "aliases": {"en": aliases} if aliases else [],
        }
        yield json.dumps(entity) + ",\n"
    yield "]\n"
