from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.index.mapped_files import write_index_file
from kbsource.index.page_props import CLAIMS
from kbsource.pages.page_items import write_page_items
from kbsource.release.pages.locations import PAGES_SCHEMA
from kbsource.wikidata.kind import WikidataTables
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
