"""What a Site knows: namespaces by name, edition, host."""

from __future__ import annotations

import pytest

from kbsource.site import Site

GERMAN = Site(
    lang="de",
    dbname="dewiki",
    base_url="https://de.wikipedia.org/wiki/Wikipedia:Hauptseite",
    namespaces={0: "", 4: "Wikipedia", 6: "Datei", 14: "Kategorie", 100: "Portal"},
    aliases=(("WD", 5),),
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("datei", 6),
        ("file", 6),
        ("image", 6),
        ("bild", 6),
        ("kategorie", 14),
        ("wp", 4),
        ("project", 4),
        ("wd", 5),
        ("portal", 100),
        ("p", 100),
    ],
)
def test_a_namespace_is_found_by_local_canonical_and_alias_name(name: str, number: int) -> None:
    assert GERMAN.namespace_by_name[name] == number


@pytest.mark.parametrize("name", ["draft", "modul", "module", "portal diskussion"])
def test_names_of_namespaces_that_siteinfo_does_not_list_are_not_understood(name: str) -> None:
    assert name not in GERMAN.namespace_by_name


def test_the_dump_wins_over_the_data_of_the_language_and_canonical_names_win_over_all() -> None:
    site = Site(lang="de", namespaces={0: "", 6: "Datei", 100: "Bild", 102: "File"})
    assert site.namespace_by_name["bild"] == 100
    assert site.namespace_by_name["file"] == 6


def test_the_main_namespace_has_no_name() -> None:
    assert "" not in GERMAN.namespace_by_name
    assert 0 not in GERMAN.namespace_by_name.values()


@pytest.mark.parametrize(
    ("site", "edition", "host"),
    [
        (GERMAN, "de", "de.wikipedia.org"),
        (Site(lang="en", dbname="simplewiki"), "simple", "simple.wikipedia.org"),
        (Site(lang="nb", dbname="nowiki"), "no", "no.wikipedia.org"),
        (Site(lang="yue", dbname="zh_yuewiki"), "zh-yue", "zh-yue.wikipedia.org"),
        (Site(lang="be-tarask", dbname="be_x_oldwiki"), "be-tarask", "be-tarask.wikipedia.org"),
        (Site(lang="nb"), "no", "no.wikipedia.org"),
        (Site(base_url="https://simple.wikipedia.org/wiki/Main_Page"), "simple", "simple.wikipedia.org"),
        (Site(lang="en", base_url="http://localhost/wiki/Main"), "en", "localhost"),
        (Site(base_url="//de.wiktionary.org/wiki/A"), "de", "de.wiktionary.org"),
    ],
)
def test_the_edition_is_told_by_host_database_or_language(site: Site, edition: str, host: str) -> None:
    assert site.edition == edition
    assert site.host == host


def test_the_facts_of_an_edition_are_its_own_not_those_of_its_content_language() -> None:
    simple = Site(lang="en", dbname="simplewiki")
    assert "wt" not in simple.namespace_by_name
    assert simple.language_facts.code == "simple"
    assert Site(lang="de", dbname="", base_url="https://wiki.example.org/wiki/A").language_facts.code == "de"
