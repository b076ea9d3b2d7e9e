"""Measures only the joins of ``kbsource facts``, on generated statements and proofs: CPU, and memory by size.

The join *facts* makes facts from the statements of two releases. The join *proofs* adds the proofs to facts. Each runs
in a separate process, with one fact per subject and property, and one answer in each release.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from kbsource.columns import batch_of, schema_of
from kbsource.runtime.chunks import ChunkKey, Report, chunk_path, read_chunk_report, write_chunk
from mapping.facts import SIDES, Fact, FactAnswer, Side
from mapping.qampari.names import ItemPages
from pipelines.facts import NAMED, OWN_VALUES, PLACED, FactsPlan, make_changed_facts, settle_facts
from pipelines.options.facts import FactsOptions
from pipelines.primitives.join_tables import Chunks
from pipelines.primitives.page_texts import ReleasePages
from pipelines.qampari.plan import PROOFS

SIZES = (500_000, 1_000_000, 3_000_000)
JOINS = ("facts", "proofs")
_ROWS = 1 << 16
_PROPERTIES = (17, 36, 57)
_FACTS_AT_ONCE = 256
Numbers = npt.NDArray[np.int64]


class _Items:
    """Items that have the page of their number, under the title of the same number."""

    def resolve(self, title: str) -> int:
        return int(title.rpartition(" ")[2])


class _Pages(ReleasePages):
    """Pages of a release that is not there, one for each item."""

    def of_items(self) -> ItemPages:
        return cast(ItemPages, _Items())


def _plan(folder: str, n_facts: int, memory_mb: int) -> FactsPlan:
    pages = _Pages("", (), (2 * n_facts,), "en", "")
    names = [f"P{number}" for number in _PROPERTIES]
    options = FactsOptions("old", "new", wikidata=("old", "new"), output="facts", memory=memory_mb)
    return FactsPlan(
        options=options,
        old=pages,
        new=pages,
        kinds=dict.fromkeys(names, "item"),
        labels=dict.fromkeys(names, "property"),
        templates=dict.fromkeys(names, "What is the property of {entity}?"),
        pages=pages,
        staging=folder,
        output="facts",
    )


def _texts(*parts: Any) -> pa.Array:
    """Returns texts whose parts are texts, the same in all rows, and numbers."""
    columns = [part if isinstance(part, str) else pa.array(part).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*columns, "")


def _ranges(n_rows: int) -> Iterator[Numbers]:
    for first in range(0, n_rows, _ROWS):
        yield np.arange(first, min(first + _ROWS, n_rows))


def _batch(schema: pa.Schema, **columns: Any) -> pa.RecordBatch:
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _values(facts: Numbers, side: Side) -> pa.RecordBatch:
    subjects = facts // len(_PROPERTIES)
    moved = (facts * 7 + (side == "new") * (facts % 3 == 0)) % (subjects.max() + 1)
    return _batch(
        OWN_VALUES,
        row_id=facts,
        subject=subjects,
        property=np.array(_PROPERTIES)[facts % len(_PROPERTIES)],
        value=_texts("Q", moved),
        key=_texts("Q", moved),
        item=moved,
        own=subjects,
    )


def _named(items: Numbers) -> pa.RecordBatch:
    names = [_texts(name, items) for name in ("Item ", "An item with the number ", "The item that is called ")]
    flat = pa.chunked_array(names).combine_chunks().take(pa.array(np.arange(3 * len(items)).reshape(3, -1).T.ravel()))
    lists = pa.ListArray.from_arrays(np.arange(0, 3 * len(items) + 1, 3), flat)
    return _batch(NAMED, item=items, names=lists, page_id=items, title=_texts("Page ", items), position=items)


def _proofs(answers: Numbers) -> pa.RecordBatch:
    return _batch(
        PROOFS,
        fact=answers,
        hypothesis=pa.nulls(len(answers), pa.string()),  # so that no proof is scored, which is no part of the join
        entailment=np.full(len(answers), 0.75),
        page_id=answers,
        element=answers % 90,
        start_char=np.zeros_like(answers),
        sentence_char=np.full(len(answers), 58),
        end_char=np.full(len(answers), 140),
        text=_texts(
            "This is the sentence before the one that proves the answer. Item ", answers // 2, " has Item ", answers
        ),
        found=_texts("Item ", answers),
        title=_texts("Page ", answers // 2),
    )


def _placed(answers: Numbers) -> pa.RecordBatch:
    return _batch(
        PLACED,
        fact=answers,
        n_found=np.ones_like(answers),
        element=answers % 90,
        paragraph_id=answers % 90 + 1,
        before=np.zeros_like(answers),
        revision_id=answers + 1_000_000_000,
        section=_texts("Section::::History of item ", answers // 9),
    )


def _facts(n_facts: int) -> Iterator[pa.RecordBatch]:
    answers = (FactAnswer("Q7", "Q7", "Item 7", ("Item 7", "An item with the number 7"), "Page 7"),)
    facts = [
        Fact(
            item_id=f"Q{at}",
            old_item_id=f"Q{at}",
            property_id="P36",
            property="capital",
            entity=f"Item {at}",
            question=f"What is the capital of Item {at}?",
            outcome="stayed",
            problem=None,
            old_page_id=at,
            old_title=f"Page {at}",
            new_page_id=at,
            new_title=f"Page {at}",
            old_answers=answers,
            new_answers=answers,
        )
        for at in range(_FACTS_AT_ONCE)
    ]
    batch = batch_of(facts, Fact)
    for first in range(0, n_facts, _FACTS_AT_ONCE):
        yield batch.slice(0, min(_FACTS_AT_ONCE, n_facts - first))


def make_inputs(folder: str, join: str, n_facts: int) -> None:
    """Writes the tables that a join reads, generated for a number of facts."""
    n_items = n_facts // len(_PROPERTIES) + 1
    given: dict[str, tuple[pa.Schema, Iterable[pa.RecordBatch]]]
    if join == "facts":
        values = {f"{side}_values": (OWN_VALUES, (_values(own, side) for own in _ranges(n_facts))) for side in SIDES}
        named = {f"{side}_named": (NAMED, (_named(own) for own in _ranges(n_items))) for side in SIDES}
        given = {**values, **named}
    else:
        given = {
            "facts": (schema_of(Fact), _facts(n_facts)),
            "proofs": (PROOFS, map(_proofs, _ranges(2 * n_facts))),
            "placed": (PLACED, map(_placed, _ranges(2 * n_facts))),
        }
    for name, (schema, batches) in given.items():
        write_chunk(batches, schema, Report(), path=_input(folder, name))


def _input(folder: str, name: str) -> str:
    return chunk_path(f"{folder}/{name}", ChunkKey(0, 0))


def _chunks(folder: str, name: str) -> Chunks:
    return [(ChunkKey(0, 0), read_chunk_report(_input(folder, name))[0])]


def run_join(folder: str, join: str, n_facts: int, memory_mb: int) -> None:
    """Runs a join on the tables of ``make_inputs``."""
    plan = _plan(f"{folder}/joined", n_facts, memory_mb)
    if join == "facts":
        values, named = ([_chunks(folder, f"{side}_{name}") for side in SIDES] for name in ("values", "named"))
        for _ in make_changed_facts(*values, *named, plan=plan):
            pass
    else:
        (facts,), proofs, placed = (_chunks(folder, name) for name in ("facts", "proofs", "placed"))
        for _ in settle_facts(facts, proofs, (), placed, (), plan=plan):
            pass


class _Step(NamedTuple):
    """A step that this module runs in a separate process."""

    name: str
    join: str
    n_facts: int
    memory_mb: int


def measure(join: str, n_facts: int, memory_mb: int) -> dict[str, Any]:
    """Returns the figures of a join at one size."""
    folder = WORK / "facts_joins"
    shutil.rmtree(folder, ignore_errors=True)
    log = WORK / "logs" / "facts_joins.log"
    for name in ("make", "join"):
        step = [name, join, str(n_facts), str(memory_mb)]
        command = [sys.executable, "-m", "benchmarks.facts_joins", "--step", *step]
        usage = run(command, cwd=REPOSITORY, log=log)
        if usage.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text('utf-8')[-3000:]}")
    shutil.rmtree(folder)
    return {
        "join": join,
        "facts": n_facts,
        "memory_mb": memory_mb,
        "cpu_s": usage.cpu_s,
        "own_mb": usage.peak_tree_own_mb,
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.facts_joins", description=__doc__)
    parser.add_argument("--facts", type=int, nargs="+", default=list(SIZES), help="numbers of facts")
    parser.add_argument("--joins", nargs="+", choices=JOINS, default=list(JOINS))
    parser.add_argument("--memory", type=int, nargs="+", default=[1000], help="memory limits of the database, in MB")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        step = _Step(*args.step[:2], *map(int, args.step[2:]))
        folder = str(WORK / "facts_joins")
        if step.name == "make":
            make_inputs(folder, step.join, step.n_facts)
        else:
            run_join(folder, step.join, step.n_facts, step.memory_mb)
        return
    rows = [measure(join, size, memory) for join in args.joins for size in args.facts for memory in args.memory]
    names = ("join", "facts", "memory_mb", "cpu_s", "own_mb")
    print(table(("join", "facts", "--memory", "CPU s", "own MB"), [tuple(row[name] for name in names) for row in rows]))
    write_json(args.json, {"machine": machine(), "runs": rows})


if __name__ == "__main__":
    main()
