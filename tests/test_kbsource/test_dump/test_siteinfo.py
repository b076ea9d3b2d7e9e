"""Heads of dumps: what they tell, what may be missing, and what is no dump."""

from __future__ import annotations

import bz2
import gzip
import json
import re

import pytest

from kbsource.dump.compressed.streams import Compression
from kbsource.dump.siteinfo import DumpHeader, language_of_dbname, merge_siteinfo_json, read_header, read_siteinfo_json
from kbsource.errors import SetupError
from kbsource.site import Site
from kbsource.titles import split_namespace
from tests.support.dumps import NAMESPACES, PACKS, dump_xml, flip, header_xml, page_xml, stored
from tests.support.real_data import real_path

PAGE = page_xml(1, "A", "x")


def header(data: bytes, *, path: str = "x.xml", allow_unknown_schema: bool = False) -> DumpHeader:
    stored({path: data})
    return read_header(path, allow_unknown_schema=allow_unknown_schema)


@pytest.mark.parametrize("compression", PACKS)
def test_a_head_tells_the_facts_of_the_wiki(compression: Compression) -> None:
    found = header(PACKS[compression](dump_xml([PAGE], header=header_xml(lang="de", dbname="dewiki"))))
    assert found.site == Site(
        lang="de",
        dbname="dewiki",
        name="Wikipedia",
        base_url="https://de.wikipedia.org/wiki/Main_Page",
        generator="MediaWiki 1.46.0",
        case="first-letter",
        namespaces=NAMESPACES,
    )
    assert (found.schema_version, found.has_siteinfo, found.has_root) == ("0.11", True, True)
    assert found.compression == compression


@pytest.mark.parametrize(
    ("lang", "base", "dbname"),
    [
        ("it", "http://it.wikipedia.org/wiki/Pagina_principale", "itwiki"),
        ("zh-min-nan", "https://zh-min-nan.wikipedia.org/wiki/A", "zh_min_nanwiki"),
        ("de", "//de.wiktionary.org/wiki/A", "dewiktionary"),
        ("en", "https://en.wikipedia.org.example.org/wiki/A", ""),
        ("en", "https://mini.example.org/wiki/A", ""),
    ],
)
def test_a_head_without_a_database_name_has_that_of_its_address(lang: str, base: str, dbname: str) -> None:
    head = header_xml(version="0.8", lang=lang).replace(b"    <dbname>enwiki</dbname>\n", b"")
    head = re.sub(b"<base>.*?</base>", f"<base>{base}</base>".encode(), head)
    found = header(dump_xml([PAGE], header=head)).site
    assert (found.dbname, found.lang, found.base_url) == (dbname, lang, base)


@pytest.mark.parametrize("minor", range(3, 12))
def test_schemas_0_3_to_0_11_are_known(minor: int) -> None:
    assert header(dump_xml([PAGE], header=header_xml(version=f"0.{minor}"))).schema_version == f"0.{minor}"


@pytest.mark.parametrize("version", ["0.12", "1.0", "0.2"])
def test_another_schema_is_refused_unless_allowed(version: str) -> None:
    data = dump_xml([PAGE], header=header_xml(version=version))
    with pytest.raises(SetupError, match=version):
        header(data)
    assert header(data, allow_unknown_schema=True).schema_version == version


@pytest.mark.parametrize(
    ("opening", "version"),
    [
        ('<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.9/" xml:lang="nl">', "0.9"),
        ("<mediawiki xml:lang='nl' version='0.5'>", "0.5"),
        ('<mediawiki xml:lang="nl">', None),
        ('<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE x [<!ENTITY a "b">]><mediawiki xml:lang="nl">', None),
        ('<!-- <mediawiki version="0.1" xml:lang="xx"> \n -->\n<mediawiki xml:lang="nl">', None),
        ('\ufeff<mediawiki\n  xml:lang="nl"\n>', None),
    ],
)
def test_the_root_is_found_behind_whatever_stands_before_it(opening: str, version: str | None) -> None:
    found = header(opening.encode() + PAGE + b"</mediawiki>")
    assert (found.site.lang, found.schema_version, found.has_siteinfo) == ("nl", version, False)


@pytest.mark.parametrize(
    ("path", "lang", "dbname"),
    [
        ("a/enwiki-20260101-pages-articles.xml", "en", "enwiki"),
        ("zh_min_nanwiki-2026-01-01-p1p200.xml", "zh-min-nan", "zh_min_nanwiki"),
        ("frwikisource-latest-pages-articles.xml", "fr", "frwikisource"),
        ("sample-dewiki-p1p20.xml", "de", "dewiki"),
        ("whatever.xml", "en", ""),
    ],
)
def test_bare_pages_take_the_wiki_from_the_file_name(path: str, lang: str, dbname: str) -> None:
    found = header(PAGE, path=path)
    assert (found.site.lang, found.site.dbname) == (lang, dbname)
    assert (found.has_root, found.has_siteinfo) == (False, False)


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (b"", "Download it again"),
        (bz2.compress(b""), "Download it again"),
        (bz2.compress(dump_xml([PAGE]))[:20], "Download it again"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "7z x"),
        (b"\x28\xb5\x2f\xfd\x00", "Download it again"),
        (b"\xfd7zXZ\x00", "Download it again"),
        (b"LZIP\x01", "lzip -dc"),
        (b"AT&T Labs", "pages-articles"),
        (b'<?xml version="1.0" encoding="klingon"?><mediawiki>', "UTF-8"),
    ],
    ids=["empty", "empty_bzip2", "undecodable", "7z", "cut_zstd", "cut_xz", "lzip", "text", "unknown_encoding"],
)
def test_what_is_no_dump_is_refused_with_a_remedy(data: bytes, remedy: str) -> None:
    with pytest.raises(SetupError, match=r"x\.xml") as caught:
        header(data)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (bz2.compress(b"626:1:Halvane Isles\n626:2:Ullane\n"), "the index of a multistream dump"),
        (b"da39a3ee5e6b4b0d3255bfef95601890afd80709  wiki-pages.xml\n", "a list of checksums. Leave it out"),
        (gzip.compress(b"-- MySQL dump 10.19\n\nDROP TABLE", mtime=0), "--page-props"),
        (bz2.compress(b'[\n{"type":"item","id":"Q1"'), "kbsource wikidata"),
        (b"<!DOCTYPE html>\n<html><h1>404 Not Found</h1></html>", "download the file again"),
    ],
    ids=["index", "checksums", "sql", "wikidata", "html"],
)
def test_other_published_files_are_recognised(data: bytes, remedy: str) -> None:
    with pytest.raises(SetupError, match=r"x\.xml is not a MediaWiki XML dump but ") as caught:
        header(data)
    assert remedy in str(caught.value)


def test_a_missing_file_is_named() -> None:
    stored({})
    with pytest.raises(SetupError, match=r"y\.xml"):
        read_header("y.xml")


def test_a_damaged_first_block_leaves_the_facts_to_the_file_name() -> None:
    head, rest = bz2.compress(header_xml()), bz2.compress(PAGE)
    found = header(flip(head, 40) + rest, path="nlwiki-20260101-pages.xml.bz2")
    assert (found.has_root, found.site.dbname) == (False, "nlwiki")


def test_a_broken_siteinfo_is_refused() -> None:
    with pytest.raises(SetupError, match="siteinfo"):
        header(dump_xml([PAGE]).replace(b"</case>", b"</cas>"))


@pytest.mark.parametrize(
    ("dbname", "lang"), [("enwiki", "en"), ("be_x_oldwiki", "be-x-old"), ("dewiktionary", "de"), ("commons", "")]
)
def test_language_of_a_database_name(dbname: str, lang: str) -> None:
    assert language_of_dbname(dbname) == lang


@pytest.mark.parametrize("version", [1, 2])
def test_siteinfo_json_adds_names_and_aliases(version: int) -> None:
    name, alias = ("*", "*") if version == 1 else ("name", "alias")
    data = {
        "query": {
            "general": {"wikiid": "xxwiki", "sitename": "X"},
            "namespaces": {"10": {"id": 10, name: "Vorlage", "canonical": "Template"}, "0": {"id": 0, name: ""}},
            "namespacealiases": [{"id": 10, alias: "V"}],
        }
    }
    stored({"info": json.dumps(data).encode()})
    site = merge_siteinfo_json(Site(lang="de", name="Wikipedia"), read_siteinfo_json("info"))
    assert (site.dbname, site.name) == ("xxwiki", "Wikipedia")
    assert [split_namespace(f"{prefix}:A", site)[0] for prefix in ("Vorlage", "template", "v", "W")] == [10, 10, 10, 0]


def test_real_siteinfo_json() -> None:
    path = real_path("sql/qrank_dumps/rmwiki/20240301/rmwiki-20240301-siteinfo-namespaces.json.gz")
    site = merge_siteinfo_json(Site(lang="rm"), read_siteinfo_json(str(path)))
    assert site.namespaces[2] == "Utilisader"


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"7",
        b'{"a": 1}',
        b'{"query": 7}',
        b'{"query": {"general": 7}}',
        b'{"query": {"general": {"wikiid": 7}}}',
        b'{"query": {"namespaces": {"x": {"id": 0}}}}',
        b'{"query": {"namespaces": {"0": 7}}}',
        b'{"query": {"namespacealiases": [7]}}',
        b'{"query": {"namespacealiases": [{"id": "' + b"9" * 5000 + b'"}]}}',
        b"[" * 100_000,
        b"\x1f\x8b\x08broken",
    ],
    ids=lambda data: data[:60].decode("latin-1"),
)
def test_what_is_no_siteinfo_json_is_refused(data: bytes) -> None:
    stored({"info": data})
    with pytest.raises(SetupError, match="info"):
        read_siteinfo_json("info")
