"""The embedded mini-wiki and mini-Wikidata: their files are what their sources give."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from tests.support import make_demo as make
from tests.support import mini_wiki
from tests.support.make_demo_wikidata import WIKIDATA, wikidata_dump

XML = mini_wiki.XML.read_bytes()


@pytest.mark.parametrize("name", sorted(make.derived_files(XML)))
def test_derived_file_is_what_make_writes(name: str) -> None:
    made = make.derived_files(XML)[name]
    committed = (mini_wiki.FOLDER / name).read_bytes()
    if name.endswith(".gz"):  # builds of zlib differ in how they compress, not in what they hold
        assert gzip.decompress(committed) == gzip.decompress(made)
        assert committed[4:8] == b"\0\0\0\0", "the gzip header holds a time"
    elif name.endswith("sums.txt"):
        assert [line.split()[1] for line in committed.splitlines()] == [line.split()[1] for line in made.splitlines()]
    else:
        assert committed == made


@pytest.mark.parametrize(("file", "algorithm"), [(mini_wiki.MD5SUMS, "md5"), (mini_wiki.SHA1SUMS, "sha1")])
def test_checksums_are_those_of_the_files(file: Path, algorithm: str) -> None:
    lines = file.read_text("ascii").splitlines()
    found = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert found == {
        path.name: hashlib.new(algorithm, path.read_bytes()).hexdigest()
        for path in (mini_wiki.XML, mini_wiki.MULTISTREAM, mini_wiki.INDEX, mini_wiki.PAGE_PROPS)
    }


def test_bytes_and_sha1_of_every_text_are_real() -> None:
    assert make.stamp(XML) == XML


def test_the_dump_of_wikidata_is_what_its_source_gives() -> None:
    assert (mini_wiki.FOLDER / WIKIDATA).read_bytes() == wikidata_dump()
