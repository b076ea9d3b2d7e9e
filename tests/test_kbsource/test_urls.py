"""Addresses of pages."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.site import Site
from kbsource.titles import is_valid_title, normalise_title, permanent_url
from kbsource.urls import PageAddress, UrlParser

ENGLISH = Site(lang="en", dbname="enwiki", base_url="https://en.wikipedia.org/wiki/Main_Page")
PARSER = UrlParser(ENGLISH)
EN = "https://en.wikipedia.org"


def title_from_url(url: str, site: Site) -> tuple[str, str | None] | None:
    address = UrlParser(site).parse(url)
    return None if address is None or address.title is None else (address.title, address.fragment)


@pytest.mark.parametrize(
    ("url", "title"),
    [
        (f"{EN}/wiki/Alan_Turing", "Alan Turing"),
        (f"{EN}/wiki/alan_Turing", "Alan Turing"),
        (f"{EN}/wiki/AC/DC", "AC/DC"),
        (f"{EN}/wiki/9/11", "9/11"),
        (f"{EN}/wiki/Caf%C3%A9", "Café"),
        (f"{EN}/wiki/Café", "Café"),
        (f"{EN}/wiki/100%25", "100%"),
        (f"{EN}/wiki/Who%3F", "Who?"),
        (f"{EN}/wiki/AT%26T", "AT&T"),
        (f"{EN}/wiki/AT&amp;T", "AT&T"),
        (f"{EN}/wiki/C++", "C++"),
        (f"{EN}/wiki/Star_Trek:_Voyager", "Star Trek: Voyager"),
        (f"{EN}/wiki/Category:foo_bar", "Category:Foo bar"),
        (f"{EN}/wiki/en:Foo", "Foo"),
        (f"{EN}/wiki/Foo?action=history", "Foo"),
        (f"{EN}/w/index.php?title=A%2BB+c", "A+B c"),
        (f"{EN}/w/index.php?action=raw&title=Foo", "Foo"),
        (f"{EN}/w/index.php/Foo/Bar", "Foo/Bar"),
        (f"{EN}/?title=Foo", "Foo"),
        ("http://en.wikipedia.org:80/wiki/Foo", "Foo"),
        ("//en.wikipedia.org/wiki/Foo", "Foo"),
        ("en.wikipedia.org/wiki/Foo", "Foo"),
        ("HTTPS://EN.Wikipedia.org/wiki/Foo", "Foo"),
        ("https://en.m.wikipedia.org/wiki/Foo", "Foo"),
        ("https://www.wikipedia.org/wiki/Foo", "Foo"),
        ("https://secure.wikimedia.org/wikipedia/en/wiki/Foo", "Foo"),
    ],
)
def test_an_address_with_a_title_gives_its_normal_form(url: str, title: str) -> None:
    assert PARSER.parse(url) == PageAddress(title, None, None, None)
    assert title_from_url(url, ENGLISH) == (title, None)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{EN}/?curid=12", PageAddress(None, None, 12, None)),
        (f"{EN}/wiki?curid=12", PageAddress(None, None, 12, None)),
        (f"{EN}/wiki/index.php?curid=12", PageAddress(None, None, 12, None)),
        (f"{EN}/w/index.php?title=A&oldid=5", PageAddress("A", None, None, 5)),
        (f"{EN}/w/index.php?title=A&amp;oldid=5", PageAddress("A", None, None, 5)),
        (f"{EN}/w/index.php?title=fr:A&oldid=5", PageAddress(None, None, None, 5)),
        (f"{EN}/w/index.php?oldid=5&diff=7", PageAddress(None, None, None, 7)),
        (f"{EN}/w/index.php?oldid=5&diff=prev", PageAddress(None, None, None, 5)),
        (f"{EN}/wiki/Special:PermanentLink/5", PageAddress(None, None, None, 5)),
        (f"{EN}/wiki/Special:Permalink/5", PageAddress(None, None, None, 5)),
        (f"{EN}/wiki/Special:Redirect/page/12", PageAddress(None, None, 12, None)),
        (f"{EN}/wiki/Special:Redirect/revision/5", PageAddress(None, None, None, 5)),
    ],
)
def test_an_address_with_an_id_gives_the_id(url: str, expected: PageAddress) -> None:
    assert PARSER.parse(url) == expected


@pytest.mark.parametrize(
    ("url", "fragment"),
    [
        (f"{EN}/wiki/A#Early_life", "Early life"),
        (f"{EN}/wiki/A#caf%C3%A9", "café"),
        (f"{EN}/wiki/A#", None),
        (f"{EN}/wiki/A?x=y#z", "z"),
        (f"{EN}/wiki/A%23Early_life", "Early life"),
    ],
)
def test_a_fragment_is_given_as_readers_see_it(url: str, fragment: str | None) -> None:
    assert title_from_url(url, ENGLISH) == ("A", fragment)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "Alan Turing",
        "https://fr.wikipedia.org/wiki/A",
        "https://en.wiktionary.org/wiki/A",
        "https://example.org/en.wikipedia.org/wiki/A",
        "https://en.wikipedia.org.example.org/wiki/A",
        f"{EN}",
        f"{EN}/wiki/",
        f"{EN}/wiki/fr:A",
        f"{EN}/wiki/wikt:A",
        f"{EN}/wiki/A%5B1%5D",
        f"{EN}/wiki/Caf%E9",
        f"{EN}/w/index.php?title=Caf%E9",
        f"{EN}/static/logo.png",
        f"{EN}/?curid=0",
        f"{EN}/?curid=twelve",
        f"{EN}/?curid=" + "9" * 5000,
    ],
)
def test_what_names_no_page_of_the_wiki_gives_none(url: str) -> None:
    assert PARSER.parse(url) is None
    assert title_from_url(url, ENGLISH) is None


def test_an_edition_is_found_by_its_former_host_and_by_paths_of_variants() -> None:
    assert title_from_url("https://be-x-old.wikipedia.org/wiki/A", Site(lang="be-tarask")) == ("A", None)
    chinese = Site(lang="zh", dbname="zhwiki")
    assert title_from_url("https://zh.wikipedia.org/zh-tw/A", chinese) == ("A", None)
    assert title_from_url("https://en.wikipedia.org/zh-tw/A", ENGLISH) is None


@given(st.text(min_size=1, max_size=60))
def test_every_valid_title_survives_its_address(written: str) -> None:
    title = normalise_title(written, ENGLISH)
    if not is_valid_title(title) or ":" in title:
        return
    address = PARSER.parse(f"{EN}/wiki/{urllib.parse.quote(title.replace(' ', '_'))}")
    assert address == PageAddress(title, None, None, None)
    assert PARSER.parse(permanent_url(ENGLISH, title, 7)) == PageAddress(title, None, None, 7)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    for url in (text, f"{EN}/wiki/{text}", f"{EN}/?{text}", f"{EN}/w/index.php?title={text}&oldid={text}"):
        address = PARSER.parse(url)
        assert address is None or any(value is not None for value in address[:1] + address[2:])
