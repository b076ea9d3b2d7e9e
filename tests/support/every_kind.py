"""A small release of every kind: tables without rows but for pages, and manifests that say what such ones say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.pageviews import PAGEVIEWS_RELEASE, LineCounts, PageviewsManifest
from kbsource.release.kind import Kind, ListingKind
from kbsource.release.manifest import FileEntry, InputFile, SourceFacts, canonical_json
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_lines, write_rows
from kbsource.wikidata.kind import WIKIDATA_RELEASE, WikidataManifest
from kbsource.wikidata.records import EntityCounts
from mapping.age import AGE, FATES
from mapping.amber.kind import AMBER_SETS
from mapping.amber.release import MEASURES
from mapping.annotation.tasks import CROWD_TASKS
from mapping.contexts.kind import CONTEXTS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import SKIPPED, SPLITS
from mapping.kinds import KINDS, OWN_TABLES
from mapping.passages.kind import BEIR_DATASET, PASSAGES_CORPUS, PASSAGES_INDEX
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.benchmark_kind import BENCHMARK
from mapping.retrieval.tfidf import TFIDF_INDEX
from mapping.retrieval.training_kind import TRAINING_DATA
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, VECTORS_GRAPH
from mapping.write.kind import ALIGNMENT, ALIGNMENTS
from tests.support.pages import synthetic_pages
from tests.support.releases import CODE, TitleRow, write_release

SOURCE = {"manifest": "manifest.json", "manifest_sha256": "0" * 64, "wiki": "enwiki", "dump_date": "20260101"}
INPUT = {"name": "x.json", "bytes": 5, "sha256": "0" * 64}
ENCODER = {
    "name": "tiny", "dimension": 8, "normalisation": "l2", "form": "onnx", "query_prefix": "", "passage_prefix": "",
}  # fmt: skip
FACTS_OF: dict[str, dict[str, Any]] = {
    RELEASE_DIFF.format: {
        "old": {**SOURCE, "rejected": {"text_missing": 1}, "limits": {"limit_pages": 3}},
        "new": {**SOURCE, "rejected": {}, "limits": {}},
    },
    PASSAGES_CORPUS.format: {
        "options": {"max_words": 100, "split_long": False, "unit": "sentences", "tables": False, "formats": ["dpr"]},
        "lang": "en",
        "counts": {"pages": 0},
    },
    TFIDF_INDEX.format: {
        "passages": SOURCE,
        "lang": "en",
        "options": {"level": "passage"},
    },
    PASSAGES_INDEX.format: {"passages": SOURCE, "lang": "en", "counts": {"passages": 0}},
    PASSAGE_VECTORS.format: {
        "passages": SOURCE,
        "encoder": ENCODER,
        "precision": "float16",
        "computed": {"device": "cpu", "texts_at_once": 1},
        "lang": "en",
        "counts": {"truncated": 0},
    },
    VECTORS_GRAPH.format: {
        "vectors": SOURCE,
        "counts": {"vectors": 0},
        "recall": {"nearest": 10, "sampled": 0, "found": 1.0},
    },
    ALIGNMENT.format: {
        "dataset": "fever",
        "split": "dev",
        "policy": "fever",
        "options": {"threshold": 0.5},
        "records": {"read": 0},
    },
    AGE.format: {
        "releases": [SOURCE, {**SOURCE, "manifest_sha256": "1" * 64, "dump_date": "20260201"}],
    },
    QAMPARI_RELEASE.format: {
        "form": {"host": "en.wikipedia.org", "with_meta": False, "is_released_case": False, "seed": "x"},
        "counts": {"simple": {"kept": 0}},
        "model": None,
    },
    CROWD_TASKS.format: {"qampari": SOURCE, "options": {"form": "jsonl"}, "counts": {"tasks": 0}},
    CONTEXTS.format: {"qampari": SOURCE, "passages": SOURCE, "counts": {"questions": {"without_retrieved": 0}}},
    AMBER_SETS.format: {"collections": ["human"], "options": {"rules": {"lang": "en"}}, "model": None},
    ENTITY_LINKING.format: {
        "options": {"train": 3, "dev": 2, "context_tokens": 8, "context_chars": 80, "max_tokens": 32},
        "counts": {
            "links": 0,
            "duplicates": 0,
            "skipped": dict.fromkeys(SKIPPED, 0),
            "distinct": dict.fromkeys(SPLITS, 0),
        },
    },
    BEIR_DATASET.format: {"passages": SOURCE, "alignment": SOURCE, "options": {"level": "page"}, "counts": {}},
    BENCHMARK.format: {
        "passages": SOURCE,
        "datasets": [
            {"name": "nq", "path": "nq.jsonl", "form": "kilt", "key": "nq", "pool": "", "task": "em", "sha256": "0"}
        ],
        "systems": [{"name": "bm25", "options": {}}],
    },
    TRAINING_DATA.format: {
        "passages": SOURCE,
        "datasets": [{"name": "nq-train", "queries": 0, "examples": 0}],
        "options": {"form": "fid", "split": "train", "top": 100},
        "counts": {"queries": 0},
    },
    OWN_TABLES.format: {"facts": {"mine": [1, {"a": None}]}},
}
"""Values of manifests, by format; other kinds have examples of the types that they declare."""
PAPER = {"records": 3675, "share": 0.2603}
AVERAGES = {"spans": 1.1, "sets": 1.2, "pages": 1.1, "answers": None}
GROUP = {
    "name": "fever",
    "evidence": 4,
    "fates": [dict.fromkeys(FATES, 1), dict.fromkeys(FATES, 0)],
    "present": [4, 3],
    "half_life_years": {"years": 7.4, "low": 6.0, "high": 9.3},
}
REPORTS_OF: dict[str, dict[str, Any]] = {
    ALIGNMENT.format: {
        "dataset": "fever",
        "split": "dev",
        "records": {"read": 9, "merged": 1, "examples": 7, "excluded": {"empty": 1}, "rejected": {"odd": 1}},
        "counts": {
            **dict.fromkeys(("written", "pages_there", "mapped", "spans_written", "with_sets", "sets_written"), 4),
            **dict.fromkeys(("set_spans", "set_pages", "several_sets", "several_spans", "several_pages", "answers"), 3),
            "dropped": {"below_threshold": 1},
            "outputs": {"whole": 4},
            "output_reasons": {"empty_evidence": 1},
            "evidences": {"exact": 4, "near": 1},
            "found_by": {"title": 4},
            "hops": {"1": 1},
            "matches": {"bleu": 4},
            "scores": {"0.65": 3, "1.00": 1},
        },
        "lost_evidences": {"null_page": 1},
        "statistics": {"questions": 4},
        "statistics_in_the_paper": {"questions": 5},
        "dropped_by_threshold": 0.1,
        "dropped_in_the_paper": PAPER,
        "shares_in_the_paper": {"several_pages": 0.12, "several_sets": 0.3, "several_spans": None},
        "verification": {"unjudged_reasons": {"no_text": 1}, "chosen_by_model": 2},
        "accept": {"rule": "bleu", "dropped": 1},
    },
    ALIGNMENTS.format: {
        "datasets": [
            {
                "name": "fever",
                "split": "dev",
                "records": 9,
                "published_records": 10444,
                "averages": AVERAGES,
                "averages_in_the_paper": AVERAGES,
                "dropped_by_threshold": 0.1,
                "dropped_in_the_paper": PAPER,
            }
        ],
        "pages": {"in_the_release": 66, "with_evidence": 37, "share": 0.56, "by_number_of_datasets": {"1": 12}},
    },
    AGE.format: {
        "releases": [{"dump_date": "20260101", "years": 0.0}, {"dump_date": "20260201", "years": 0.1}],
        "groups": {name: [GROUP] for name in ("all", "dataset", "infobox", "size")},
    },
    QAMPARI_RELEASE.format: {"facts": {"simple": {"all": 5}}, "lists": {"left_out": {}, "names": ["x"]}},
    CONTEXTS.format: {"questions": {"without_retrieved": 0}},
    AMBER_SETS.format: {
        "collections": {
            "human": {
                "names": {"set": 1},
                "signals": {"P102": {"found": {"bleu_0.00": {"not_judged": 1}}}},
                "statistics": {
                    **{name: {"made": 2.0, "published": 2.9} for name in MEASURES},
                    "shares": {"Q5 P102": {"made": 50.0, "published": None}},
                },
            }
        },
        "entities": {"names": 100},
    },
}
"""Reports, likewise."""


def write_every_kind(folder: Path) -> dict[str, Path]:
    """Writes a release of each kind, and returns their folders by format."""
    write_release(folder / "pages", synthetic_pages(4), titles=[TitleRow(1 + 3 * n, f"T{n}") for n in range(4)])
    made = {PAGES_RELEASE.format: folder / "pages" / "release"}
    for kind in KINDS:
        if kind not in (PAGES_RELEASE, ALIGNMENTS):
            made[kind.format] = _written(kind, folder / kind.format)
    made[ALIGNMENTS.format] = _written(ALIGNMENTS, folder / ALIGNMENTS.format, part="fever/dev")
    return made


def _written(kind: Kind[Any], folder: Path, part: str | None = None) -> Path:
    output, kept = str(folder), [] if part is None else [part]
    with ReleaseFolder(output, kind=kind, kept=kept):
        pass
    tables = list(kind.tables)[:6] if kind is OWN_TABLES else kind.tables
    entries = [write_rows([], table, kind.tables[table], output=output) for table in tables]
    entries += [
        write_lines([] if kind is ENTITY_LINKING else [_content(kind, name)], name, output=output)
        for name in kind.files
        if "." in name
    ]
    facts = {"release": SOURCE, "inputs": {"kb": [INPUT]}, "options": {}, "code": CODE}
    facts |= FACTS_OF.get(kind.format) or ({} if kind.facts is None else example_of(kind.facts))
    if part is not None:
        inner = ALIGNMENT.read(str(_written(ALIGNMENT, folder / part)))
        facts["alignments"] = [{"folder": part, "manifest_sha256": inner.sha256}]
    write_manifest(kind, entries, facts, output=output, kept=kept)
    return folder


def report_of(kind: Kind[Any], name: str) -> Any:
    """Returns the values of a document of a kind."""
    return REPORTS_OF.get(kind.format) or example_of(kind.documents[name], n_named=1)


def example_of(type_: Any, *, n_named: int = 0) -> Any:
    """Returns a JSON value of a type: objects with any names have ``n_named`` values, lists have one value, and the
    facts about another release are ``SOURCE``.
    """
    example = partial(example_of, n_named=n_named)
    if type_ is SourceFacts:
        return SOURCE
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return {own.name: example(own.type) for own in msgspec.structs.fields(type_)}
    origin, inner = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return example(inner[0])
    if origin in (Union, UnionType):
        return example(next(own for own in inner if own not in (NoneType, msgspec.UnsetType)))
    if origin is Literal:
        return inner[0]
    if origin is dict:
        return {f"name {number}": example(inner[1]) for number in range(n_named)}
    if origin in (list, tuple):
        return [example(inner[0])]
    return {str: "x", bool: False, int: 1, float: 0.5, Any: None}[type_]


def _content(kind: Kind[Any], name: str) -> bytes:
    """The content of a file that is no table: as small as it may be."""
    return canonical_json(report_of(kind, name)) if name in kind.documents else b"{}\n"


def write_manifest(
    kind: Kind[Any], entries: list[FileEntry], facts: dict[str, Any], *, output: str, kept: list[str]
) -> None:
    """Commits a release whose tables are empty."""
    inputs, tables = (InputFile(**INPUT),), {entry.file.partition("/")[0]: (entry,) for entry in entries}
    if kind is WIKIDATA_RELEASE:
        counts = {"counts": {"x.json": EntityCounts()}, "totals": EntityCounts(), "findings": {}}
        options = {"languages": ["en"], "sites": ["enwiki"], "qualifiers": ["P580", "P582"]}
        given = {"code": CODE, "inputs": inputs, "options": options, "tables": tables, **counts}
        commit(kind, WikidataManifest(**given, date="20260101"), output)
    elif kind is PAGEVIEWS_RELEASE:
        counted = {"counts": {"x.json": LineCounts()}, "totals": LineCounts(), "views": 0}
        options = {"site": "enwiki"}
        commit(kind, PageviewsManifest(code=CODE, inputs=inputs, options=options, tables=tables, **counted), output)
    else:
        assert isinstance(kind, ListingKind)
        commit(kind, kind.listing(entries, with_counts(kind, entries, facts, output)), output, kept=kept)
