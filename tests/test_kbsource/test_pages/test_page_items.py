from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.columns import schema_of
from kbsource.index.mapped_files import write_index_file
from kbsource.index.page_props import CLAIMS
from kbsource.pages.page_items import write_page_items
from kbsource.release.pages.locations import PAGES_SCHEMA
from kbsource.wikidata.kind import WikidataTables
from kbsource.wikidata.records import Item
from tests.support.databases import LIMITS, limited
from tests.support.entities import array, item, make, terms

pytestmark = pytest.mark.usefixtures("module_in_this_process")


def page_items(folder: Path, items: list[dict[str, Any]], languages: tuple[str, ...]) -> list[dict[str, Any]]:
    """Gives the table of pages whose ids are the numbers of their items."""
    (folder / "dump.json").write_bytes(array(items))
    make(folder / "dump.json", output=folder / "wikidata", languages=languages)
    numbers = np.array([int(entity["id"][1:]) for entity in items])
    claims, pages = str(folder / "claims.arrow"), str(folder / "pages.arrow")
    zeros = np.zeros(len(numbers))
    write_index_file(claims, CLAIMS, [pa.record_batch([numbers.astype(np.uint32)] * 4, schema=CLAIMS)])
    write_index_file(pages, PAGES_SCHEMA, [pa.record_batch([numbers, zeros, zeros], schema=PAGES_SCHEMA)])
    entries, _ = write_page_items(
        claims,
        pages,
        WikidataTables.open(str(folder / "wikidata")),
        output=str(folder / "release"),
        scratch=str(folder / "scratch"),
    )
    return [row for entry in entries for row in pq.read_table(folder / "release" / entry.file).to_pylist()]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [(("en",), ["body of water", "sea in Britain"]), (("de", "en"), ["Gewässer", "sea in Britain"])],
)
def test_the_description_is_in_the_first_language_that_has_one(
    tmp_path: Path, languages: tuple[str, ...], expected: list[str]
) -> None:
    # Wikidata's order of languages is none that readers know.
    several = terms(**{"en-gb": "water in Britain", "en": "body of water", "de": "Gewässer"})
    items = [
        item("Q1", descriptions=several),
        item("Q2", descriptions=terms(**{"en-gb": "sea in Britain", "fr": "mer"})),
    ]
    assert [row["description"] for row in page_items(tmp_path, items, languages)] == expected


class Tables:
    """Items of Wikidata in descending order, as a release of it has them."""

    manifest = SimpleNamespace(options={"languages": ("en",)})

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def batches(self, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        assert (table, columns) == ("items", ["item_id", "label", "descriptions", "aliases"])
        schema = pa.schema([schema_of(Item).field(name) for name in columns])
        for number in sorted(self._numbers, reverse=True):
            aliases = [{"language": "en", "text": text} for text in ("b", "a", "b")]
            row = {"item_id": f"Q{number}", "label": f"L{number}", "descriptions": [], "aliases": aliases}
            yield pa.RecordBatch.from_pylist([row], schema)


def test_released_pages_have_their_items_with_any_number_of_threads(tmp_path: Path) -> None:
    claims, pages = str(tmp_path / "claims.arrow"), str(tmp_path / "pages.arrow")
    stated = [(1, 0, 7, 0), (2, 5, 5, 5), (3, 6, 6, 8), (4, 9, 0, 9), (5, 3, 3, 3), (6, 2, 2, 2)]
    columns = [pa.array(column, pa.uint32()) for column in zip(*stated, strict=True)]
    write_index_file(claims, CLAIMS, [pa.record_batch(columns, schema=CLAIMS)])
    ids = [1, 2, 3, 5, 6, 99]
    rows = [pa.array(column, type) for column, type in zip((ids, ids, ids), PAGES_SCHEMA.types, strict=True)]
    write_index_file(pages, PAGES_SCHEMA, [pa.record_batch(rows, schema=PAGES_SCHEMA)])
    found = []
    for number, limits in enumerate(({}, *LIMITS)):
        with limited("kbsource.pages.page_items", **limits):
            tables: Any = Tables([2, 3, 6, 7, 8, 9, 1 << 31])
            output = str(tmp_path / f"release-{number}")
            entries, counts = write_page_items(claims, pages, tables, output=output, scratch=str(tmp_path / "scratch"))
        assert counts == {"differ": 1, "only_wikidata": 1, "same": 3}
        found.append(pq.read_table(Path(output) / entries[0].file).to_pylist())
    assert [(row["page_id"], row["qid"], row["label"], row["aliases"]) for row in found[0]] == [
        (1, None, None, []),
        (2, "Q5", None, []),
        (3, "Q6", "L6", ["b", "a"]),
        (5, "Q3", "L3", ["b", "a"]),
        (6, "Q2", "L2", ["b", "a"]),
    ]
    assert found == [found[0]] * len(found)
    assert [*(tmp_path / "scratch").iterdir()] == []
