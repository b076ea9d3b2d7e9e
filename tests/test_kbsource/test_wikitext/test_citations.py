"""Citations by rule: golden cases by language, identifiers by check digits, dates without doubt, hostile uses."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.titles import upper_first
from kbsource.wikitext.citations import _fold, find_note, read_citation, read_link, read_listed_work, read_text
from kbsource.wikitext.identifiers import SCHEMES, citation_rules, identifiers_of_address, read_identifiers
from kbsource.wikitext.iso_dates import sure_date
from kbsource.wikitext.reference_rows import Citation
from kbsource.wikitext.templates import find_rule, split_template
from tests.support.growth import assert_linear

GOLDEN = Path(__file__).parents[2] / "golden" / "citations" / "citations.toml"
CASES = tomllib.loads(GOLDEN.read_text("utf-8"))["case"]
DATA = citation_rules()
KINDS = set(get_type_hints(Citation, include_extras=True)["kind"].__metadata__[0].split(" | "))


def plain(wikitext: str) -> str:
    """Enough of plain text for these cases: links by label, no quotes for italics, braces as they are."""
    text = wikitext.replace("''", "").replace("&amp;", "&")
    while "[[" in text:
        before, _, rest = text.partition("[[")
        inside, _, after = rest.partition("]]")
        text = before + inside.rpartition("|")[2] + after
    return text


def read_use(use: str, language: str) -> Citation | None:
    template = split_template(use[2:-2], language)
    assert template is not None
    arguments = {str(number): value for number, value in enumerate(template.positional, 1)} | template.named
    return read_citation(template.name, arguments, language=language, plain=plain)


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_golden_citations(case: dict[str, object]) -> None:
    case = dict(case)
    case.pop("rule")
    found = read_use(str(case.pop("use")), str(case.pop("language")))
    assert found is not None
    if "language_code" in case:
        case["language"] = case.pop("language_code")
    filled = {name: value for name, value in msgspec.to_builtins(found).items() if value not in (None, [], ())}
    assert {name: list(value) if isinstance(value, tuple) else value for name, value in filled.items()} == case


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_works_in_lists_have_the_texts_of_their_citations(case: dict[str, str]) -> None:
    template = split_template(case["use"][2:-2], case["language"])
    assert template is not None
    arguments = {str(number): value for number, value in enumerate(template.positional, 1)} | template.named
    listed = read_listed_work(template.name, arguments, language=case["language"])
    whole = read_citation(template.name, arguments, language=case["language"], plain=str)
    assert listed is not None
    assert whole is not None
    for field in ("kind", "authors", "editors", "date_text", "publisher", *DATA["fields"]):
        assert getattr(listed, field) == getattr(whole, field), field


def test_data_uses_known_words_alone() -> None:
    """Names of parameters are written as they are compared; within a language each stands once."""
    kinds = {kind for names in DATA["templates"].values() for kind in names} | {form["kind"] for form in DATA["form"]}
    assert kinds <= KINDS | {"none"}
    assert set(DATA["identifiers"]) == set(SCHEMES)
    slots = {slot for names in DATA["parameters"].values() for slot in names}
    assert {slot for form in DATA["form"] for slot in form["slots"]} | slots <= set(DATA["parameters"]["en"]) | set(
        SCHEMES
    ) | {"wayback", "dead_since"}
    written = [[name for names in slots.values() for name in names.split()] for slots in DATA["parameters"].values()]
    assert [name for names in written for name in names if _fold(name) != name] == []
    assert [name for names in written for name in set(names) if names.count(name) > 1] == []


@pytest.mark.parametrize(
    ("scheme", "text", "normal"),
    [
        ("isbn", "978-3-16-148410-0", "9783161484100"),
        ("isbn", "0 306 40615 2 (hbk)", "9780306406157"),
        ("isbn", "080442957X", "9780804429573"),
        ("isbn", "306-40615-2", "9780306406157"),  # of nine digits
        ("isbn", "978-3-16-148410-1", "check"),
        ("isbn", "0-306-40615-3", "check"),
        ("isbn", "none", "form"),
        ("issn", "ISSN 2434561X", "2434-561X"),
        ("issn", "2434-5611", "check"),
        ("doi", "doi:10.1000/A(1)2.", "10.1000/a(1)2"),
        ("doi", "http://dx.doi.org/10.1000%2Fabc)", "10.1000/abc"),
        ("doi", "10.10/x", "form"),
        (
            "doi",
            "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2",
            "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2",
        ),
        ("doi", "10.1175/1520-0493(1920)48[223:TDOTA]2.0.CO;2", "10.1175/1520-0493(1920)48[223:tdota]2.0.co;2"),
        ("doi", "10.1000/a<br>b", "10.1000/a"),
        ("doi", "[10.1000/a]", "10.1000/a"),
        ("arxiv", "0706.0001v2", "0706.0001"),
        ("arxiv", "math.GT/0309136", "math.GT/0309136"),
        ("pmid", "0", "form"),
        ("oclc", "ocn 000123", "123"),
        ("pmid", "\u0663\u0664\u0665", "form"),
    ],
)
def test_identifiers(scheme: str, text: str, normal: str) -> None:
    if normal in ("form", "check"):
        assert read_identifiers(scheme, text) == ([], [f"{scheme}_{normal}"])
    else:
        assert read_identifiers(scheme, text) == ([normal], [])
        assert read_identifiers(scheme, normal) == ([normal], [])


@given(st.integers(0, 999_999_999))
def test_every_isbn_of_ten_digits_becomes_one_of_thirteen(number: int) -> None:
    digits = f"{number:09d}"
    last = next(
        sign
        for sign in "0123456789X"
        if not sum((10 - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits + sign))
        % 11
    )
    (isbn,), wrong = read_identifiers("isbn", digits + last)
    assert not wrong
    assert isbn[:12] == f"978{digits}"
    assert not sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(isbn)) % 10
    for other in "0123456789X".replace(last, ""):
        assert read_identifiers("isbn", digits + other) == ([], ["isbn_check"])


@pytest.mark.parametrize(
    ("language", "text", "date"),
    [
        ("en", "2004", "2004"),
        ("en", "May 5, 2004", "2004-05-05"),
        ("en", "Wednesday, 5th of Sept. 2004", "2004-09-05"),
        ("en", "2004-05-06T10:00:00Z", "2004-05-06"),
        ("en", "2020-05", "2020-05"),
        ("en", "2011\u20105\u201010", "2011-05-10"),
        ("en", "2011/13/10", None),
        ("en", "2011-00-10", None),
        ("en", "2004-05", None),  # two years, or a month
        ("en", "13/04/2020", "2020-04-13"),
        ("en", "04/13/2020", "2020-04-13"),
        ("en", "4/4/2020", "2020-04-04"),
        ("en", "04.03.2020", None),
        ("de", "04.03.2020", "2020-03-04"),
        ("en", "Spring 2004", "2004"),
        ("en", "5–7 May 2004", "2004-05"),
        ("en", "30 April – 2 May 2004", "2004"),
        ("en", "May 2004 – June 2005", None),
        ("en", "c. 1850", None),
        ("en", "1850?", None),
        ("en", "February 30, 2004", None),
        ("en", "0000", None),
        ("fr", "1er août 2004", "2004-08-01"),
        ("fr", "5 jui 2004", None),  # June or July
        ("de", "1. Jänner 2004", "2004-01-01"),
        ("ru", "5 мая 2004 года", "2004-05-05"),
        ("pl", "maj 2004", "2004-05"),
        ("es", "5 de mayo de 2004", "2004-05-05"),
        ("ja", "2004年5月6日", "2004-05-06"),
        ("zh", "2004年5月", "2004-05"),
    ],
)
def test_dates_without_doubt(language: str, text: str, date: str | None) -> None:
    assert sure_date(text, language) == date


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("http://www.webcitation.org/5cMr?url=http%3A%2F%2Fa.org%2Fb", {"url": "http://a.org/b"}),
        ("http://web.archive.org/web/20059999000000/http://a.org", {"url": "http://a.org", "archive_date": None}),
        ("https://archive.ph/aBc12", {"url": None, "archive_url": "https://archive.ph/aBc12"}),
        ("//doi.org/10.1000/X", {"url": "https://doi.org/10.1000/X", "doi": "10.1000/x", "archive_url": None}),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC77/", {"pmc": "77"}),
        ("https://web.archive.org/web/2009/http://doi.org/10.1000/x", {"doi": "10.1000/x", "archive_date": None}),
    ],
)
def test_links(url: str, fields: dict[str, str | None]) -> None:
    link = read_link(url, " a\n b ")
    assert link.title == "a b"
    assert {name: getattr(link, name) for name in fields} == fields


def test_identifiers_in_running_text() -> None:
    found = read_text("Lee, The Sea, ISBN 0-306-40615-2, p. 3; doi:10.1000/X. PMID 5")
    assert found is not None
    assert (found.isbn, found.doi, found.pmid) == ("9780306406157", "10.1000/x", "5")
    assert read_text("Lee, The Sea, ISBN 0-306-40615-3") is None
    assert read_text("HDL 40/60 mg, JSTOR stable, isbn none, PMID zero") is None
    assert identifiers_of_address("http://example.org/doi.org/10.1/x") == {}


@pytest.mark.parametrize(
    ("arguments", "url", "losses"),
    [
        ("url=www.example.org/a//b", None, ("url_form",)),
        ("url=//example.org/a", "https://example.org/a", ()),
        ("url=[http://example.org/a A]", "http://example.org/a", ()),
        ("title=AC//DC", None, ()),
        ("title=[//example.org/a AC//DC]", "https://example.org/a", ()),
        ("chapter-url=http://example.org/c", "http://example.org/c", ()),
    ],
)
def test_addresses(arguments: str, url: str | None, losses: tuple[str, ...]) -> None:
    found = read_use(f"{{{{Cite web|quote=Q|{arguments}}}}}", "en")
    assert found is not None
    assert (found.url, found.losses) == (url, losses)


@pytest.mark.parametrize("language", sorted({*DATA["templates"], *DATA["notes"], *DATA["doubts"]}))
def test_no_citation_is_a_template_that_shows_a_value(language: str) -> None:
    """Nor is a mark of pages: what the rules of templates render is text of the page."""
    names = {name for names in DATA["templates"].get(language, {}).values() for name in names}
    names |= set(DATA["notes"].get(language, {}).get("pages", ()))
    find = find_rule(language)
    shown = {name for name in names if find(upper_first(name, language)).outcome in ("rendered", "infobox")}
    assert shown <= set(DATA["templates"].get(language, {}).get("none", ()))


def test_values_that_show_nothing_have_a_name() -> None:
    arguments = {"title": "{{Void}}", "author": "<b></b>", "date": "{{Void}}", "work": "The Shore"}
    found = read_citation("Cite web", arguments, language="en", plain=lambda _: "")
    assert found is not None
    assert (found.title, found.authors, found.date_text, found.work) == (None, (), None, "The Shore")
    assert found.losses == ("invisible_value",) * 3


@pytest.mark.parametrize(
    ("language", "notes"),
    [
        (
            "en",
            {"Sfn": "short", "Harvard citation no brackets": "short_text", "Rp": "pages", "R": "reuse", "Efn": "note"},
        ),
        ("en", {"Cn": "doubt:citation_needed", "Dead link": "doubt:dead_link", "Or": "doubt:original_research"}),
        ("simple", {"Cn": "doubt:citation_needed", "Cite web": None, "Reflist": "list"}),
        (
            "de",
            {"Or": None, "Citation needed": "doubt:citation_needed", "Toter Link": "doubt:dead_link", "Sfn": "short"},
        ),
        ("fr", {"Harvsp": "short_text", "Référence nécessaire": "doubt:citation_needed", "P.": None}),
        ("es", {"Cita requerida": "doubt:citation_needed", "Enlace roto": "doubt:dead_link"}),
        ("it", {"Cita": "short_text", "Senza fonte": "doubt:citation_needed"}),
        ("nl", {"Bron?": "doubt:citation_needed", "Dode link": "doubt:dead_link"}),
        ("pl", {"Odn": "short", "R": "reuse", "Fakt": "doubt:citation_needed"}),
        ("pt", {"Carece de fontes": "doubt:citation_needed", "Quem": "doubt:by_whom"}),
        (
            "ru",
            {"Нет АИ": "doubt:citation_needed", "Нет в источнике": "doubt:failed_verification", "Sfn0": "short_text"},
        ),
        ("sv", {"Källa behövs": "doubt:citation_needed", "Död länk": "doubt:dead_link"}),
        ("ja", {"要出典": "doubt:citation_needed", "リンク切れ": "doubt:dead_link", "Efn2": "note"}),
        ("zh", {"來源請求": "doubt:citation_needed", "失效链接": "doubt:dead_link"}),
    ],
)
def test_notes_and_doubts(language: str, notes: dict[str, str | None]) -> None:
    assert {name: find_note(name, language) for name in notes} == notes


def test_templates_of_one_name_in_two_languages() -> None:
    assert read_use("{{Citation|Les mots}}", "fr") is None
    assert read_use("{{Lien web|titre=A}}", "en") is None
    found = read_use("{{Cite web|title=A|titre=B|last=C|nom1=D}}", "fr")  # English templates, both vocabularies
    assert found is not None
    assert (found.title, found.authors, found.losses) == (
        "A",
        ("C",),
        ("unused_parameter:last", "unused_parameter:title"),
    )


_PARAMETERS = sorted({name for names in DATA["parameters"]["en"].values() for name in names.split()} | {"1", "x#"})


@given(
    st.sampled_from(["Cite web", "Cite book", "Webarchive", "ISBN", "Cite doi"]),
    st.dictionaries(
        st.sampled_from(_PARAMETERS).flatmap(lambda name: st.sampled_from([name, name.replace("#", "7")])) | st.text(),
        st.text() | st.from_regex(r"[\[{(&<]{0,3}(//)?[0-9X.:/-]{0,20}[\]})]*", fullmatch=True),
    ),
    st.sampled_from(["en", "de", "fr", "ja", "tlh"]),
)
def test_any_arguments_are_read(name: str, arguments: dict[str, str], language: str) -> None:
    found = read_citation(name, arguments, language=language, plain=plain)
    assert found is not None
    assert found.kind in KINDS
    assert all(found.losses)
    assert None not in (*found.authors, *found.editors)


@pytest.mark.parametrize(
    "value", ["(", "((", "a,", "//", "&amp;", "1-", "10.1000/", "http://", "5 May ", "archive.org/web/1", "年", ";"]
)
def test_hostile_values_take_linear_time(value: str) -> None:
    def work(times: int) -> None:
        arguments = {name.replace("#", "1"): value * times for name in _PARAMETERS}
        assert read_citation("Citation", arguments, language="en", plain=lambda text: text) is not None
        read_link(value * times)
        read_text(value * times)
        many = {f"{name}{number}": value for number in range(times // 4) for name in ("isbn", "auteur", "x")}
        assert read_citation("Ouvrage", many, language="fr", plain=lambda text: text) is not None

    assert_linear(work, 1_000)
