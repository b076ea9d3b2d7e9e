"""Titles and link targets against MediaWiki's rules."""

from __future__ import annotations

import tomllib
import unicodedata
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbsource.site import Site
from kbsource.titles import (
    PageAddress,
    Target,
    TargetParser,
    UrlParser,
    clean_title,
    is_valid_title,
    normalise_title,
    permanent_url,
    split_namespace,
    upper_first,
)

NAMESPACES = {
    -2: "Media",
    -1: "Special",
    0: "",
    1: "Talk",
    2: "User",
    4: "Wikipedia",
    6: "File",
    10: "Template",
    14: "Category",
    100: "Portal",
}
ENGLISH = Site(lang="en", dbname="enwiki", base_url="https://en.wikipedia.org/wiki/Main_Page", namespaces=NAMESPACES)
FRENCH = Site(lang="fr", dbname="frwiki", namespaces={0: "", 4: "Wikipédia", 6: "Fichier", 14: "Catégorie"})
GERMAN = Site(lang="de", dbname="dewiki", namespaces={0: "", 2: "Benutzer", 6: "Datei", 14: "Kategorie"})
CASED = Site(lang="jbo", dbname="jbowiki", case="case-sensitive", namespaces={0: "", 2: "pilno", 14: "klesi"})

SITES = {
    "en": ENGLISH,
    "fr": FRENCH,
    "de": GERMAN,
    "jbo": CASED,
    "nb": Site(lang="nb", dbname="nowiki"),
    "simple": Site(lang="en", dbname="simplewiki"),
}
GOLDEN: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "golden" / "titles.toml").read_text("utf-8"))
HOST = "https://en.wikipedia.org"
ADDRESSES = UrlParser(ENGLISH)

parse = TargetParser(ENGLISH).parse


def address(url: str) -> str:
    return HOST + url if url.startswith("/") and not url.startswith("//") else url


def cases(by_name: dict[str, dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(name, written, expected) for name, own in by_name.items() for written, expected in own.items()]


@pytest.mark.parametrize(("lang", "written", "expected"), cases(GOLDEN["capitals"]))
def test_the_first_letter_becomes_a_capital_by_the_rules_of_the_language(
    lang: str, written: str, expected: str
) -> None:
    assert upper_first(written, lang) == expected


@pytest.mark.parametrize(("written", "expected"), GOLDEN["clean"].items())
def test_cleaning_leaves_single_spaces_no_direction_marks_and_nfc(written: str, expected: str) -> None:
    assert clean_title(written) == expected


@pytest.mark.parametrize(("site", "written", "expected"), cases(GOLDEN["normal"]))
def test_the_normal_form_has_the_local_prefix_and_the_site_s_first_letter(
    site: str, written: str, expected: str
) -> None:
    assert normalise_title(written, SITES[site]) == expected


def test_a_prefix_that_is_no_namespace_belongs_to_the_title() -> None:
    assert split_namespace("Star Trek: Voyager", ENGLISH) == (0, "Star Trek: Voyager")
    assert split_namespace("Category : Foo", ENGLISH) == (14, "Foo")


@pytest.mark.parametrize(
    ("rule", "site", "written", "expected"),
    [(rule, *case) for rule, by_site in GOLDEN["targets"].items() for case in cases(by_site)],
)
def test_targets(rule: str, site: str, written: str, expected: list[Any]) -> None:
    kind, namespace, title, fragment, is_escaped = [*expected, *["", False][len(expected) - 3 :]]
    assert TargetParser(SITES[site]).parse(written) == Target(kind, namespace, title, fragment or None, is_escaped)


LONG = ["x" * 256, "é" * 128, "Category:" + "x" * 256]


@pytest.mark.parametrize("written", [*GOLDEN["invalid"]["targets"], *LONG])
def test_what_mediawiki_refuses_is_invalid(written: str) -> None:
    assert parse(written).kind == "invalid"


@pytest.mark.parametrize("written", ["x" * 255, "é" * 127, "Category:" + "x" * 255, "Special:" + "x" * 512, "Talk:Foo"])
def test_titles_up_to_the_limit_of_bytes_are_valid(written: str) -> None:
    assert parse(written).kind in ("page", "category")


def test_on_a_case_sensitive_wiki_only_some_namespaces_have_capitals() -> None:
    of_cased = TargetParser(CASED).parse
    assert of_cased("gerna").title == "gerna"
    assert of_cased("user:gerna").title == "pilno:Gerna"


def test_a_turkish_i_gets_its_dot_on_every_path() -> None:
    turkish = TargetParser(Site(lang="tr")).parse
    assert turkish("istanbul").title == "İstanbul"
    assert turkish("istanbul_ili").title == "İstanbul ili"


def test_without_siteinfo_the_names_of_the_language_are_understood() -> None:
    assert TargetParser(Site(lang="de")).parse("Datei:x.jpg") == Target("file", 6, "File:X.jpg", None, False)


TITLES = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="abIıi .:/_#%&;[]~éßȺ\u0307\u0345\u200e\u3000ა", max_size=20),
    st.builds(
        "{}:{}".format, st.sampled_from(["Category", "file ", "w", "en", "fr", "talk", ""]), st.text(max_size=20)
    ),
)
WIKIS = st.sampled_from([ENGLISH, FRENCH, GERMAN, CASED, Site(lang="tr"), Site(lang="de")])


@given(TITLES, WIKIS)
@example("ı\u0307", ENGLISH)
@example("::a", ENGLISH)
def test_the_normal_form_of_a_normal_form_is_itself(written: str, site: Site) -> None:
    title = normalise_title(written, site)
    assert normalise_title(title, site) == title
    assert unicodedata.is_normalized("NFC", title)


@given(TITLES, WIKIS)
def test_a_page_found_by_a_link_is_found_by_its_normal_form(written: str, site: Site) -> None:
    parser = TargetParser(site)
    target = parser.parse(written)
    if target.kind in ("page", "file", "category") and target.title:
        assert normalise_title(target.title, site) == target.title
        assert parser.parse(f":{target.title}")[:3] == ("page", target.namespace, target.title)


@given(TITLES, WIKIS)
def test_a_valid_title_linked_to_leads_to_itself(written: str, site: Site) -> None:
    title = normalise_title(written, site)
    target = TargetParser(site).parse(f":{title}")
    if target.kind == "page" and not set(title) & set("#%&"):
        namespace, rest = split_namespace(title, site)
        if namespace or ":" not in title:
            assert target.title == title
            assert is_valid_title(rest, namespace=namespace)


@given(st.text(alphabet="abcXYZ 019_'(),.!*;$@+-/&", max_size=30), WIKIS)
def test_the_short_way_for_plain_titles_gives_what_the_long_way_gives(written: str, site: Site) -> None:
    parser = TargetParser(site)
    # An invisible mark, dropped by cleaning, forces the long way.
    assert parser.parse(written) == parser.parse(f"{written}\u200e")


def title_from_url(url: str, site: Site) -> tuple[str, str | None] | None:
    found = UrlParser(site).parse(url)
    return None if found is None or found.title is None else (found.title, found.fragment)


@pytest.mark.parametrize(
    ("url", "title", "fragment"), [(url, *page_title) for url, page_title in GOLDEN["addresses"]["titles"].items()]
)
def test_an_address_with_a_title_gives_its_normal_form(url: str, title: str, fragment: str) -> None:
    assert ADDRESSES.parse(address(url)) == PageAddress(title, fragment or None, None, None)


@pytest.mark.parametrize(("url", "expected"), GOLDEN["addresses"]["ids"].items())
def test_an_address_with_an_id_gives_the_id(url: str, expected: list[Any]) -> None:
    title, page_id, revision_id = expected
    assert ADDRESSES.parse(address(url)) == PageAddress(title or None, None, page_id or None, revision_id or None)


@pytest.mark.parametrize("url", [*GOLDEN["addresses"]["others"]["addresses"], HOST + "/?curid=" + "9" * 5000])
def test_what_names_no_page_of_the_wiki_gives_none(url: str) -> None:
    assert ADDRESSES.parse(address(url)) is None


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
    found = ADDRESSES.parse(f"{HOST}/wiki/{urllib.parse.quote(title.replace(' ', '_'))}")
    assert found == PageAddress(title, None, None, None)
    assert ADDRESSES.parse(permanent_url(ENGLISH, title, 7)) == PageAddress(title, None, None, 7)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    for url in (text, f"{HOST}/wiki/{text}", f"{HOST}/?{text}", f"{HOST}/w/index.php?title={text}&oldid={text}"):
        found = ADDRESSES.parse(url)
        assert found is None or any(value is not None for value in found[:1] + found[2:])
