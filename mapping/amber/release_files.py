"""Everything of a release of AmbER sets but its manifest.

::

    human/qa/amber_sets.jsonl, sf/…, fc/…                      as the published files are, a folder a collection
    human/amber_set_tuples.jsonl
    human/qa_templates.json, fc_templates.json, entity_types_to_distinguishing_properties.json
    sets/  tuples/  set_queries/  names/                       the same as tables, and what became of every name
    report.json                                                counts
    manifest.json                                              written last
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kbsource.files import Storage
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import LinesFile, write_lines
from mapping.amber.queries import make_queries
from mapping.amber.records import TASKS, AmberOptions, AmberSet, Collection, Query, SetEntity, Task
from mapping.amber.released import set_record, tuples_record
from mapping.amber.schema import TUPLES
from mapping.amber.statistics import CollectionStatistics

TUPLES_FILE = "amber_set_tuples.jsonl"
Row = tuple[Any, ...]


def sets_path(collection: str, task: Task) -> str:
    """Gives the path of the file of a task."""
    return f"{collection}/{task}/amber_sets.jsonl"


def write_collection(
    collection: Collection,
    sets: Iterator[AmberSet],
    objects: Mapping[str, Sequence[str]],
    options: AmberOptions,
    *,
    output: str,
    storage: Storage,
) -> tuple[list[FileEntry], dict[str, Any]]:
    """Writes the files of a collection, and gives their entries and its statistics.

    Args:
        collection: with its templates.
        sets: by name.
        objects: see ``make_queries``.
        options: the rules.
        output: folder of the release.
        storage: of the folder.
    """
    statistics = CollectionStatistics(collection)
    with ExitStack() as stack:
        paths = [f"{collection.name}/{TUPLES_FILE}", *(sets_path(collection.name, task) for task in TASKS)]
        tuples, *by_task = (stack.enter_context(LinesFile(output, path, storage)) for path in paths)
        for amber_set in sets:
            tuples.write(record_line(tuples_record(amber_set)))
            n_queries = {}
            for task, file in zip(TASKS, by_task, strict=True):
                queries = set_queries(amber_set, task, collection, options, objects)
                file.write(record_line(set_record(amber_set.name, queries)))
                n_queries[task] = sum(len(own) for _, own in queries)
            statistics.add(amber_set, n_queries)
    texts = {
        "entity_types_to_distinguishing_properties": collection.types,
        "fc_templates": collection.fc_templates,
        "qa_templates": collection.qa_templates,
    }
    entries = [file.entry for file in (tuples, *by_task)]
    for name, value in texts.items():
        content = json.dumps(value, ensure_ascii=False, indent=4).encode()
        entries.append(write_lines([content], f"{collection.name}/{name}.json", output=output, storage=storage))
    return entries, statistics.values()


def set_queries(
    amber_set: AmberSet, task: Task, collection: Collection, options: AmberOptions, objects: Mapping[str, Sequence[str]]
) -> list[tuple[SetEntity, list[Query]]]:
    """Gives the entities of a set with their queries of a task."""
    return [
        (entity, list(make_queries(amber_set.name, entity, task, collection, options, objects)))
        for entity in amber_set.entities
    ]


def record_line(record: Mapping[str, Any]) -> bytes:
    """Gives the line of a record, as the published files are written."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def set_row(collection: str, amber_set: AmberSet) -> Row:
    """Gives the row of a set in the table ``sets``."""
    record = tuples_record(amber_set)
    return (collection, amber_set.name, [{"qid": qid, **one} for qid, one in record["qids"].items()])


def tuple_rows(collection: str, amber_set: AmberSet, signals: Iterator[Mapping[str, Any]]) -> Iterator[Row]:
    """Gives the rows of a set in the table ``tuples``; ``signals``: of its tuples, in the order of their ids."""
    rows = {
        own["amber_id"]: {"collection": collection, "name": amber_set.name, "qid": qid, "property_id": pid, **own}
        for qid, one in tuples_record(amber_set)["qids"].items()
        for pid, own in one["pids"].items()
    }
    said = {amber_id: next(signals) for amber_id in sorted(rows)}
    for amber_id, row in rows.items():
        values = {**said[amber_id], **row}
        yield tuple(values.get(name) for name in TUPLES.names)


def query_rows(
    collection: Collection, amber_set: AmberSet, task: Task, options: AmberOptions, objects: Mapping[str, Sequence[str]]
) -> Iterator[Row]:
    """Gives the rows of the queries of a task in the table ``set_queries``."""
    for entity, queries in set_queries(amber_set, task, collection, options, objects):
        for query in queries:
            answers = [query.answer] if isinstance(query.answer, str) else query.answer
            own, pages = query.tuple, [page._asdict() for page in query.tuple.provenance]
            ids = (entity.qid, own.property_id, query.query_id)
            yield (collection.name, task, amber_set.name, *ids, query.input, answers, pages)
