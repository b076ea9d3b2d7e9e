"""``kbsource wikidata`` beside a reading of the same lines in the plainest way, on real, odd and broken entities."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipelines.jobs.wikidata as job
from kbsource.dump.digests import hash_file
from kbsource.files import join
from kbsource.release.manifest import InputFile
from kbsource.release.verify import verify
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import BatchRef, ChunkKey, Work, chunk_path, numbered_batches, read_stored, write_chunk
from kbsource.wikidata.assemble import find_superseded
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from kbsource.wikidata.lines import plan_entities
from kbsource.wikidata.parts import IDS, ORDINALS, planned_files, write_plan
from pipelines.options.wikidata import WikidataOptions
from tests.support import mini_wikidata
from tests.support.builds import rows
from tests.support.entities import array, item, item_snak, make, reader, snak, statement, terms
from tests.support.examples import examples
from tests.support.real_data import real_path
from tests.support.wikidata_oracle import expected_tables, lines_of

TABLES = ("items", "properties", "sitelinks", "statements", "classes")
SAMPLES = ("wikibase-dump-filter_entities.ndjson.gz", "qrank_twenty_entities.json.bz2", "wdtk_mock-dump-with-bugs.json")


def make_here(dump: Path, output: Path, *, range_bytes: int = 1 << 40, **given: Any) -> None:
    """Makes a release in this process, step by step, without a guard that could forgive an error."""
    options = WikidataOptions((str(dump),), output=str(output), max_rejects=1.0, allow_truncated=True, **given)
    staging = str(output / "_staging")
    hashed = {str(dump): hash_file(str(dump))}
    ranges = plan_entities([str(dump)], range_bytes=range_bytes)
    write_plan(ranges, hashed, staging)
    function = planned_files(staging, reader(languages=options.languages))

    def read(key: ChunkKey, rows: Iterable[pa.RecordBatch]) -> tuple[ChunkKey, BatchRef]:
        work = Work(key, Beat.unshared())
        made = function(numbered_batches(rows), work)
        path = chunk_path(join(staging, job.READ), key)
        return key, write_chunk(made, function.schema, work.report, path=path)

    chunks = [read(ChunkKey(byte_range.index, 0), ()) for byte_range in ranges]
    ids = pa.Table.from_batches((batch for _, chunk in chunks for batch in read_stored(chunk)), IDS)
    for part, ordinals in find_superseded(ids).items():
        chunks.append(read(ChunkKey(part, 1), [pa.record_batch({"ordinal": ordinals}, schema=ORDINALS)]))
    inputs = [InputFile(dump.name, dump.stat().st_size, hashed[str(dump)].sha256)]
    folders = {"output": str(output), "staging": staging}
    assert list(job.finish_wikidata(sorted(chunks), options=options, inputs=tuple(inputs), **folders)) == [str(output)]


def tables_of(release: Path) -> dict[str, list[dict[str, Any]]]:
    """Gives the tables with values of the type ``other`` as what their JSON says."""
    found = {name: rows(release, name) for name in TABLES}
    for row in found["statements"]:
        for value_snak in (row, *row["qualifiers"]):
            if value_snak["value_type"] == "other":
                value_snak["value"] = json.loads(value_snak["value"])
    return found


def check(release: Path, dumps: Sequence[Path], **options: Any) -> None:
    """Compares a release, made with ``options``, with what the oracle says of the dumps."""
    chosen = {name: None if value is None else set(value) for name, value in options.items() if name != "languages"}
    lines = [line for dump in dumps for line in lines_of(dump)]
    expected, counts = expected_tables(lines, languages=options["languages"], **chosen)
    assert tables_of(release) == expected
    manifest = json.loads((release / "manifest.json").read_bytes())
    others = {name: n for name, n in manifest["findings"].items() if name.startswith("type_")}
    damage = {"truncated_dump": 1} if "truncated_dump" in manifest["totals"]["rejected"] else {}
    released = {"items": len(expected["items"]), "properties": len(expected["properties"])}
    assert manifest["totals"]["rejected"] | others | {name: n for name, n in released.items() if n} == counts | damage
    assert manifest["totals"]["lines_read"] == len(lines) + len(damage)
    assert verify(str(release), [WIKIDATA_RELEASE]).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_of_real_entities_is_what_their_lines_say(name: str, tmp_path: Path) -> None:
    dump = real_path(f"wikidata/{name}")
    languages = ("en",) if name.startswith("wdtk") else ("de", "en")  # that has no German
    options: dict[str, Any] = {"languages": languages, "sites": None, "qualifiers": None}
    make(dump, output=tmp_path / "release", allow_truncated=True, max_rejects=0.1, range_bytes=1 << 18, **options)
    check(tmp_path / "release", [dump], **options)


def test_every_row_of_the_demo_is_what_its_lines_say(tmp_path: Path) -> None:
    options: dict[str, Any] = {"languages": ("en",), "sites": ("miniwiki",), "qualifiers": ("P582",)}
    make(mini_wikidata.DUMP, output=tmp_path / "release", max_rejects=mini_wikidata.MAX_REJECTS, **options)
    check(tmp_path / "release", [mini_wikidata.DUMP], **options)


GREGORIAN = "http://www.wikidata.org/entity/Q1985727"
BOUNDS = {"lowerBound": "+1", "upperBound": "+3"}
RICH = {
    **item(
        "Q1",
        item_snak("P31", "Q5"),
        item_snak("P279", "Q2"),
        snak("P569", "time", "time", {"time": "-0044-03-15T00:00:00Z", "precision": 11, "calendarmodel": GREGORIAN}),
        snak("P2048", "quantity", "quantity", {"amount": "+2.0", "unit": GREGORIAN, **BOUNDS}),
        snak("P1476", "monolingualtext", "monolingualtext", {"language": "fr", "text": "la mer"}),
        snak("P625", "globe-coordinate", "globecoordinate", {"latitude": 1, "longitude": -2.5, "globe": GREGORIAN}),
        snak("P213", "external-id", "string", "0000"),
        snak("P1", "odd", "odd", {"a": [1]}),
        {"snaktype": "somevalue", "property": "P20", "datatype": "wikibase-item"},
    ),
    "labels": terms(de="Meer", en="sea", mul="SEA"),
    "descriptions": terms(en="water"),
    "aliases": {"en": [{"language": "en", "value": "ocean"}], "fr": []},
    "sitelinks": {"enwiki": {"site": "enwiki", "title": "Sea", "badges": ["Q17437796"]}},
    "lastrevid": 7,
}
QUALIFIED = item(
    "Q2",
    lastrevid=7,
    claims={
        "P279": [
            statement(item_snak("P279", "Q1"), rank="preferred", qualifiers={"P580": [item_snak("P580", "Q3")]}),
            statement(item_snak("P279", "Q4"), rank="deprecated", qualifiers=[]),
        ]
    },
)
PROPERTY = {
    "type": "property",
    "id": "P31",
    "datatype": "wikibase-item",
    "claims": {"P31": [statement(RICH["claims"]["P31"][0]["mainsnak"])]},
}
OTHERS: list[Any] = [
    {"type": "lexeme", "id": "L1"},
    {"entity": "Q8", "redirect": "Q9"},
    {"type": "item", "id": "Q2", "lastrevid": 8},
]
ENTITIES: list[Any] = [RICH, QUALIFIED, PROPERTY, *OTHERS]
PIECES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2.5, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 1e300, "", "x", "\0", "ä\U0001f600"),
    *(
        "Q1",
        "Q2",
        "q1",
        "P31",
        "P0",
        "Q4294967295",
        "Q99999999999",
        "Q1-F1",
        "L1-F1",
        "lexeme",
        "value",
        "novalue",
        "en",
    ),
    *("+1", "1", "-1.5e9", "+2001-13-01T00:00:00Z", "+0000-00-00T00:00:00Z", "http://x/Q0", "deprecated"),
    *([], {}, [[]], [{}], {"": 0}, {"id": "Q5"}, {"0": {"language": "en", "value": "t"}}, {"en": {"value": "t"}}),
]
KEYS = ("id", "type", "redirect", "claims", "P31", "P279", "Q1", "en", "mul", "enwiki", "rank", "value", "")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Gives the place of everything within a value, as what leads there."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield (*path, key)
        yield from places(child, (*path, key))


Change = tuple[int, str, int]
CHANGE = st.tuples(
    st.integers(0, 10_000), st.sampled_from(["put", "put", "take", "rename", "wrap"]), st.integers(0, 1000)
)


def changed(entity: Any, changes: Sequence[Change]) -> Any:
    entity = copy.deepcopy(entity)
    for number, kind, choice in changes:
        found = list(places(entity))
        if not found:
            break
        *path, key = found[number % len(found)]
        holder = entity
        for step in path:
            holder = holder[step]
        if kind == "put":
            holder[key] = copy.deepcopy(PIECES[choice % len(PIECES)])
        elif kind == "wrap":
            holder[key] = [holder[key]]
        elif kind == "take" or isinstance(holder, list):
            del holder[key]
        else:
            holder[KEYS[choice % len(KEYS)]] = holder.pop(key)
    return entity


LINE = st.one_of(
    st.builds(
        lambda entity, changes: json.dumps(changed(entity, changes)).encode(),
        st.sampled_from(ENTITIES),
        st.lists(CHANGE, max_size=2),
    ),
    st.builds(
        lambda entity, at, byte: (
            (line := json.dumps(entity).encode())[: at % len(line)] + byte + line[at % len(line) :]
        ),
        st.sampled_from(ENTITIES),
        st.integers(0, 10_000),
        st.sampled_from([b"\xff", b"\0", b'"', b"{", b"}", b"\\ud800", b"NaN", b"1e999", b",", b"\r"]),
    ),
    st.sampled_from(
        [b'{"type":"item","id":"Q7"},{"type":"item","id":"Q8"}', b"null", b"[]", b"{}", b"[{}]", b"\xef\xbb\xbf"]
    ),
)


def plain(content: bytes) -> bytes:
    return content


def streams(content: bytes) -> bytes:
    return b"".join(bz2.compress(content[start : start + 700]) for start in range(0, len(content), 700))


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.lists(LINE, max_size=10),
    st.sampled_from([b"\n", b",\n", b",\r\n", b"\n\n"]),
    st.sampled_from([plain, bz2.compress, streams, gzip.compress]),
    st.integers(1, 4000),
)
def test_every_line_is_rows_or_a_reason_whatever_is_wrong_with_it(
    lines: list[bytes], newline: bytes, pack: Any, range_bytes: int
) -> None:
    options: dict[str, Any] = {"languages": ("en",), "sites": None, "qualifiers": None}
    with TemporaryDirectory() as name:
        folder = Path(name)
        dump = folder / "dump"
        # Without an item there is no release.
        dump.write_bytes(pack(b"[\n" + newline.join([*lines, json.dumps(item("Q987654")).encode()]) + b"\n]\n"))
        make_here(dump, folder / "whole", **options)
        check(folder / "whole", [dump], **options)
        make_here(dump, folder / "cut", range_bytes=range_bytes, **options)
        for table in (*TABLES, "rejected"):
            assert rows(folder / "cut", table) == rows(folder / "whole", table)


DEEP = "[" * 1000 + "]" * 1000


@pytest.mark.slow
def test_many_broken_entities_in_one_range_stop_no_job(tmp_path: Path) -> None:
    broken = [
        *([item("Q2", lastrevid=1 << 63)] * 30),
        *([item("Q2", {**item_snak("P31", "Q5"), "datatype": 5})] * 30),
        *([f'{{"type":"item","id":"Q2","labels":{{"en":{{"value":{DEEP}}}}}}}'.encode()] * 30),
        *(
            [
                b'{"type":"item","id":"Q2","claims":{"P31":[{"rank":"normal","mainsnak":{"snaktype":%s}}]}}'
                % DEEP.encode()
            ]
            * 30
        ),
    ]
    odd = [
        item(
            "Q3", item_snak("P31", "Q99999999999"), snak("P279", "wikibase-item", "wikibase-entityid", {"id": "Q1-F1"})
        )
    ]
    dump = tmp_path / "dump.json"
    dump.write_bytes(array([item("Q1"), *broken, *odd, item("Q4")]))
    summary = make(dump, output=tmp_path / "release", max_rejects=1.0)
    assert summary.manifest.totals.rejected == {"invalid_field": 60, "malformed_statement": 60}
    assert [row["item_id"] for row in rows(tmp_path / "release", "items")] == ["Q1", "Q3", "Q4"]
    assert [row["value_type"] for row in rows(tmp_path / "release", "statements")] == ["other", "other"]
    assert verify(str(tmp_path / "release"), [WIKIDATA_RELEASE]).findings == ()
