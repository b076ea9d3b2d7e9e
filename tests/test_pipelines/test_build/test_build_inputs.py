"""What a build is made from, read and checked without building."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.titles import split_namespace
from pipelines.jobs.build import BuildInputs, read_inputs
from pipelines.options.build import BuildOptions
from pipelines.progress import Progress
from tests.support import mini_wiki


def read(*dump: Path, log: io.StringIO | None = None, **options: Any) -> BuildInputs:
    """Reads what a build of the mini-wiki would read, unless other files are named."""
    paths: Sequence[Path] = dump or (mini_wiki.MULTISTREAM,)
    given = BuildOptions(dump=tuple(map(str, paths)), output="unused", **options)
    return read_inputs(given, progress=Progress(log or io.StringIO()))


def test_every_file_that_is_read_is_named_with_its_hash_the_dump_first(tmp_path: Path) -> None:
    titles = tmp_path / "titles.txt"
    titles.write_text("Lake Miravel\n", "utf-8")

    inputs = read(page_props=str(mini_wiki.PAGE_PROPS), only_titles=str(titles))

    paths = [mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS, titles]
    assert [(file.name, file.bytes, file.sha256) for file in inputs.files] == [
        (path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths
    ]


def test_titles_are_taken_in_normal_form_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    titles = tmp_path / "titles.txt"
    titles.write_text("\ufefflake_Miravel\n\n  \nPort Sellick\n", "utf-8")

    assert read(only_titles=str(titles)).titles == {"Lake Miravel", "Port Sellick"}
    assert read().titles is None


def test_page_props_of_another_wiki_are_refused(tmp_path: Path) -> None:
    head, table = b"-- Host: localhost    Database: enwiki\n", gzip.decompress(mini_wiki.PAGE_PROPS.read_bytes())
    props = tmp_path / "page_props.sql"
    props.write_bytes(table.replace(b"-- Host: localhost    Database: miniwiki\n", head))
    assert head in props.read_bytes()

    with pytest.raises(SetupError, match=r"page_props\.sql belongs to enwiki, but the dump to miniwiki.*--page-props"):
        read(page_props=str(props))

    props.write_bytes(table.replace(b"-- Host: localhost    Database: miniwiki\n", b""))
    assert read(page_props=str(props)).site.dbname == "miniwiki"


def test_what_is_no_page_props_is_refused_before_the_dump_is_looked_at(tmp_path: Path) -> None:
    log = io.StringIO()
    wrong = tmp_path / "page.sql"
    wrong.write_text("CREATE TABLE `page` (\n  `page_id` int NOT NULL\n);\n", "utf-8")

    with pytest.raises(SetupError, match="table page has no column pp_page"):
        read(page_props=str(wrong), log=log)
    with pytest.raises(SetupError, match="is not an SQL dump of a table"):
        read(page_props=str(mini_wiki.MULTISTREAM), log=log)
    assert log.getvalue() == ""


def test_what_the_dump_says_of_its_wiki_is_completed_by_siteinfo(tmp_path: Path) -> None:
    siteinfo = tmp_path / "siteinfo.json"
    namespaces = {"10": {"id": 10, "name": "Template", "canonical": "Template"}}
    value = {"query": {"namespaces": namespaces, "namespacealiases": [{"id": 10, "alias": "Tpl"}]}}
    siteinfo.write_text(json.dumps(value), "utf-8")

    plain, completed = read(), read(siteinfo=str(siteinfo))

    assert (plain.site.dbname, plain.schema_version) == (completed.site.dbname, "0.11") == ("miniwiki", "0.11")
    assert [split_namespace("Tpl:A", dump.site)[0] for dump in (plain, completed)] == [0, 10]


def test_siteinfo_of_another_wiki_is_refused(tmp_path: Path) -> None:
    siteinfo = tmp_path / "siteinfo.json"
    value = {"query": {"general": {"wikiid": "rmwiki"}, "namespaces": {"0": {"id": 0, "name": ""}}}}
    siteinfo.write_text(json.dumps(value), "utf-8")

    with pytest.raises(SetupError, match=r"siteinfo\.json belongs to rmwiki, but the dump to miniwiki.*--siteinfo"):
        read(siteinfo=str(siteinfo))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\n \n", "contains no title; write one per line"), ("Élodie".encode("latin-1"), "is not in UTF-8")],
    ids=["empty", "Latin-1"],
)
def test_a_list_of_titles_that_names_none_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    titles = tmp_path / "titles.txt"
    titles.write_bytes(content)

    with pytest.raises(SetupError, match=rf"titles\.txt {said}"):
        read(only_titles=str(titles))


def test_files_that_counts_could_not_tell_apart_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / mini_wiki.XML.name
    copy.write_bytes(mini_wiki.XML.read_bytes())

    with pytest.raises(SetupError, match=rf"two files are called {copy.name}"):
        read(mini_wiki.XML, copy)


def test_the_dump_is_cut_where_it_was_asked_for_and_not_at_all_where_pages_are_counted_out() -> None:
    n_bytes = mini_wiki.XML.stat().st_size

    cut = read(mini_wiki.XML, range_bytes=n_bytes // 3).ranges
    (whole,) = read(mini_wiki.XML, range_bytes=n_bytes // 3, limit_pages=5).ranges

    assert len(cut) > 2
    assert (cut[0].start, cut[-1].end) == (whole.start, whole.end) == (0, n_bytes)


def test_damage_that_forbids_no_build_is_told(tmp_path: Path) -> None:
    truncated, log = tmp_path / "wiki.xml.bz2", io.StringIO()
    truncated.write_bytes(mini_wiki.MULTISTREAM.read_bytes()[:30_000])

    read(truncated, log=log, allow_truncated=True)

    (told,) = [line for line in log.getvalue().splitlines() if line.startswith("error: ")]
    assert told.startswith("error: wiki.xml.bz2: It is truncated")
