"""A small release of Wikidata."""

from __future__ import annotations

import bz2
from pathlib import Path
from typing import Any

import pytest

from tests.support.entities import array, item, item_snak, make, statement, terms

BROKEN = b'{"type":"item","id":"Q7","labels":{"en":{"lang'
ENTITIES: list[Any] = [
    item("Q5", item_snak("P279", "Q4"), item_snak("P31", "Q3"), sitelinks={"enwiki": {"title": "Five"}}),
    item("Q4", item_snak("P279", "Q2"), item_snak("P279", "Q5")),
    BROKEN,
    {"type": "property", "id": "P31", "datatype": "wikibase-item", "labels": terms(mul="is a"), "claims": []},
    {"type": "lexeme", "id": "L1"},
    item("Q9", claims={"P279": [statement(item_snak("P279", "Q8"), rank="deprecated")]}, lastrevid=3),
    item("Q9", labels=[], lastrevid=4),
    item("Q9", lastrevid=4),
    *(item(f"Q{number}", item_snak("P31", "Q5")) for number in range(100, 140)),
]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "wikidata-20261001-all.json.bz2"
    content = array(ENTITIES)
    path.write_bytes(b"".join(bz2.compress(content[start : start + 1500]) for start in range(0, len(content), 1500)))
    return path


@pytest.fixture(scope="module")
def release(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("wikidata") / "release"
    make(dump, output=output, max_rejects=0.1, range_bytes=500)
    return output


@pytest.fixture(scope="module")
def whole(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same release from one range, one file a table."""
    output = tmp_path_factory.mktemp("whole") / "release"
    make(dump, output=output, max_rejects=0.1)
    return output
