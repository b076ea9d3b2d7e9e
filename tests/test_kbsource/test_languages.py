"""The data of languages.toml and how a language's facts are found in it."""

from __future__ import annotations

import re
import tomllib
import warnings
from importlib import resources

import pytest

from kbsource.languages import edition_code, interwiki_prefixes, language, language_codes, own_prefixes
from kbsource.wikitext.templates import INFOBOX, rule_book

CONTENT_LANGUAGES = """
en simple de fr nl es it pt ru uk be pl cs sk sl hr sr sh bs bg mk ro hu fi et lv lt ltg sv no nn da is ga cy
ca eu gl oc la el tr az kk uz tt ka hy he ar fa ur arz hi bn ta te ml mr ne th vi id ms tl ceb war jv ko ja zh
zh-yue eo af sw mn my km aa
"""


def data() -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads(resources.files("kbsource").joinpath("languages.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("code", "after_link", "swallowed"),
    [
        ("en", "s and", "s"),
        ("en", "é", ""),
        ("de", "ßchen.", "ßchen"),
        ("fr", "és", "és"),
        ("fr", "'s", ""),
        ("ru", "ами и", "ами"),
        ("uk", "ів”", "ів"),
        ("pl", "ów", "ów"),
        ("ca", "'l món", "'l"),
        ("ca", "''cursiva", ""),
        ("is", "-inn x", "-inn"),
        ("ar", "ات و", "ات"),
        ("he", "ים ", "ים"),
        ("hi", "ों का", "ों"),
        ("ltg", "ā.", "ā"),
        ("eo", "jn", "jn"),
        ("zh", "s", ""),
    ],
)
def test_a_link_swallows_the_letters_of_its_language(code: str, after_link: str, swallowed: str) -> None:
    text = f"[[X]]{after_link}"
    match = language(code).link_trail_pattern().match(text, 5)
    assert (match[0] if match else "") == swallowed


def test_a_language_falls_back_to_the_trail_that_mediawiki_falls_back_to() -> None:
    assert language("gl").link_trail_pattern().match("ção")[0] == "ção"  # type: ignore[index]  # gl falls back to pt


@pytest.mark.parametrize(
    ("code", "edition"),
    [
        ("nb", "no"),
        ("yue", "zh-yue"),
        ("zh_yue", "zh-yue"),
        ("zh_min_nan", "zh-min-nan"),
        ("lzh", "zh-classical"),
        ("be-x-old", "be-tarask"),
        ("be_x_old", "be-tarask"),
        ("gsw", "als"),
        ("EN", "en"),
        ("tlh", "tlh"),
    ],
)
def test_every_spelling_of_a_code_leads_to_its_edition(code: str, edition: str) -> None:
    assert edition_code(code) == edition
    assert language(code).code == edition


def test_a_variant_without_data_has_the_facts_of_its_base_language() -> None:
    assert language("pt-br").redirect_words == language("pt").redirect_words
    assert language("sr-ec").link_trail == language("sr").link_trail


def test_an_edition_without_data_of_its_own_has_the_defaults_not_those_of_a_longer_relative() -> None:
    assert language("xx").link_trail == "a-z"
    assert language("xx").redirect_words == ("#redirect",)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("de", "#weiterleitung"),
        ("fr", "#redirection"),
        ("es", "#redirección"),
        ("it", "#rinvia"),
        ("ru", "#перенаправление"),
        ("zh", "#重定向"),
        ("ja", "#転送"),
        ("ar", "#تحويل"),
        ("vi", "#đổi"),
        ("bg", "#виж"),
    ],
)
def test_redirect_words_are_known_in_lower_case_beside_the_english_one(code: str, word: str) -> None:
    assert {word, "#redirect"} <= set(language(code).redirect_words)


@pytest.mark.parametrize(
    ("code", "name", "number"),
    [
        ("de", "Datei", 6),
        ("de", "Bild", 6),
        ("de", "Benutzerin", 2),
        ("de", "Wikipedia Diskussion", 5),
        ("fr", "Catégorie", 14),
        ("fr", "Utilisatrice", 2),
        ("ru", "ВП", 4),
        ("ru", "Обсуждение Википедии", 5),
        ("pl", "Kategoria", 14),
        ("zh", "分類", 14),
        ("zh", "分类", 14),
        ("no", "Fil", 6),
        ("vi", "Thể loại", 14),
        ("en", "WT", 5),
        ("eo", "Dosiero", 6),
        ("ltg", "Kategoreja", 14),
        ("uk", "Модуль", 828),
    ],
)
def test_namespaces_have_their_local_names_and_aliases(code: str, name: str, number: int) -> None:
    assert (name, number) in language(code).namespace_aliases


@pytest.mark.parametrize(
    ("code", "template"),
    [
        ("en", "Disambiguation"),
        ("en", "Human name disambiguation"),
        ("de", "Begriffsklärung"),
        ("fr", "Homonymie"),
        ("nl", "Dp"),
        ("es", "Desambiguación"),
        ("ru", "Неоднозначность"),
        ("ja", "Aimai"),
        ("pl", "Ujednoznacznienie"),
        ("no", "Peker"),
        ("sv", "Förgrening"),
        ("zh", "消歧义"),
    ],
)
def test_disambiguation_templates_are_known(code: str, template: str) -> None:
    assert template in language(code).disambiguation_templates


@pytest.mark.parametrize(("code", "template"), [("en", "Surname"), ("en", "SIA"), ("fr", "Patronyme")])
def test_lists_of_names_are_no_disambiguations(code: str, template: str) -> None:
    assert template not in language(code).disambiguation_templates


@pytest.mark.parametrize(("code", "word"), [("de", "__BEGRIFFSKLÄRUNG__"), ("fr", "__HOMONYMIE__")])
def test_disambiguation_switches_are_known_beside_the_english_one(code: str, word: str) -> None:
    assert {word, "__DISAMBIG__"} <= language(code).disambiguation_words


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        ("en", "Infobox person", True),
        ("en", "Speciesbox", True),
        ("en", "Navbox", False),
        ("es", "Ficha de persona", True),
        ("pt", "Info/Biografia", True),
        ("pl", "Polityk infobox", True),
        ("ru", "Карточка компании", True),
        ("lv", "Personas infokaste", True),
        ("ko", "인물 정보", True),
        ("tr", "Kişi bilgi kutusu", True),
        ("ca", "Infotaula persona", True),
        ("de", "Navigationsleiste", False),
    ],
)
def test_infobox_templates_are_known_by_how_they_are_named(code: str, name: str, expected: bool) -> None:
    assert (rule_book(code).find(name) is INFOBOX) is expected


def test_the_large_editions_have_data() -> None:
    known = data()["language"]
    without = {code for code in CONTENT_LANGUAGES.split() if code not in known}
    assert without == {"aa"}, "MediaWiki has no Afar words of its own"
    assert language_codes().issuperset(CONTENT_LANGUAGES.split())


def test_a_section_read_alone_is_the_section_of_the_whole_file() -> None:
    whole = data()
    for code, own in whole["language"].items():
        facts = language(code)
        assert facts.link_trail == own.get("link_trail", whole["default"]["link_trail"])
        assert set(own.get("redirect_words", ())) <= set(facts.redirect_words)  # type: ignore[call-overload]
    assert interwiki_prefixes() == set(whole["interwiki"]["prefixes"])
    assert own_prefixes("en") == {"en", *whole["interwiki"]["own"]["en"]}  # type: ignore[misc]
    assert all(edition_code(code) == edition for code, edition in whole["codes"].items())


def test_all_data_is_well_formed() -> None:
    fields = set(language("en").__dataclass_fields__) - {"code"}
    for code, facts in data()["language"].items():
        assert facts.keys() <= fields, code
        assert code == edition_code(code), "sections are named by the edition"
        assert code in language_codes(), code
        found = language(code)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(found.link_trail_pattern().pattern)
        for word in (*found.redirect_words,):
            assert word == word.lower(), (code, word)
        for name, _ in found.namespace_aliases:
            assert name == " ".join(name.replace("_", " ").split()), (code, name)
            assert not re.search(r"[{$]", name), (code, name)
        for template in found.disambiguation_templates:
            assert not re.search(r"[:_]", template), (code, template)
        for prefix in found.infobox_prefixes:
            assert prefix == prefix.lower(), (code, prefix)


def test_no_prefix_is_both_a_language_and_another_site() -> None:
    assert not language_codes() & interwiki_prefixes()
    assert all(prefix == prefix.lower() for prefix in language_codes() | interwiki_prefixes())


def test_all_editions_are_known_closed_ones_and_aliases_too() -> None:
    assert set("aa mo nb zh-cn zh-tw als gsw bat-smg sgs be-x-old roa-rup".split()) <= language_codes()
    assert len(language_codes()) > 340


def test_sister_projects_are_known_and_beginnings_of_titles_are_not() -> None:
    assert {"b", "c", "d", "m", "n", "q", "s", "v", "w", "wikt", "commons", "meta", "species"} <= interwiki_prefixes()
    for word in ("star trek", "a", "x", "e", "css", "csi", "abstract", "discord", "batman", "alien", "the"):
        assert word not in interwiki_prefixes() | language_codes()


def test_an_edition_knows_its_own_prefixes() -> None:
    assert own_prefixes("en") == {"en", "w"}
    assert own_prefixes("fr") == {"fr"}
    assert own_prefixes("zh") == {"zh", "zh-cn", "zh-tw"}
