"""Checking a release of Wikidata from the outside: every hash, every count, every law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.release.layout import MANIFEST
from kbsource.schema import WIKIDATA_TABLES
from kbsource.wikidata.classes import class_closure, closure_batch, distinct_edges
from kbsource.wikidata.value_laws import broken_values
from kbsource.wikidata.values import ID_NUMBER, RANKS

if TYPE_CHECKING:
    from kbsource.release.verify import Checking
    from kbsource.wikidata.kind import WikidataManifest

_ITEM_ID, _PROPERTY_ID, _SUBJECT_ID = (rf"^{letter}{ID_NUMBER}$" for letter in ("Q", "P", "[QP]"))

Numbers = npt.NDArray[np.uint32]


def check_tables(checking: Checking[WikidataManifest]) -> Mapping[str, int]:
    """Checks every law of a release of Wikidata, and gives how much was checked.

    The class closure is worked out again from the statements. Memory: one row group, 4 bytes an item, and what
    ``classes`` says.
    """
    checks = _Checks(checking)
    checks.run()
    rows = checks.n_rows
    return {
        "entities": rows["items"] + rows["properties"],
        "statements": rows["statements"],
        "sitelinks": rows["sitelinks"],
        "pairs of classes": rows["classes"],
    }


class _Checks:
    """Checks of one release; only files that are ``intact`` are read."""

    def __init__(self, checking: Checking[WikidataManifest]) -> None:
        self._checking, self._manifest, self._found = checking, checking.manifest, checking.found
        self._is_intact = checking.is_intact
        # By kind of entity (Q, P): statements and sitelinks that the entities claim, and those that are there. Each
        # as their number, and as the sum of the entities' numbers over them.
        self._claimed: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self.n_rows: Counter[str] = Counter()

    def run(self) -> None:
        self._check_entities("items", "item_id", _ITEM_ID)
        self._check_entities("properties", "property_id", _PROPERTY_ID)
        self._check_sitelinks()
        edges = distinct_edges(self._checked_statements())
        self._check_classes(edges)
        self._check_rejected()
        if self._is_intact("items", "properties", "statements", "sitelinks"):
            names = ["statements_Q", "statements_P"]
            names += ["sitelinks_Q"] if self._manifest.options.get("sites", ()) is None else []
            for name in names:
                for total in (name, f"{name}_numbers"):
                    if self._claimed[total] != self._present[total]:
                        example = f"{total}: {self._present[total]}, entities claim {self._claimed[total]}"
                        self._found.add(MANIFEST, "counts", example)

    def _batches(self, table: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Gives (file, row group) of a table."""
        for entry, batch in self._checking.batches(table):
            self.n_rows[table] += batch.num_rows
            yield entry.file, batch

    def _report(self, file: str, is_broken: Any, keys: pa.Array, what: str) -> None:
        """Notes the rows in which a law is broken; null is not broken."""
        rows = pc.indices_nonzero(pc.fill_null(is_broken, False))
        if len(rows):
            self._found.add(file, "entity_law", f"{keys[rows[0].as_py()]}: {what}", len(rows))

    def _check_entities(self, table: str, key: str, form: str) -> None:
        letter = form[1]
        numbers = [np.empty(0, np.uint32)]
        for file, batch in self._batches(table):
            keys = batch[key]
            is_id = pc.match_substring_regex(keys, form)
            self._report(file, pc.invert(is_id), keys, "not an id")
            label, language = pc.is_null(batch["label"]), pc.is_null(batch["label_language"])
            self._report(file, pc.not_equal(label, language), keys, "a label without a language")
            for name in ("statements", "sitelinks") if table == "items" else ("statements",):
                claimed = batch[f"n_{name}"]
                self._report(file, pc.less(claimed, 0), keys, f"n_{name} below 0")
                own = _numbers(keys.filter(is_id)).astype(np.int64)
                self._claimed[f"{name}_{letter}"] += int(pc.sum(claimed).as_py() or 0)
                self._claimed[f"{name}_{letter}_numbers"] += int(own @ claimed.filter(is_id).to_numpy())
            numbers.append(_numbers(keys.filter(is_id)))
        ordered = np.sort(np.concatenate(numbers))
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(again):
            example = f"{letter}{again[0]}"
            self._found.add(self._manifest.tables[table][0].file, "duplicate_entity", example, len(again))

    def _check_sitelinks(self) -> None:
        for file, batch in self._batches("sitelinks"):
            keys = batch["item_id"]
            is_id = pc.match_substring_regex(keys, _ITEM_ID)
            self._report(file, pc.invert(is_id), keys, "not an id")
            self._report(file, pc.equal(batch["title"], ""), keys, "a sitelink without a title")
            self._count("sitelinks", keys.filter(is_id))

    def _count(self, name: str, keys: pa.Array) -> None:
        for letter in ("Q", "P"):
            own = keys.filter(pc.starts_with(keys, letter))
            self._present[f"{name}_{letter}"] += len(own)
            self._present[f"{name}_{letter}_numbers"] += int(_numbers(own).sum(dtype=np.int64))

    def _checked_statements(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Checks the statements, and gives those that make and use classes."""
        for file, batch in self._batches("statements"):
            keys = batch["entity_id"]
            is_id = pc.match_substring_regex(keys, _SUBJECT_ID)
            self._report(file, pc.invert(is_id), keys, "not an id")
            self._report(file, pc.invert(pc.is_in(batch["rank"], pa.array(RANKS))), keys, "not a rank")
            self._check_values(file, keys, {name: batch[name] for name in batch.schema.names})
            qualifiers = batch["qualifiers"]
            owners = keys.take(pc.list_parent_indices(qualifiers))
            items = qualifiers.flatten()
            fields = {field.name: items.field(field.name) for field in items.type}
            self._check_values(file, owners, fields)
            self._count("statements", keys.filter(is_id))
            yield from _class_pairs(batch)

    def _check_values(self, file: str, keys: pa.Array, columns: dict[str, Any]) -> None:
        for is_broken, what in broken_values(columns):
            self._report(file, is_broken, keys, what)

    def _check_classes(self, edges: tuple[Numbers, Numbers]) -> None:
        stored = _Feed(batch for _, batch in self._batches("classes"))
        if not self._is_intact("classes", "statements"):
            return
        file = self._manifest.tables["classes"][0].file
        for closure in class_closure(*edges):
            wanted = closure_batch(closure)
            if not stored.take(wanted.num_rows).equals(pa.Table.from_batches([wanted])):
                self._found.add(file, "classes_disagree", f"at or after class {wanted['class_id'][0]}")
                return
        if stored.take(1).num_rows:
            self._found.add(file, "classes_disagree", "the table has more rows")

    def _check_rejected(self) -> None:
        reasons: Counter[str] = Counter()
        for _, batch in self._batches("rejected"):
            reasons.update(batch["reason"].to_pylist())
        expected = {reason: n for reason, n in self._manifest.totals.rejected.items() if n}
        if self._is_intact("rejected") and dict(reasons) != expected:
            self._found.add(MANIFEST, "counts", f"rejected by reason: {dict(reasons)}, expected {expected}")


def _numbers(ids: pa.Array) -> Numbers:
    found: Numbers = pc.utf8_slice_codeunits(ids, 1).cast(pa.uint32()).to_numpy(zero_copy_only=False)
    return found


def _class_pairs(batch: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
    """Gives the P279 statements of a row group, and the values of P31 as pairs with themselves."""
    links = batch.select(["entity_id", "property_id", "rank", "value_type", "value"])
    is_link = pc.and_(pc.equal(links["value_type"], "entity"), pc.not_equal(links["rank"], "deprecated"))
    links = links.filter(pc.and_(is_link, pc.is_in(links["property_id"], pa.array(["P279", "P31"]))))
    links = links.filter(pc.match_substring_regex(links["value"], _ITEM_ID))
    is_subclass = pc.equal(links["property_id"], "P279")
    below = links.filter(pc.and_(is_subclass, pc.match_substring_regex(links["entity_id"], _ITEM_ID)))
    above = _numbers(below["value"])
    yield _numbers(below["entity_id"]), above
    yield above, above
    classes = _numbers(links.filter(pc.invert(is_subclass))["value"])
    yield classes, classes


class _Feed:
    """Rows of batches, taken in portions of another size."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest = pa.Table.from_batches([], WIKIDATA_TABLES["classes"])

    def take(self, n_rows: int) -> pa.Table:
        """Gives the next rows; fewer at the end."""
        parts = [self._rest]
        n_parts = self._rest.num_rows
        while n_parts < n_rows and (batch := next(self._batches, None)) is not None:
            parts.append(pa.Table.from_batches([batch]).cast(WIKIDATA_TABLES["classes"]))
            n_parts += batch.num_rows
        whole = pa.concat_tables(parts)
        self._rest = whole.slice(n_rows)
        return whole.slice(0, n_rows).combine_chunks()
