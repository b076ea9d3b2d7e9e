"""Addresses from dumps, releases and manifests: those of the web become links, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.dump.siteinfo import merge_siteinfo_json, read_header, read_siteinfo_json
from kbsource.rendering import title_url
from kbsource.site import Site
from kbsource.titles import permanent_url
from kbsource.web_addresses import web_address

HOSTILE = [
    "javascript:alert(1)",
    "JavaScript://en.wikipedia.org/%0aalert(1)",
    "java\nscript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript://x/",
    "file:///etc/passwd",
    "https:javascript",
    "https://",
    "https:///path",
    "https://a/><script>alert(1)</script>",
    'https://a/" onclick="alert(1)',
    "https://a/ b",
    "https://a/\x00",
    "https://a/\u2028b",
    "//example.org/wiki/A",
    "https://a/" + "a" * 100_000,
    "",
    None,
    7,
    ["https://a/"],
]


@pytest.mark.parametrize(
    "address", ["https://en.wikipedia.org/wiki/Main_Page", "HTTP://mini.example:8080/A?b=c#d", "http://[::1]/"]
)
def test_addresses_of_the_web_are_kept_as_they_are(address: str) -> None:
    assert web_address(address) == address


@pytest.mark.parametrize("address", HOSTILE, ids=lambda value: repr(value)[:40])
def test_anything_else_is_no_address(address: object) -> None:
    assert web_address(address) is None


@pytest.mark.parametrize(
    "address",
    [
        written_address
        for written_address in HOSTILE
        if isinstance(written_address, str) and not written_address.startswith("//")
    ],
    ids=lambda value: value[:40],
)
def test_a_wiki_with_such_a_base_has_none(address: str) -> None:
    site = Site(dbname="miniwiki", base_url=address)
    assert site.base_url == ""
    assert Site.from_json({"dbname": "miniwiki", "base_url": address}).base_url == ""
    assert permanent_url(site, "A", 1).startswith("https://mini.wikipedia.org/w/index.php?")
    assert title_url(address, "A") == "/wiki/A"


def test_an_address_ends_no_link_of_markdown() -> None:
    hostile = "https://a/)[x](javascript:alert(1)"
    assert title_url(f"{hostile}/w/index.php?title=A&oldid=1", "A_(b)").count(")") == 0


def test_the_base_of_a_dump_and_of_a_siteinfo_file_is_one_of_the_web_or_nothing(tmp_path: Path) -> None:
    dump = tmp_path / "miniwiki-20260101-pages-articles.xml"
    siteinfo = "<siteinfo><dbname>miniwiki</dbname><base>javascript://alert(1)</base></siteinfo>"
    dump.write_text(f'<mediawiki version="0.11">{siteinfo}<page></page></mediawiki>')
    file = tmp_path / "siteinfo.json"
    file.write_text('{"query": {"general": {"base": "javascript://x/"}}}')

    site = read_header(str(dump)).site
    assert site.base_url == ""
    assert merge_siteinfo_json(site, read_siteinfo_json(str(file))).base_url == ""
