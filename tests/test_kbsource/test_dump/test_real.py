"""The real slices: exact counts against an independent count."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from kbsource.dump.ranges import plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.records import BadRecord, RawPage
from tests.support.real_data import real_path

# What cannot be read, slice by slice; everything else must come out.
REJECTS: dict[str, list[tuple[str, str]]] = {
    "dumps/gensim_enwiki-p10p30302-shortened.xml.bz2": [],
    "dumps/gensim_enwiki-table-markup.xml.bz2": [],
    "dumps/gensim_bgwiki-shortened.xml.bz2": [],
    "dumps/dumpsterdive_smallwiki-pages-articles.xml.gz": [],
    "dumps/anubhavs11_wiki.xml.gz": [],
    "dumps/wikibrain_en_test.xml.gz": [],
    "dumps/nwtgck_wikidump.xml.gz": [],
    "dumps/totocptbgn_frwiki10000.xml.gz": [],
    "dumps/semanticizest_nlwiki-20140927-sample.xml.gz": [],
    "dumps/andresmit_wiki.xml.gz": [],
    "dumps/cyberzhg_zhwiki-test-pages.xml.gz": [],
    "dumps/wikiextractor_test.xml.gz": [("truncated_dump", "")],
    "dumps/aawiki/aawiki-20260101-pages-meta-current.xml.bz2": [],
    "dumps/broken/category-sample-enwiki-20170201-pages-articles.xml": [("truncated_dump", "")],
    "dumps/broken/cyberzhg_zhwiki-broken-1.xml": [("missing_field", "13")],
    "dumps/broken/cyberzhg_zhwiki-broken-2.xml": [],
    "dumps/broken/entitydesc-sample-zhwiki-20170201.xml": [],
    "dumps/broken/redirect-sample-dewiki-20170201.xml": [("truncated_dump", "")],
}


def content(path: Path) -> bytes:
    """Gives what a file holds, by the standard library, in UTF-8."""
    data = path.read_bytes()
    if path.suffix == ".bz2":
        data = bz2.decompress(data)
    elif path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode("utf-16").encode() if data.startswith(b"\xff\xfe") else data


def fragments(data: bytes) -> list[bytes]:
    return re.findall(rb"<page>.*?</page>", data, re.DOTALL)


def read(name: str, *, range_bytes: int) -> list[RawPage | BadRecord]:
    path = str(real_path(name))
    site = read_header(path).site
    planned = plan_ranges([path], range_bytes=range_bytes)
    return list(chain.from_iterable(read_range(part, site) for part in planned))


@pytest.mark.slow  # whole dumps
@pytest.mark.parametrize("name", REJECTS)
def test_pages_by_namespace_and_redirect_are_as_counted_independently(name: str) -> None:
    expected: Counter[tuple[int, bool]] = Counter()
    for fragment in fragments(content(real_path(name))):
        head = fragment[: fragment.index(b"<revision>")]
        found = re.search(rb"<ns>(-?\d+)</ns>", head)
        if b"<title>" in head:
            expected[int(found[1]) if found else 0, b"<redirect" in head] += 1
    records = read(name, range_bytes=1 << 40)
    counted = Counter((r.namespace, r.redirect_title is not None) for r in records if isinstance(r, RawPage))
    assert counted == expected
    assert [(r.reason, r.key) for r in records if isinstance(r, BadRecord)] == REJECTS[name]


@pytest.mark.slow  # whole dumps
@pytest.mark.parametrize("name", [name for name in REJECTS if not name.endswith(".gz")])
def test_ranges_of_a_real_slice_give_what_one_range_gives(name: str) -> None:
    n_bytes = real_path(name).stat().st_size
    expected = read(name, range_bytes=1 << 40)
    assert read(name, range_bytes=n_bytes // 5 + 1) == expected


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("dumps/aawiki/aawiki-20260101-pages-meta-current.xml.bz2", ("0.11", "utf-8", "aa", "aawiki", 24)),
        ("dumps/gensim_bgwiki-shortened.xml.bz2", ("0.10", "utf-16", "bg", "bgwiki", 27)),
        ("dumps/gensim_enwiki-table-markup.xml.bz2", ("0.10", "utf-8", "en", "", 0)),
        ("dumps/semanticizest_nlwiki-20140927-sample.xml.gz", ("0.9", "utf-8", "nl", "nlwiki", 24)),
        ("dumps/wikibrain_en_test.xml.gz", ("0.8", "utf-8", "en", "enwiki", 28)),
        ("dumps/broken/entitydesc-sample-zhwiki-20170201.xml", (None, "utf-8", "zh", "zhwiki", 0)),
    ],
)
def test_heads_of_real_slices(name: str, facts: tuple[str | None, str, str, str, int]) -> None:
    header = read_header(str(real_path(name)))
    site = header.site
    assert (header.schema_version, header.encoding, site.lang, site.dbname, len(site.namespaces)) == facts


def test_a_real_gzip_file_cut_anywhere_keeps_its_first_pages(tmp_path: Path) -> None:
    data = real_path("dumps/anubhavs11_wiki.xml.gz").read_bytes()
    path = tmp_path / "enwiki-20180101-pages-articles.xml.gz"
    path.write_bytes(data[: len(data) // 2])
    (part,) = plan_ranges([str(path)], range_bytes=1 << 40)
    records = list(read_range(part, read_header(str(path)).site))
    n_whole = zlib.decompressobj(31).decompress(data[: len(data) // 2]).count(b"</page>")
    assert sum(isinstance(record, RawPage) for record in records) == n_whole > 10
    assert [record.reason for record in records if isinstance(record, BadRecord)] == ["page_cut", "truncated_dump"]
