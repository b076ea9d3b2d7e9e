"""A build whose dump and release lie in an object store: Amazon's protocol, served by moto on this machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from pipelines.jobs.map_dataset import map_dataset
from pipelines.jobs.passages import make_passages
from pipelines.jobs.wikidata import make_wikidata
from pipelines.options.map import MapOptions
from pipelines.options.passages import PassagesOptions
from pipelines.options.wikidata import WikidataOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags, pipeline_options
from pipelines.stores.storage import BeamStorage
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import build_mini, contents
from tests.support.stores import get, put, put_folder, s3_server

pytest.importorskip("boto3", reason="needs boto3: pip install 'kbsource[aws]'")
pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")


@pytest.fixture
def flags() -> Iterator[list[str]]:
    """Flags of Beam for an object store with an empty bucket; nothing in the environment says where it is."""
    with s3_server() as flags:
        yield flags


@pytest.fixture
def store(flags: list[str]) -> BeamStorage:
    """The object store as the jobs see it."""
    pipeline_options(flags)
    return BeamStorage()


def test_the_storage_keeps_its_promises(store: BeamStorage) -> None:
    put(store, "s3://wiki/a/x", b"old")
    put(store, "s3://wiki/a/new", b"0123456789")

    assert store.size("s3://wiki/a/new") == 10
    with store.open_read("s3://wiki/a/new") as file:
        file.seek(4)
        assert (file.read(2), file.tell()) == (b"45", 6)
    with store.open_ranges("s3://wiki/a/new") as file:
        file.seek(7)
        assert (file.read(2), file.tell()) == (b"78", 9)
    put(store, "s3://wiki/a/empty", b"")
    assert (store.size("s3://wiki/a/empty"), get(store, "s3://wiki/a/empty")) == (0, b"")
    store.delete_tree("s3://wiki/a/empty")
    assert store.exists("s3://wiki/a")
    assert store.exists("s3://wiki/a/x")
    assert not store.exists("s3://wiki/b")
    assert store.glob("s3://wiki/a/*") == ["s3://wiki/a/new", "s3://wiki/a/x"]
    store.rename("s3://wiki/a/new", "s3://wiki/a/x")
    assert get(store, "s3://wiki/a/x") == b"0123456789"
    assert store.glob("s3://wiki/**") == ["s3://wiki/a/x"]
    store.delete_tree("s3://wiki/a")
    store.delete_tree("s3://wiki/a")
    assert store.glob("s3://wiki/**") == []
    with pytest.raises(FileNotFoundError):
        store.size("s3://wiki/a/x")


def test_a_build_from_and_to_the_store_has_the_bytes_of_a_local_one(
    store: BeamStorage, flags: list[str], release: Path
) -> None:
    dump, page_props = f"s3://wiki/dumps/{mini_wiki.MULTISTREAM.name}", f"s3://wiki/dumps/{mini_wiki.PAGE_PROPS.name}"
    put(store, dump, mini_wiki.MULTISTREAM.read_bytes())
    put(store, page_props, mini_wiki.PAGE_PROPS.read_bytes())
    options: dict[str, Any] = {"dump": dump, "page_props": page_props, "beam_args": flags}

    build_mini("s3://wiki/release", **options)

    written = {path.removeprefix("s3://wiki/release/"): get(store, path) for path in store.glob("s3://wiki/release/**")}
    assert written == contents(release)
    assert json.loads(written["manifest.json"])["inputs"][0]["name"] == mini_wiki.MULTISTREAM.name
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("s3://wiki/release", **options)


def _written(store: BeamStorage, folder: str) -> dict[str, bytes]:
    return {path.removeprefix(f"{folder}/"): get(store, path) for path in store.glob(f"{folder}/**")}


def test_wikidata_from_and_to_the_store_has_the_bytes_of_a_local_one(
    store: BeamStorage, flags: list[str], tmp_path: Path
) -> None:
    dump = f"s3://wiki/dumps/{mini_wikidata.DUMP.name}"
    put(store, dump, mini_wikidata.DUMP.read_bytes())
    options: dict[str, Any] = {"max_rejects": mini_wikidata.MAX_REJECTS, "range_bytes": 20_000}

    for given, output, beam_args in (
        (str(mini_wikidata.DUMP), str(tmp_path / "release"), []),
        (dump, "s3://wiki/wikidata", flags),
    ):
        make_wikidata(
            WikidataOptions((given,), output, **options),
            flags=beam_flags("local", workers=None, beam_args=beam_args),
            progress=Progress(io.StringIO()),
        )

    assert _written(store, "s3://wiki/wikidata") == contents(tmp_path / "release")


def test_passages_from_and_to_the_store_have_the_bytes_of_local_ones(
    store: BeamStorage, flags: list[str], release: Path, tmp_path: Path
) -> None:
    for file, content in contents(release).items():
        put(store, f"s3://wiki/release/{file}", content)

    for kb, output, beam_args in (
        (str(release), str(tmp_path / "corpus"), []),
        ("s3://wiki/release", "s3://wiki/passages", flags),
    ):
        make_passages(
            PassagesOptions(kb, output, formats=("dpr", "pyserini")),
            flags=beam_flags("local", workers=None, beam_args=beam_args),
            progress=Progress(io.StringIO()),
        )

    assert _written(store, "s3://wiki/passages") == contents(tmp_path / "corpus")


def test_an_alignment_of_from_and_to_the_store_has_the_bytes_of_a_local_one(
    store: BeamStorage, flags: list[str], release: Path, tmp_path: Path
) -> None:
    titles = ("Halvane Isles", "Heron", "No such page")
    found = [record(title, [evidence("The Halvane Isles are an archipelago", title=title)]) for title in titles]
    records = write_records(tmp_path / "records.jsonl", [*found, "{ not json"])
    put(store, "s3://wiki/records.jsonl", records.read_bytes())
    put_folder(store, "s3://wiki/release", release)

    for kb, path, output, beam_args in (
        (str(release), str(records), str(tmp_path / "local"), []),
        ("s3://wiki/release", "s3://wiki/records.jsonl", "s3://wiki/aligned", flags),
    ):
        map_dataset(
            MapOptions("jsonl", kb, (path,), output, "dev", chunk_records=1, max_rejects=0.5),
            flags=beam_flags("local", workers=None, beam_args=beam_args),
            progress=Progress(io.StringIO()),
        )

    assert _written(store, "s3://wiki/aligned") == contents(tmp_path / "local")
