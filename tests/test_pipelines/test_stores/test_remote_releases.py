"""Every command that reads a release reads it from an object store too, and gives what it gives of a local one."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kbsource.files import Folder
from kbsource.local_copies import release_copies
from kbsource.lookup import KnowledgeSource
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.stores import ObjectStore
from mapping.qampari.names import ItemPages
from mapping.records import PageKey
from mapping.search.resolve import Resolver
from pipelines.cli import main
from pipelines.primitives.page_texts import PageTexts, ReleasePages
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.builds import contents
from tests.support.contexts import write_pages, write_questions, write_ranked
from tests.support.entities import array, item, item_snak, make
from tests.support.passages import cut_release
from tests.support.real_data import ROOT
from tests.support.stores import contents_of, get, put, put_folder, s3_server

pytestmark = pytest.mark.slow

pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")

Says = Callable[..., tuple[int, str]]


@dataclass(frozen=True)
class Bucket:
    """An object store with what commands read.

    Attributes:
        flags: of Beam, for the store.
        local: the same files on this machine.
    """

    flags: list[str]
    local: Path


@pytest.fixture(scope="module")
def bucket(mini_build, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:  # type: ignore[no-untyped-def]
    """The mini-wiki with an alignment, and a small QAMPARI release with its passages, in ``s3://wiki``."""
    local = tmp_path_factory.mktemp("bucket")
    (local / "mini").symlink_to(mini_build.output)
    records = [record("a", [evidence("Lake Miravel", title="Lake Miravel")])]
    map_mini(local / "aligned", local / "mini", "jsonl", write_records(local / "records.jsonl", records))
    asked = [{"title": "Miravel", "evidence": "the lake"}, {"qid": "Q9000001"}]
    write_records(local / "asked.jsonl", asked)
    kb = write_pages(local / "pages")
    write_questions(local / "questions", kb).rename(local / "qampari")
    cut_release(local / "passages", kb)
    (local / "wikidata.json").write_bytes(array([item("Q2", item_snak("P279", "Q4")), item("Q4")]))
    make(local / "wikidata.json", output=local / "wikidata")
    kb.rename(local / "kb")
    write_ranked(local / "ranked.jsonl", local / "passages")
    with s3_server() as flags:
        for name in ("mini", "aligned", "kb", "qampari", "passages", "wikidata"):
            put_folder(f"s3://wiki/{name}", (local / name).resolve())
        for name in ("ranked.jsonl", "asked.jsonl"):
            put(f"s3://wiki/{name}", (local / name).read_bytes())
        yield Bucket(flags, local)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder, where nothing is left in the end."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield scratch
    release_copies()
    assert list(scratch.iterdir()) == []


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    """Runs a command and gives its exit code, and what it said but for the time that it took."""

    def run(command: str, *flags: str) -> tuple[int, str]:
        code = main([*shlex.split(command), *flags])
        said = capsys.readouterr()
        return code, said.out + re.sub(r"\d+:\d\d\n", "\n", said.err)

    return run


def _says_both(bucket: Bucket, says: Says, command: str) -> tuple[int, str]:
    """What a command says of the local files, once it has said the same of those in the store."""
    code, said = says(command.format(bucket.local))
    assert says(command.format("s3://wiki"), *bucket.flags) == (code, said.replace(str(bucket.local), "s3://wiki"))
    return code, said


COMMANDS = {
    "verify pages": "verify {0}/mini",
    "verify an alignment": "verify {0}/aligned",
    "verify passages": "verify {0}/passages --kb {0}/kb",
    "verify qampari": "verify {0}/qampari --kb {0}/kb",
    "verify wikidata": "verify {0}/wikidata",
    "show": "show {0}/mini 'Lake Miravel' --full",
    "show as json": "show {0}/mini Q9000001 --json",
    "show nothing": "show {0}/mini 'Lake Miravell'",
    "templates": "templates {0}/mini",
    "locate": "locate {0}/mini --title 'Lake Miravel' --evidence 'the Halvane Isles'",
    "locate many": "locate {0}/mini --input {0}/asked.jsonl",
    "export": "export {0}/mini --output -",
    "export-kilt": "export-kilt {0}/mini --output -",
    "validate-kilt": "validate-kilt {0}/mini {0}/aligned/jsonl-dev-kilt.jsonl",
    "validate-kilt of another release": "validate-kilt {0}/kb {0}/aligned/jsonl-dev-kilt.jsonl",
    "evaluate": "evaluate qampari {0}/qampari/qampari_data/dev_data.jsonl --retrieved {0}/ranked.jsonl",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_says_of_a_remote_release_what_it_says_of_a_local_one(
    bucket: Bucket, says: Says, command: str
) -> None:
    code, said = _says_both(bucket, says, command)

    assert code < 2, said


def test_what_is_damaged_there_is_found(bucket: Bucket, says: Says) -> None:
    put_folder("s3://wiki/damaged", bucket.local / "kb")
    for name in ("index/titles.arrow", "pages/pages-00001-of-00003.parquet"):
        content = bytearray(get(f"s3://wiki/damaged/{name}"))
        content[100] ^= 1
        put(f"s3://wiki/damaged/{name}", bytes(content))
    Folder.of("s3://wiki/damaged/index/qids.arrow").delete()

    code, said = says("verify s3://wiki/damaged", *bucket.flags)

    assert code == 1
    assert [line.partition(":")[0] for line in said.splitlines()[:3]] == [
        "index/qids.arrow",
        "index/titles.arrow",
        "pages/pages-00001-of-00003.parquet",
    ]
    code, said = says("show s3://wiki/damaged x", *bucket.flags)
    assert (code, said.count("\n")) == (1, 1)
    assert "s3://wiki/damaged/index/qids.arrow is missing" in said


def test_contexts_are_made_in_the_store(bucket: Bucket, says: Says) -> None:
    command = "qampari-contexts {0}/qampari {0}/passages --retrieved {0}/ranked.jsonl --output {0}/contexts"

    assert _says_both(bucket, says, command)[0] == 0

    written = contents_of("s3://wiki/contexts")
    assert written == contents(bucket.local / "contexts")
    assert written["qampari_contexts/test_data_with_contexts.jsonl"] == b""
    checked = says("verify s3://wiki/contexts --qampari s3://wiki/qampari --passages s3://wiki/passages", *bucket.flags)
    assert checked[0] == 0


def test_tasks_for_people_are_made_in_the_store(bucket: Bucket, says: Says) -> None:
    export = "qampari-tasks export {0}/qampari --output {0}/tasks"
    assert _says_both(bucket, says, export)[0] == 0
    tasks = get("s3://wiki/tasks/validation.jsonl").splitlines()
    assert tasks == (bucket.local / "tasks" / "validation.jsonl").read_bytes().splitlines()
    verdicts = [{"task_id": json.loads(line)["task_id"], "verdict": "correct", "worker": "w"} for line in tasks]
    path = write_records(bucket.local / "verdicts.jsonl", verdicts)
    put("s3://wiki/verdicts.jsonl", path.read_bytes())

    apply = "qampari-tasks apply {0}/qampari {0}/tasks --verdicts {0}/verdicts.jsonl --output {0}/judged"
    assert _says_both(bucket, says, apply)[0] == 0
    assert says("verify s3://wiki/judged", *bucket.flags)[0] == 0


def test_a_release_is_looked_up_from_python(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    with KnowledgeSource.open("s3://wiki/mini") as remote, KnowledgeSource.open(bucket.local / "mini") as local:
        assert list(remote) == list(local)
        assert remote.by_title("Lake Miravel") == local.by_title("Lake Miravel")


def test_what_the_jobs_read_is_read_there_too(bucket: Bucket) -> None:
    path = "s3://wiki/mini"
    manifest = PAGES_RELEASE.read(path)
    folders = (path, str(bucket.local / "mini"))
    texts = [PageTexts(ReleasePages.open(folder), further=("anchors",)) for folder in folders]
    every = range(manifest.n_rows("pages"))

    assert list(texts[0].pages(every)) == list(texts[1].pages(every))
    assert Resolver.open(path).resolve(PageKey("title", "Lake Miravel")).title == "Lake Miravel"
    assert ItemPages(path, manifest).n_items == ItemPages(str(bucket.local / "mini"), manifest).n_items
    for text in texts:
        text.close()


def test_little_more_than_a_page_is_read(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    with KnowledgeSource.open("s3://wiki/mini") as source:
        read_range = ObjectStore.read_range

        def noted(store: ObjectStore, key: str, start: int, end: int) -> object:
            read.append(end - start)
            return read_range(store, key, start, end)

        monkeypatch.setattr(ObjectStore, "read_range", noted)
        source.by_title("Lake Miravel")
    assert sum(read) < 3 * (64 << 10)


def test_a_command_leaves_nothing_in_the_temporary_folder(bucket: Bucket, scratch: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "show", "s3://wiki/mini", "Lake Miravel", *bucket.flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("Lake Miravel\n====")
    assert done.stderr == ""
    assert list(scratch.iterdir()) == []
