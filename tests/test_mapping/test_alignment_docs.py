"""docs/alignment.md says what the code does."""

from __future__ import annotations

from mapping.records import OUTCOMES
from mapping.schema import TABLES
from mapping.write.validate import RULES
from tests.support.real_data import ROOT

PAGE = (ROOT / "docs" / "alignment.md").read_text("utf-8")


def test_every_outcome_rule_and_table_is_explained() -> None:
    for name in (*OUTCOMES, *RULES, *TABLES):
        assert f"`{name}`" in PAGE, name


def test_every_column_is_named() -> None:
    for table in ("records", "alignments", "misses"):
        for name in TABLES[table].names:
            assert f"`{name}`" in PAGE, f"{table}.{name}"


def test_every_column_has_a_meaning() -> None:
    for schema in TABLES.values():
        for field in schema:
            assert (field.metadata or {}).get(b"description"), field.name
