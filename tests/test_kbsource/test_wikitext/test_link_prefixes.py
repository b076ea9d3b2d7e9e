"""Letters before a link that belong to it, and behaviour switches by their local names."""

from __future__ import annotations

import pytest

from kbsource.site import Site
from kbsource.wikitext.parse import WikitextParser


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "parser"])
@pytest.mark.parametrize(
    ("lang", "wikitext", "shown", "anchors"),
    [
        ("uk", "Роман «[[Кобзар]]» і слово[[Кіт]]", "Роман «Кобзар» і словоКіт", ["«Кобзар»", "Кіт"]),
        ("uk", "«''[[Кіт]]''» «<ref>x</ref>[[Пес]] «[[Файл:A.jpg]][[Лис]]", "«Кіт» «Пес «Лис", ["Кіт", "Пес", "Лис"]),
        ("ar", "في و[[تل أبيب]]", "في وتل أبيب", ["وتل أبيب"]),
        ("ar", "ال[[a|b [[c] ]] x[[b|c]]d[[e]]", "الb c] xcde", ["الb c]", "xcd", "e"]),
        ("is", "ó[[Reykjavík]]", "óReykjavík", ["óReykjavík"]),
        ("hy", "«[[Երևան]]», [[a]]b[[c]]", "«Երևան», abc", ["«Երևան»", "ab", "c"]),
        ("xmf", "«[[ა]]", "«ა", ["«ა"]),
        ("en", "pre[[fix]]", "prefix", ["fix"]),
        ("ru", "«[[Кот]]»", "«Кот»", ["Кот"]),
    ],
)
def test_letters_before_a_link_belong_to_it(
    lang: str, wikitext: str, shown: str, anchors: list[str], is_direct: bool
) -> None:
    parsed = WikitextParser(Site(lang=lang), is_direct=is_direct).parse(wikitext, title="T")
    assert [element.text for element in parsed.elements[1:]] == [shown]
    assert [anchor.text for anchor in parsed.anchors] == anchors
    assert all(shown[anchor.start : anchor.end] == anchor.text for anchor in parsed.anchors)


@pytest.mark.parametrize(
    ("lang", "wikitext", "shown"),
    [
        ("de", "__KEIN_INHALTSVERZEICHNIS__ __ABSCHNITTE_NICHT_BEARBEITEN__ __INHALT__", "__INHALT__"),
        ("ja", "＿＿目次＿＿ __目次強制__ あ", "あ"),
        ("uk", "__ПРИХОВ_КАТ____ОБЯЗ_ОГЛ__ а", "а"),
        ("tr", "__İÇİNDEKİLERYOK__ __notoc__ a", "a"),
        ("en", "__KEIN_INHALTSVERZEICHNIS__", "__KEIN_INHALTSVERZEICHNIS__"),
        ("fr", "__AUCUNSOMMAIRE__ __HOMONYMIE__ a", "a"),
    ],
)
def test_switches_have_the_names_of_their_language(lang: str, wikitext: str, shown: str) -> None:
    parsed = WikitextParser(Site(lang=lang)).parse(wikitext, title="T")
    assert " ".join(element.text for element in parsed.elements[1:]) == shown
