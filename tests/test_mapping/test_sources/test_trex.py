"""T-REx: documents, mentions, what is brought together and what is left out, and labels of Wikidata."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.identity import stable_sha256
from mapping.records import Example
from mapping.sources import trex
from mapping.sources.source import Split
from mapping.sources.trex import TrexOptions, english
from tests.support.dataset_sources import Reading, read_source
from tests.support.examples import examples
from tests.support.real_data import ROOT, real_path

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
        "["
        + ",\n".join(document if isinstance(document, str) else json.dumps(document) for document in documents)
        + "]"
    )
    lines = [entity if isinstance(entity, str) else json.dumps(entity) for entity in entities]
    (folder / "wikidata.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    wikidata = folder / "wikidata.json"
    return read_source("trex", folder, wikidata, split=split, options=options, is_checked=is_checked)


def answers_with_sentences(example: Example) -> list[tuple[str | None, list[str | None]]]:
    return [(output.answer, [piece.text for piece in output.evidence]) for output in example.outputs]


# Labels and answers


def test_input_and_answers_are_english_labels_and_aliases_follow_once_each(tmp_path: Path) -> None:
    entities = [
        labelled_entity("Q1", "River Ullane", "Ullane"),
        labelled_entity("P1", "rises in", "source"),
        labelled_entity("Q2", "Lake Miravel", "Miravel", "miravel", "Lake Miravel", "The Lake"),
        labelled_entity("Q3", "Mount Kestrane", "Miravel", "The Lake", "Kestrane"),
    ]
    triples = [
        trex_triple("Q1", "P1", "Q2", subject="It", object="Lake Miravel", relation="comes from"),
        trex_triple("Q1", "P1", "Q3", 1, subject="The river", object="the mountain"),
        trex_triple("Q1", "P1", "Q3", 2, subject="It"),
    ]
    (example,) = read_trex(tmp_path, [trex_document("Q10", *triples)], entities).examples
    assert example.input == "River Ullane [SEP] rises in"
    assert answers_with_sentences(example) == [
        ("Lake Miravel", ["One."]),
        ("Mount Kestrane", ["Two."]),
        ("Mount Kestrane", ["Three."]),
        ("Miravel", []),
        ("miravel", []),
        ("The Lake", []),
        ("Kestrane", []),
    ]
    assert example.meta == {
        "subj_aliases": ["Ullane"],
        "sub_surface": ["It", "The river"],
        "obj_surface": ["Lake Miravel", "the mountain"],
    }
    assert list(example.meta) == ["subj_aliases", "sub_surface", "obj_surface"]


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        pytest.param({"labels": [], "aliases": []}, (None, []), id="lists for empty objects"),
        pytest.param({}, (None, []), id="nothing"),
        pytest.param({"labels": {"mul": {"value": "M"}}}, ("M", []), id="for all languages"),
        pytest.param({"labels": {"mul": {"value": "M"}, "en": {"value": "E"}}}, ("E", []), id="English comes first"),
        pytest.param(
            {"aliases": {"mul": [{"value": "b"}, {"value": "a"}], "en": [{"value": "a"}, {"value": "A"}]}},
            (None, ["a", "A", "b"]),
            id="aliases of both, each once",
        ),
    ],
)
def test_labels_are_english_else_those_for_all_languages(
    entity: dict[str, Any], expected: tuple[str | None, list[str]]
) -> None:
    assert english(entity) == expected


def test_wikidata_may_be_an_array_or_lines(tmp_path: Path) -> None:
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2"))
    (expected,) = read_trex(tmp_path, [document], NAMED).examples
    lines = "\n".join(json.dumps(named_entity) for named_entity in NAMED).encode()
    reordered = "\n".join(
        json.dumps({"labels": named_entity["labels"], "id": named_entity["id"]}) for named_entity in NAMED
    ).encode()
    for name, data in {"a.ndjson": lines, "d.json": reordered}.items():
        (tmp_path / name).write_bytes(data)
        reading = read_source("trex", tmp_path, tmp_path / name, split="train", options=ALL)
        assert [example.input for example in reading.examples] == [expected.input], name
        assert reading.tally.references == len(NAMED)


def test_an_entity_that_cannot_be_used_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    broken = ['{"type":"item","id":"Q2","labels":{"en":{"val', '{"labels":{}}', '{"id":"Q3","labels":{"en":"x"}}']
    broken.append('{"id":"Q3","labels":{},"aliases":{"en":7}}')
    document = trex_document(
        "Q10", trex_triple("Q1", "P1", "Q2"), trex_triple("Q1", "P1", "Q3"), trex_triple("Q1", "P1", "Q4")
    )
    named = [named_entity for named_entity in NAMED if named_entity["id"] not in ("Q2", "Q3")]
    reading = read_trex(tmp_path, [document], [*named, *broken])
    assert [reason for _, _, reason in reading.reasons] == [
        "malformed_json",
        "missing_field",
        "wrong_type",
        "wrong_type",
    ]
    assert [output.answer for output in reading.examples[0].outputs] == ["label Q4"]


@pytest.mark.parametrize(
    ("file", "n_entities", "item", "answers"),
    [
        ("wikibase-dump-filter_entities.ndjson.gz", 49, "Q31", ["Belgium", "Kingdom of Belgium", "be", "🇧🇪"]),
        ("qrank_twenty_entities.json.bz2", 20, "Q58921", ["Temminck's Stint", "Calidris temminckii"]),
    ],
)
def test_real_labels_and_aliases(tmp_path: Path, file: str, n_entities: int, item: str, answers: list[str]) -> None:
    wikidata = real_path(f"wikidata/{file}")
    (tmp_path / "re-nlg_0.json").write_text(json.dumps([trex_document("Q10", trex_triple("Q1", "P1", item))]))
    (tmp_path / "few.json").write_text("\n".join(map(json.dumps, NAMED)))
    reading = read_source("trex", tmp_path, wikidata, tmp_path / "few.json", split="train", options=ALL)
    assert reading.tally.references == n_entities + len(NAMED)
    assert not reading.tally.rejected_references
    assert [output.answer for output in reading.examples[0].outputs] == answers


DEMO = ROOT / "kbsource/demo/datasets/trex"


# Facts and records


def test_a_triple_that_no_sentence_states_is_left_out(tmp_path: Path) -> None:
    unaligned = {**trex_triple("Q1", "P1", "Q3"), "annotator": "No-Aligner"}
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2", None), unaligned, trex_triple("Q1", "P1", "Q4"))
    reading = read_trex(tmp_path, [document], NAMED)
    assert reading.tally.excluded == Counter(no_sentence=2)
    assert [output.answer for output in reading.examples[0].outputs] == ["label Q4"]


@pytest.mark.parametrize(("n_sentences", "is_kept"), [(20, True), (21, False)])
def test_a_fact_with_more_than_20_provenances_is_left_out(tmp_path: Path, n_sentences: int, is_kept: bool) -> None:
    sentences = tuple(f"Sentence {number}." for number in range(n_sentences))
    triples = [trex_triple("Q1", "P1", "Q2", number) for number in range(n_sentences)]
    reading = read_trex(tmp_path, [trex_document("Q10", *triples, sentences=sentences)], NAMED)
    assert len(reading.examples) == is_kept
    assert reading.tally.excluded == (Counter() if is_kept else Counter(too_many_provenances=n_sentences))


def test_a_relation_needs_1000_facts_unless_told_otherwise(tmp_path: Path) -> None:
    objects = [f"Q{number}" for number in range(1000, 2000)]
    documents = [
        trex_document("Q10", *(trex_triple("Q1", "P1", name) for name in objects), trex_triple("Q1", "P2", "Q2"))
    ]
    reading = read_trex(tmp_path, documents, [*NAMED, *map(labelled_entity, objects)], options=TrexOptions())
    assert [len(example.outputs) for example in reading.examples] == [1000]
    assert reading.tally.excluded == Counter(rare_relation=1)
    counted = reading.tally.statistics
    assert counted["relations"] == counted["relations_kept"] + 1
    assert counted["facts"] == counted["facts_kept"] + 1


def test_two_objects_of_one_name_in_one_sentence_are_one_output(tmp_path: Path) -> None:
    entities = [*NAMED[:1], labelled_entity("P1"), labelled_entity("Q2", "Miravel"), labelled_entity("Q3", "Miravel")]
    document = trex_document(
        "Q10", trex_triple("Q1", "P1", "Q2"), trex_triple("Q1", "P1", "Q3"), trex_triple("Q1", "P1", "Q3", 1)
    )
    (example,) = read_trex(tmp_path, [document], entities).examples
    assert answers_with_sentences(example) == [("Miravel", ["One."]), ("Miravel", ["Two."])]


@pytest.mark.parametrize(
    ("surfaces", "answer"),
    [((None, "4 May 1821", "May 1821"), "4 May 1821"), ((None, None, None), "1821-05-04T00:00:00Z")],
)
def test_a_literal_is_called_as_its_first_sentence_calls_it_else_by_its_value(
    tmp_path: Path, surfaces: tuple[str | None, ...], answer: str
) -> None:
    triples = [
        trex_triple("Q1", "P1", f"1821-05-04T00:00:00Z{DATE}", number, **({"object": surface} if surface else {}))
        for number, surface in enumerate(surfaces)
    ]
    (example,) = read_trex(tmp_path, [trex_document("Q10", *triples)], NAMED).examples
    assert {output.answer for output in example.outputs} == {answer}
    assert len(example.outputs) == 3


# What goes wrong


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(
            {"predicate": trex_part("http://www.w3.org/2000/01/rdf-schema#label")}, "unknown_uri", id="relation"
        ),
        pytest.param({"subject": trex_part("http://dbpedia.org/resource/X")}, "unknown_uri", id="subject"),
        pytest.param({"object": trex_part("Veldmark")}, "unknown_uri", id="object"),
        pytest.param({"object": None}, "wrong_type", id="no object"),
        pytest.param({"object": {}}, "missing_field", id="object without uri"),
        pytest.param({"sentence_id": "0"}, "wrong_type", id="sentence is text"),
        pytest.param({"sentence_id": 3}, "unknown_sentence", id="no such sentence"),
        pytest.param({"sentence_id": -1}, "unknown_sentence", id="sentence before the first"),
        pytest.param({"subject": {**trex_part(f"{ITEM}Q1"), "surfaceform": 1}}, "wrong_type", id="surface is a number"),
    ],
)
def test_a_bad_triple_is_rejected_and_the_others_of_its_document_are_read(
    tmp_path: Path, bad: dict[str, Any], reason: str
) -> None:
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2"), {**trex_triple("Q1", "P1", "Q3"), **bad})
    reading = read_trex(tmp_path, [document], NAMED)
    assert reading.reasons == [("source", "Q10, triple 1", reason)]
    assert [output.answer for output in reading.examples[0].outputs] == ["label Q2"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param('{"docid": nothing}', "malformed_json", id="no JSON"),
        pytest.param("17", "wrong_type", id="no object"),
        pytest.param({**trex_document("Q11"), "triples": {}}, "wrong_type", id="triples are no list"),
        pytest.param({**trex_document("Q11"), "docid": "http://dbpedia.org/X"}, "unknown_uri", id="no item"),
        pytest.param({"docid": f"{ITEM}Q1", "title": "T"}, "missing_field", id="no text"),
    ],
)
def test_a_bad_document_is_rejected_with_its_place_and_the_rest_goes_on(
    tmp_path: Path, bad: object, reason: str
) -> None:
    good = trex_document("Q10", trex_triple("Q1", "P1", "Q2"))
    reading = read_trex(tmp_path, [good, bad, trex_document("Q12", trex_triple("Q1", "P1", "Q3"))], NAMED)
    assert [stage_key_reason[2] for stage_key_reason in reading.reasons] == [reason]
    assert reading.rejected[0].file == "re-nlg_0.json"
    assert len(reading.examples[0].outputs) == 2


@pytest.mark.parametrize("bounds", [[5, 2], [0, 99], [-1, 3], [0], "x"])
def test_boundaries_that_are_not_in_the_text_reject_the_triple(tmp_path: Path, bounds: object) -> None:
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2"), trex_triple("Q1", "P1", "Q3", 1))
    document["sentences_boundaries"][0] = bounds
    reading = read_trex(tmp_path, [document], NAMED)
    assert [reason for _, _, reason in reading.reasons] == [
        "wrong_type" if bounds in ([0], "x") else "unknown_sentence"
    ]
    assert [output.answer for output in reading.examples[0].outputs] == ["label Q3"]


def test_the_demo_has_a_triple_for_every_rule() -> None:
    reading = read_source("trex", DEMO, DEMO / "wikidata.json", split="train", options=TrexOptions(min_facts=2))
    tally = reading.tally
    assert (tally.records, tally.examples, tally.merged) == (61, 20, 7)
    assert tally.excluded == Counter(
        too_many_provenances=21,
        rare_relation=4,
        no_relation_label=2,
        no_sentence=1,
        no_object_label=1,
        no_subject_label=1,
    )
    assert tally.rejected == Counter(unknown_uri=2, unknown_sentence=1, missing_field=1)
    assert tally.rejected_references == Counter(malformed_json=1)


# The draw


def test_records_come_in_the_order_of_the_draw_which_depends_on_the_seed_alone() -> None:
    def ids(split: Split, **options: Any) -> list[str]:
        chosen = TrexOptions(min_facts=2, **options)
        return [
            example.example_id
            for example in read_source("trex", DEMO, DEMO / "wikidata.json", split=split, options=chosen).examples
        ]

    train = ids("train")
    other = ids("train", seed="other")
    assert other != train
    assert sorted(other) == sorted(train)
    for pool, n_named in ((4, 4), (9, 8)):
        assert ids("dev", sample=2, sample_pool=pool) == ids("test", sample=2, sample_pool=pool) == train[:n_named]


# Laws

_NAMES = ["Q1", "Q2", "Q3"]
_OBJECTS = ["Q2", "Q3", "Q4", f"1821{DATE}", "nothing"]
_TRIPLES = st.builds(
    trex_triple,
    st.sampled_from([*_NAMES, "x"]),
    st.sampled_from(["P1", "P2"]),
    st.sampled_from(_OBJECTS),
    st.sampled_from([0, 1, 2, 7, None]),
)


_DOCUMENTS = st.lists(
    st.one_of(
        st.builds(
            lambda item, triples: trex_document(item, *triples), st.sampled_from(["Q10", "Q11"]), st.lists(_TRIPLES)
        ),
        st.just('{"docid": nothing}'),
        st.just({"docid": 1}),
    ),
    max_size=5,
)


@settings(max_examples=examples(60))
@given(_DOCUMENTS, st.sets(st.sampled_from([*_NAMES, "Q4", "P1", "P2"])), st.integers(1, 3))
def test_no_triple_is_lost_and_records_are_what_slow_obvious_code_makes(
    documents: list[Any], named: set[str], min_facts: int
) -> None:
    options = TrexOptions(min_facts=min_facts, seed="s")
    with tempfile.TemporaryDirectory() as folder, patch.object(trex, "MAX_PROVENANCES", 2):
        # Balance, unique ids and counts are asserted where it is read.
        entities = [labelled_entity(name) for name in sorted(named)]
        reading = read_trex(Path(folder), documents, entities, options=options, is_checked=False)
    n_documents = sum(not isinstance(document, dict) or "text" not in document for document in documents)
    n_triples = sum(
        len(document["triples"]) for document in documents if isinstance(document, dict) and "text" in document
    )
    assert reading.tally.records == n_documents + n_triples
    assert [(example.input, answers_with_sentences(example)) for example in reading.examples] == _slow_records(
        documents, named, min_facts
    )


def _slow_records(documents: list[Any], named: set[str], min_facts: int) -> list[tuple[str, Any]]:
    facts: dict[tuple[str, str, str], dict[tuple[str, int], str]] = defaultdict(dict)
    for document in documents:
        for triple in document["triples"] if isinstance(document, dict) and "text" in document else []:
            subject, relation, object_ = (triple[part]["uri"] for part in ("subject", "predicate", "object"))
            number = triple["sentence_id"]
            if number in (None, 7) or subject == f"{ITEM}x" or object_ == f"{ITEM}nothing":
                continue
            key = (subject.removeprefix(ITEM), relation.removeprefix(PROPERTY), object_.removeprefix(ITEM))
            facts[key].setdefault((document["docid"], number), ("One.", "Two.", "Three.")[number])
    facts = {key: places for key, places in facts.items() if len(places) <= 2}
    n_facts = Counter(relation for _, relation, _ in facts)
    records: dict[tuple[str, str], list[tuple[str, list[str]]]] = defaultdict(list)
    for (subject, relation, object_), places in facts.items():
        if n_facts[relation] < min_facts or not {subject, relation} <= named:
            continue
        if object_ in named or "^^" in object_:
            label = object_.partition("^^")[0] if "^^" in object_ else f"label {object_}"
            records[subject, relation] += [(label, [text]) for text in places.values()]
    order = sorted(records, key=lambda key: stable_sha256("s", "trex", *key))
    return [(f"label {subject} [SEP] label {relation}", records[subject, relation]) for subject, relation in order]
