"""Readable cases of wikitext and what a page stores of it, links read off directly and all by mwparserfromhell."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kbsource.site import Site
from kbsource.wikitext.parse import WikitextParser
from tests.support.wikitexts import shown

CASES = tomllib.loads((Path(__file__).parents[2] / "golden" / "wikitext" / "cases.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "parser"])
def test_golden_case(case: dict[str, Any], is_direct: bool) -> None:
    parsed = WikitextParser(Site(), is_direct=is_direct).parse(case["wikitext"], title="T")
    assert [shown(element) for element in parsed.elements[1:]] == case["elements"]
    links = [
        f"{anchor.text} -> {anchor.target_title}" + (f"#{anchor.target_fragment}" if anchor.target_fragment else "")
        for anchor in parsed.anchors
    ]
    assert links == case.get("links", [])
    assert list(parsed.categories) == case.get("categories", [])
    if "sort_keys" in case:
        assert list(parsed.category_sort_keys) == case["sort_keys"]
    counts = {loss.kind: loss.occurrences for loss in parsed.losses}
    for kind, pieces in case.get("losses", {}).items():
        assert counts.get(kind) == pieces, kind
    for anchor in parsed.anchors:
        assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text


@pytest.mark.parametrize(
    ("lang", "name"),
    [
        ("vi", "Tham khảo"),
        ("ar", "مراجع"),
        ("ko", "각주|2"),
        ("uk", "Примітки"),
        ("ja", "脚注リスト"),
        ("ja", "クリア"),
        ("he", "ש"),
        ("tr", "Temiz"),
        ("es", "clr"),
    ],
)
def test_templates_that_end_a_paragraph_do_so_in_languages_without_rules_for_them(lang: str, name: str) -> None:
    parsed = WikitextParser(Site(lang=lang)).parse(f"nineteen{{{{{name}}}}}twenty", title="T")
    assert [shown(element) for element in parsed.elements[1:]] == ["p nineteen", "p twenty"]
    assert [use.outcome for use in parsed.templates] == ["dropped"]


@pytest.mark.parametrize(
    ("lang", "work", "shown"),
    [
        ("en", "Cite book|last=Lee|first=Ann|title=[[Tides]]|year=2001|pages=3–5", "Lee, Ann (2001). Tides. pp. 3–5."),
        ("en", "cite book|title=Tides|series=Old Series|isbn=0-306-40615-2", "Tides. Old Series. ISBN 0-306-40615-2."),
        ("en", "cite book|title=Mar|trans-title=Sea|place=Rome|publisher=P", "Mar [Sea]. Rome: P."),
        ("en", "cite journal|title=T|journal=J|location=Rome|doi=10.1/x", "T. J. Rome. DOI 10.1/x."),
        ("en", "Citation|author=Lee|title=T|journal=J|volume=3|issue=2", "Lee. T. J 3 (2)."),
        (
            "fr",
            "Ouvrage|prénom=Ann|nom=Lee|titre=Les ''marées''|éditeur=X|année=2001",
            "Lee, Ann (2001). Les marées. X.",
        ),
        ("fr", "article|auteur=[[Lee]]|titre=T|périodique=P|date=3 mars 2001", "Lee (3 mars 2001). T. P."),
        (
            "de",
            "Literatur|Autor=Ann Lee|Titel=Gezeiten|Verlag=V|Ort=Kiel|Jahr=2001",
            "Ann Lee (2001). Gezeiten. Kiel: V.",
        ),
        ("es", "cita libro|apellido=Lee|nombre=Ann|título=Mareas|año=2001", "Lee, Ann (2001). Mareas."),
        (
            "it",
            "Cita libro|autore=Ann Lee|titolo=Maree|anno=2001|editore=E|città=Pisa",
            "Ann Lee (2001). Maree. Pisa: E.",
        ),
        ("pt", "citar livro|último=Lee|título=Marés|ano=2001", "Lee (2001). Marés."),
        ("ru", "книга|автор=Ли|заглавие=Приливы|год=2001|издательство=И|место=М.", "Ли (2001). Приливы. М.: И."),
    ],
)
def test_works_that_a_list_cites_are_read_in_every_language(lang: str, work: str, shown: str) -> None:
    parsed = WikitextParser(Site(lang=lang)).parse(f"x {{{{{work}}}}}\n* {{{{{work}}}}}\n* {{{{{work}}}}} y", title="T")
    assert [element.text for element in parsed.elements[1:]] == ["x", shown, f"{shown} y"]
    assert len(parsed.anchors) == 2 * work.count("[[")


def test_episodes_are_rows_of_a_table_with_their_summaries() -> None:
    episodes = "{{Episode list|EpisodeNumber=1|Title=A|ShortSummary=He [[death|dies]].}}\n{{Episode list|Title=B}}"
    for wikitext in (f"{{{{Episode table|episodes=\n{episodes}\n}}}}", f"{{|\n{episodes}\n|}}"):
        [table] = WikitextParser(Site()).parse(wikitext, title="T").tables
        assert [[cell.text for cell in row] for row in table.rows] == [["1", '"A"'], ["He dies."], ["", '"B"']]
