"""Predictions of an old snapshot, moved to the one of the gold records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.release.manifest import FileEntry
from kbsource.release.output import commit
from mapping.metrics.kilt.crosswalk import Crosswalk
from mapping.schema import CROSSWALK
from mapping.write.kind import ALIGNMENT

PAGE = ("wikipedia_id",)
SECTION = ("wikipedia_id", "section")
PARAGRAPHS = ("wikipedia_id", "start_paragraph_id", "end_paragraph_id")


def row(example: str, old: str, paragraph: int, new: tuple[str, int] | None) -> dict[str, Any]:
    value: dict[str, Any] = dict.fromkeys(CROSSWALK.names)
    value |= {"example_id": example, "output": 0, "evidence": 0, "outcome": "aligned" if new else "missing"}
    value |= {"old_wikipedia_id": old, "old_start_paragraph_id": paragraph, "old_end_paragraph_id": paragraph}
    value["old_section"] = f"Old {paragraph}"
    if new is not None:
        value |= {"new_wikipedia_id": new[0], "new_title": "T", "new_start_paragraph_id": new[1]}
        value |= {"new_end_paragraph_id": new[1], "new_start_character": 0, "new_end_character": 9}
        value["new_section"] = f"New {new[1]}"
    return value


def aligned(folder: Path, rows: list[dict[str, Any]]) -> str:
    name, entries = "crosswalk/crosswalk-00000.parquet", []
    if rows:
        (folder / "crosswalk").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=CROSSWALK), folder / name)
        entries.append(FileEntry(name, len(rows), (folder / name).stat().st_size, "0" * 64))
    commit(ALIGNMENT, ALIGNMENT.listing(entries, {}), str(folder), LocalStorage())
    return str(folder)


@pytest.fixture
def crosswalk(tmp_path: Path) -> Crosswalk:
    rows = [
        row("a", "7", 1, ("70", 4)),
        row("b", "7", 1, ("70", 5)),
        row("c", "8", 2, None),
        row("c", "9", 2, None),
        row("d", "9", 3, ("9", 3)),
    ]
    return Crosswalk(aligned(tmp_path, rows), LocalStorage())


@pytest.mark.parametrize(
    ("case", "record", "keys", "span", "moved", "outcome"),
    [
        ("a page goes where its evidence went", "z", PAGE, {"wikipedia_id": 7}, {"wikipedia_id": "70"}, "moved"),
        ("one without evidence keeps its id", "z", PAGE, {"wikipedia_id": "5"}, {"wikipedia_id": "5"}, "page_kept"),
        ("a gone page is right nowhere", "z", PAGE, {"wikipedia_id": "8"}, {"wikipedia_id": "8 (gone)"}, "page_gone"),
        ("one place that is gone leaves the page", "z", PAGE, {"wikipedia_id": "9"}, {"wikipedia_id": "9"}, "moved"),
        ("a place of the same record comes first", "b", PARAGRAPHS, ("7", 1), ("70", 5), "moved"),
        ("else the first one", "z", PARAGRAPHS, ("7", 1), ("70", 4), "moved"),
        (
            "a section alone goes where evidence in it went",
            "b",
            SECTION,
            {"wikipedia_id": "7", "section": "Old 1\n"},
            {"wikipedia_id": "70", "section": "New 5"},
            "moved",
        ),
        (
            "another section cannot be known",
            "b",
            SECTION,
            {"wikipedia_id": "7", "section": "Old 9"},
            {"wikipedia_id": "70", "section": "moved to an unknown place"},
            "place_unknown",
        ),
        (
            "another place cannot be known",
            "a",
            PARAGRAPHS,
            ("7", 2),
            ("70", "moved to an unknown place"),
            "place_unknown",
        ),
        ("not on a kept page either", "a", PARAGRAPHS, ("5", 2), ("5", "moved to an unknown place"), "place_unknown"),
    ],
)
def test_places(
    case: str, record: str, keys: Sequence[str], span: Any, moved: Any, outcome: str, crosswalk: Crosswalk
) -> None:
    def full(value: Any) -> dict[str, Any]:
        return value if isinstance(value, dict) else dict(zip(PARAGRAPHS, (*value, value[1]), strict=True))

    assert crosswalk.move(record, [full(span)], keys) == [full(moved)]
    assert crosswalk.moved == {outcome: 1}


def test_an_alignment_without_a_crosswalk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has no crosswalk"):
        Crosswalk(aligned(tmp_path, []), LocalStorage())
