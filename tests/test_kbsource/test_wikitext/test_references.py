"""References by their form, as MediaWiki's Cite numbers them, and the places of their marks."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.site import Site
from kbsource.wikitext.dependencies import Dependencies
from kbsource.wikitext.markers import ANY_CONTROL
from kbsource.wikitext.parse import ParsedText, WikitextParser
from kbsource.wikitext.reference_texts import NoteKinds, ReferenceReader
from kbsource.wikitext.references import MAX_NESTED
from tests.support.growth import assert_linear
from tests.support.wikitexts import Dictionary

NOTED, PLAIN = WikitextParser(Site(lang="en"), has_references=True), WikitextParser(Site(lang="en"))


def parse(wikitext: str) -> ParsedText:
    """The page, which is the same without its references."""
    parsed = NOTED.parse(wikitext, title="T")
    assert replace(parsed, references=None) == PLAIN.parse(wikitext, title="T")
    return parsed


def refs(wikitext: str) -> list[tuple[str, int | None, str]]:
    """Group, number and text of the references of a page."""
    parsed = parse(wikitext)
    assert parsed.references is not None
    return [(ref.group, ref.number, ref.text) for ref in parsed.references.refs]


def marked(wikitext: str) -> str:
    """The text of a page with ``[ref]`` or ``[doubt]`` where a mark stands."""
    return with_marks(parse(wikitext))


def with_marks(parsed: ParsedText) -> str:
    """The same of a page that is parsed."""
    assert parsed.references is not None
    texts = [element.text for element in parsed.elements]
    for use in reversed(parsed.references.uses):
        if use.element is not None and use.offset is not None:
            text = texts[use.element]
            pages = f":{use.pages}" if use.pages else ""
            mark = f"[{use.cleanup_tag or use.ref}{pages}]"
            texts[use.element] = text[: use.offset] + mark + text[use.offset :]
    return "|".join(texts[1:])


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("a<ref>x</ref> b<ref>x</ref>", [("", 1, "x"), ("", 2, "x")]),  # without a name no two are one
        ("a<ref name=n/> b<ref name='n'>x</ref> c<ref name=n />", [("", 1, "x")]),
        ("a<ref name='p q'>x</ref> b<ref name=\"p  q\"/>", [("", 1, "x")]),
        ("a<ref group=g>x</ref> b<ref>y</ref> c<ref group=g>z</ref>", [("g", 1, "x"), ("", 1, "y"), ("g", 2, "z")]),
        ("a<ref name=n group=g>x</ref> b<ref name=n>y</ref>", [("g", 1, "x"), ("", 1, "y")]),
        ("a<ref name=n/><references><ref name=n>x</ref></references>", [("", 1, "x")]),
        ("a<ref name=n/>{{reflist|refs=<ref name=n>x</ref><ref name=m>y</ref>}}", [("", 1, "x"), ("", None, "y")]),
        ("a<ref name=n>x</ref><references/> b<ref>y</ref>", [("", 1, "x"), ("", 1, "y")]),  # begins again
        ("a<ref group=g>x</ref><references/> b<ref group=g>y</ref>", [("g", 1, "x"), ("g", 2, "y")]),
        ("a{{efn|x}} b{{refn|group=n|y}}", [("lower-alpha", 1, "x"), ("n", 1, "y")]),
        ("a{{#tag:ref|z|name=k}} b<ref name=k/>", [("", 1, "z")]),
        ("a{{efn|x<ref>y</ref>}} b<ref>z</ref>", [("", 1, "y"), ("lower-alpha", 1, "x"), ("", 2, "z")]),
        ("a{{refn|See {{cite book|title=B|year=1999}}.}}", [("", 1, "See B. 1999..")]),
        ("a<ref name=n>x</ref> b{{r|n}}", [("", 1, "x")]),
        ("a{{sfn|Lee|1901|p=7}} b{{sfn|Lee|1901|p=7}}", [("", 1, "Lee 1901, p. 7")]),
        ("a{{sfn|Lee|1901|p=7}} b{{Sfnp| Lee|1901 |page=7|ps=.}}", [("", 1, "Lee 1901, p. 7")]),
        ("a{{sfn|Lee|1901|p=7}} b{{sfn|Lee|1901|p=8}}", [("", 1, "Lee 1901, p. 7"), ("", 2, "Lee 1901, p. 8")]),
        ("a<ref></ref> b<ref name=7>x</ref> c<ref>open", []),
        ("a<ref name=n>x</ref><ref name=n>y</ref>", [("", 1, "x")]),  # the first one holds
        ("a<ref>[http://x.example/ The ''X'']</ref>", [("", 1, "The X")]),
        ("a<ref>http://x.example/</ref><ref>[http://y.example/]</ref>", [("", 1, "http://x.example/"), ("", 2, "http://y.example/")]),
        ("a<ref name=n>x</ref> b<ref extends=n>p. 7</ref> d<ref>y</ref>", [("", 1, "x"), ("", 2, "y")]),
        ("a<ref name=n>x</ref> b<ref follow=n>goes on</ref> c<ref>y</ref>", [("", 1, "x"), ("", 2, "y")]),
        ("<nowiki><ref>x</ref></nowiki><!-- <ref>y</ref> -->", []),
    ],
)  # fmt: skip
def test_references_are_those_of_cite(wikitext: str, expected: list[tuple[str, int | None, str]]) -> None:
    assert refs(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("One.<ref>x</ref> Two<ref>y</ref>, three", "One.[0] Two[1], three"),
        ("One <ref>x</ref> two", "One[0] two"),
        ("One <ref>x</ref>, two (<ref>y</ref>) three", "One[0], two[1] three"),
        ("The [[bus]]<ref>x</ref>es", "The bus[0]es"),
        ("[[bus<ref>x</ref>]]es", "bus[0]es"),
        ("One\n<ref>x</ref>\n\nTwo", "One[0]|Two"),
        ("One\n<ref>x</ref> two", "One[0] two"),
        ("* One<ref>x</ref>\n* <ref>y</ref> Two", "One[0]|[1]Two"),
        ("== A<ref>x</ref> ==\n''B''<ref>y</ref>''', c", "A[0]|B[1], c"),
        ("A<ref>x</ref><ref>y</ref>{{rp|3}} b", "A[0][1:3] b"),
        ("A{{cn|date=May 2020}} b{{dubious}}.", "A[citation_needed] b[dubious]."),
        ("A {{nowrap|big<ref>x</ref> house}} b", "A big[0] house b"),
        ("A {{lang|fr|mot}}<ref>x</ref>. {{convert|5|km<ref>y</ref>}} away", "A mot[0]. 5 km[1] away"),
        ("A {{zzz<ref>x</ref>|two words}} b", "A two words[0] b"),
        ("A\n\n{{zzz<ref>x</ref>|two words}}\n\nb", "A[0]|b"),
        ("A&#91;<ref>x</ref>&#93; [<ref>y</ref>[B]]", "A[[0]][1] B"),
    ],
)
def test_marks_stand_behind_what_they_follow(wikitext: str, expected: str) -> None:
    assert marked(wikitext) == expected


def test_details_of_a_reference_are_the_pages_of_its_use() -> None:
    assert marked("a<ref name=n details='p. 5'>x</ref> b<ref extends=n>p. 7</ref>") == "a[0:p. 5] b[0:p. 7]"


PAGES = tomllib.loads((Path(__file__).parents[2] / "golden" / "references" / "pages.toml").read_text("utf-8"))["page"]


@pytest.mark.parametrize("page", PAGES, ids=[page["language"] for page in PAGES])
def test_golden_page(page: dict[str, Any]) -> None:
    """Everything that a row says but where its page is and how it is written there."""
    found = WikitextParser(Site(lang=page["language"]), has_references=True).parse(page["wikitext"], title="T")
    assert found.references is not None
    hidden, nothing = ("page_id", "ref", "source_number", "markup", "markup_sha256"), (None, "", [])
    rows = []
    for ref in found.references.refs:
        row = msgspec.json.decode(msgspec.json.encode(ref))
        row |= row.pop("citation") or {}
        rows.append({name: value for name, value in row.items() if name not in hidden and value not in nothing})
    assert with_marks(found).partition("|")[0] == page["marked"].replace(": ", ":")
    assert rows == page["refs"]


class Wiki(dict[str, str]):
    """Definitions by name."""

    def source(self, name: str) -> str | None:
        return self.get(name)

    def target(self, name: str) -> str:
        return name

    def module(self, name: str) -> None:
        return None


def test_the_wikis_own_redirects_and_the_references_of_definitions_are_known() -> None:
    doubt = '<sup class="noprint">[citation needed]</sup>'
    area = "5 km<ref>A map.</ref>{{#tag:ref|b}}"
    wiki = Wiki({"Citation needed": doubt, "Qqq": doubt, "Area": area, "Empty": ""})
    noted = WikitextParser(Site(lang="en"), has_references=True, definitions=wiki)
    found = noted.parse("a{{qqq|x}} b{{area}} {{area}} c{{empty}}<ref>x{{Qqq}}</ref>", title="T").references
    assert found is not None
    assert [(use.ref, use.cleanup_tag, use.offset, use.within) for use in found.uses] == [
        (None, "citation_needed", 1, None),
        (0, None, 14, None),
        (None, "citation_needed", None, 0),
    ]
    assert found.counts["in_definition"] == 4


def test_marks_on_a_line_of_their_own_below_a_heading_stand_in_its_section_alone() -> None:
    noted = WikitextParser(Site(lang="fr"), has_references=True)
    wikitext = "a\n== B<ref>x</ref> ==\n{{Section à sourcer|date=1}}\n<ref>y</ref>\n\nc\n{{Section à sourcer}}"
    found = noted.parse(wikitext, title="T").references
    assert found is not None
    assert [(use.ref, use.cleanup_tag, use.element, use.section) for use in found.uses] == [
        (0, None, 2, ("B",)),
        (None, "citation_needed", None, ("B",)),
        (1, None, None, ("B",)),
        (None, "citation_needed", 3, ("B",)),
    ]
    assert found.counts["without_place"] == 2


def test_what_stands_outside_of_running_text_says_where() -> None:
    parsed = parse(
        "{{Infobox person|born=1900<ref>a</ref>}}\n{| \n| x<ref>b</ref>\n{| \n| y<ref>c</ref>\n|}\n|}<ref>d</ref>\n"
        "[[File:A.jpg|thumb|e<ref>e</ref>]]\nText<ref>f {{dead link}}</ref>.\n"
        "<gallery>\nA.jpg|g<ref>g</ref>\n</gallery>"
    )
    assert parsed.references is not None
    found, uses, counts = parsed.references
    assert [(found[use.ref].text, use.infobox, use.table) for use in uses if use.ref is not None] == [
        ("a", 0, None), ("b", None, 0), ("c", None, 1), ("d", None, 0), ("e", None, None), ("f", None, None),
        ("g", None, None),
    ]  # fmt: skip
    assert [(use.cleanup_tag, use.within) for use in uses if use.cleanup_tag] == [("dead_link", 5)]
    assert counts["without_place"] == 2  # the captions


def test_a_shortened_note_finds_its_source_in_the_bibliography() -> None:
    parsed = parse(
        "A{{sfn|Lee|May|1901|pp=7–9}} b<ref>{{harvnb|Roe|1950a}}</ref> c{{sfn|Poe|1800}}\n\n"
        "* {{cite book|last=Roe|first=R|title=R|date=5 May 1950a}}\n"
        "* {{cite book|last1=Lee|last2=May|title=L|year=1901}}"
    )
    assert parsed.references is not None
    found, uses, counts = parsed.references
    assert [(ref.form, ref.text, ref.source) for ref in found] == [
        ("short", "Lee & May 1901, pp. 7–9", 4),
        ("ref", "Roe 1950a", 3),
        ("short", "Poe 1800", None),
        ("work", "Roe, R (5 May 1950a). R.", None),
        ("work", "Lee; May (1901). L.", None),
    ]
    assert uses[0].pages == "7–9"
    assert counts["short_unresolved"] == 1


@pytest.mark.parametrize("anchor", ["{{sfnref|Mill Trust|1901}}", "{{harvid|Mill Trust|1901}}", "Mill Trust"])
def test_a_work_is_found_by_what_it_says_that_notes_name(anchor: str) -> None:
    wikitext = f"a{{{{sfn|Mill Trust|1901}}}}\n\n* {{{{cite book|title=B|publisher=M|year=1901|ref={anchor}}}}}"
    found = parse(wikitext).references
    assert found is not None
    assert [(ref.form, ref.source) for ref in found.refs] == [("short", 1), ("work", None)]


_PIECES = [
    "<ref>x</ref>", "<ref name=a/>", "<ref name=a>y</ref>", "{{sfn|A|2000}}", "{{efn|n<ref>z</ref>}}", "{{cn}}",
    "{{rp|4}}", "{{harvnb|A|2000}}", "{{nowrap|", "}}", "[[A|", "[[B]]", "]]", "[", "]", "(", ")", ",", ".", " ",
    "\n", "\n\n", "''", "'''", "* ", "; ", ":", "== ", " ==", "{|\n", "\n|-\n", "\n| ", "\n|}\n", "$", "{{lang|fr|",
    "word", "es", "<small>", "</small>", "<sup>", "</sup>", "[http://a.example ", "&nbsp;", "\"", "«", "»",
    "{{unknown|", "|", "=", "{{Infobox x|a=", "<br>", "#", "<references>", "</references>", "{{reflist|refs=",
    "[[File:A.jpg|thumb|", "<gallery>\nA.jpg|", "</gallery>", "__NOTOC__", "-{", "}-", "<poem>", "</poem>", "<pre>",
    "</pre>", " indented", "----", "<ref>", "</ref>", "<nowiki/>", "<!-- -->",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=25))
def test_any_page_is_what_it_is_without_and_its_marks_stand_in_it(pieces: list[str]) -> None:
    try:
        plain = PLAIN.parse("".join(pieces), title="T")
    except ValueError:  # such a page is extracted by a simpler method
        assume(False)
    parsed = NOTED.parse("".join(pieces), title="T")
    assert replace(parsed, references=None) == plain
    assert parsed.references is not None
    for use in parsed.references.uses:
        if use.element is not None and use.offset is not None:
            before = parsed.elements[use.element].text[: use.offset]
            assert len(before) == use.offset
            assert not before[-1:].isspace()


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("http://a.b/c&#13;d", "http://a.b/c%0Dd"),
        ("http://x.y&#13", "http://x.y&#13"),
        ("[http://a.b/?x=1&copy=2&amp;lang=en A title]", "http://a.b/?x=1&copy=2&lang=en"),
        ("[http://a.b/&#x5D;c&#32;d A title]", "http://a.b/%5Dc%20d"),
        ("{{cite web|title=A|url=http://a.b/?x=1&copy=2&sect=3}}", "http://a.b/?x=1&copy=2&sect=3"),
    ],
)
def test_character_references_in_addresses(content: str, url: str) -> None:
    references = parse(f"<ref>{content}</ref>").references
    assert references is not None
    (found,) = references.refs
    assert found.citation is not None
    assert found.citation.url == url


@pytest.mark.parametrize("piece", ["<ref>x</ref>\n", "a <ref>x</ref>"], ids=["lines", "one line"])
def test_work_grows_with_the_page_alone(piece: str) -> None:
    def work(n: int) -> None:
        assert len(refs(piece * n)) == n

    assert_linear(work, 500)


@pytest.mark.parametrize(
    "wikitext",
    [
        "Start [[u|\n<references>\n]] end.",
        "[[ |>\n{{citnews}}<ref>\ny]]",
        "{{{{{{sfn|}}&<references>}}\ns}}",
        "{{{{sfn|}}</h2><ref>=}}",
        "l {{r|a|s}})",
        "a {{r|b|c}}{{r|d|e}}.",
        "[http://<references><]]",
        "[http<references>://x ]",
        "[ht{{sfn}}tp://y]",
        "[[a]<ref>b</ref>]",
        "[<ref>b</ref>[a]]",
        "{{{{{a|na}}]<ref>b</ref>}}}",
        "{{#tag:<references>}}",
        "=[[<references>{{}}|[[c]]]]",
        "[[a {{cn}} [[b]] c<ref>d</ref>]] e {{sfn|A|2000}} [[f",
        "|{{lang||<references>{{}}}}<",
        "={{nowrap|<references >{{|}}}}d",
        "a {{nowrap|<references/><ref>b</ref>}}* c",
        "a {{nowrap|<ref>b</ref><references/><ref>c</ref>}}= d =",
        "{{ISSN|{{Infobox|}}}}|-",
        "{{ISSN|{{Infobox|}}}}#",
        "{{ISSN|{{Infobox|a=<ref>b</ref>}}}}5 c",
        '{|\n!colspan=""<ref></ref>\n',
        "{|\n| a\n| colspan=3<ref>b</ref>\n| c",
        "|-\n| a || colspan=3{{unknown}}<ref>b</ref>",
        "{{doi|<b}}>",
        "a {{ISSN|</b}}> <h2{{doi|<h2}} c='d'>",
        "a{{#tag:ref|b}} {{doi|&lt}}; {{ISSN|&#9}}1;",
        "{{doi|__NO}}TOC__ {{ISSN|a__NOTOC}}__",
    ],
)
def test_a_page_is_the_same_with_and_without_its_references(wikitext: str) -> None:
    parse(wikitext)


NEAR_A_BOUND = {
    "address": (800, "http://x.y/", "a<ref>b</ref>", "&#91;z"),
    "block in an address": (1200, "[//x.y ", "a<ref>b</ref>", "<div>c</div>] d"),
    "caption": (650, "{|\n| [[File:A.jpg|thumb|", "a<ref>b</ref>", "\n== x ==\n c]]\n| d\n|}\n"),
    "caption with rows": (650, "[[File:A.jpg|thumb|", "a<ref>b</ref>", "\n| x\n|- c]]\n| d\n|-\n| e"),
    "closing quote": (60, "a «", "<ref>b</ref> ", "»"),
    "heading by tag": (200, "<h2>", "a<ref>b</ref>", "\nc</h2>\nd"),
    "label": (150, "[[A|", "a<ref>b</ref>", "[http://x.y]]] z"),
    "line of a list": (400, "* ", "a<ref>b</ref>", "<div>c</div> d"),
    "line of cells": (400, "{|\n| ", "a<ref>b</ref>", "<div>c</div> d || e\n|}"),
    "line of a heading": (400, "== ", "a<ref>b</ref>", "<div>c</div> d ==\ne"),
    "raised": (20, "x<sup>", "a<ref>b</ref>", "</sup> y"),
    "row of a table": (3, "", "<ref>b</ref> ", "|<table>}}<table>"),
}
"""Places where the parser looks no further than some number of characters: how often a reference stands before one,
what is before, the reference, and what is behind."""


@pytest.mark.parametrize("place", NEAR_A_BOUND)
def test_references_do_not_change_how_far_the_parser_looks(place: str) -> None:
    n_references, before, reference, after = NEAR_A_BOUND[place]
    parse(before + reference * n_references + after)


def test_a_template_by_definition_is_the_same_with_and_without_a_list_of_references_in_it() -> None:
    facts = {"definitions": Dictionary({"Wrap": "{{{1|}}}"})}
    noted, plain = WikitextParser(Site(), has_references=True, **facts), WikitextParser(Site(), **facts)
    for wikitext in (">{{Wrap|<references>{{c}}}}{", "a{{Wrap|<references/>{{c}}{{c}}}}* b"):
        parsed = noted.parse(wikitext, title="T")
        assert replace(parsed, references=None, dependencies=None) == replace(
            plain.parse(wikitext, title="T"), dependencies=None
        )


def test_marks_keep_their_places_where_brackets_are_mended() -> None:
    assert marked("a [[b c<ref>x</ref> [[d]] e<ref>y</ref>") == "a b c[0] d e[1]"
    assert marked("a]] b<ref>x</ref> [[ c<ref>y</ref>") == "a b[0] c[1]"


@pytest.mark.parametrize(
    ("wikitext", "url"),
    [
        ("<ref>http://example.com/x{{dead link|date=May 2010}}</ref>", "http://example.com/x"),
        ("<ref>[http://a.example{{dead link}}]</ref>", "http://a.example"),
        ("<ref>[http://a.example<math>x</math> b]</ref>", "http://a.example"),
        ("<ref>http://a.example{{lien brisé}}</ref>", "http://a.example"),
        ("<ref>{{cite web|url=http://a.example{{dead link}}|title=x}}</ref>", "http://a.example"),
        ("<ref>http://a.example<ref></ref>", "http://a.example"),
        ("<ref>http://a.example/x''y''</ref>", "http://a.example/x"),
        ("<ref>[http://a.example/it's''y'' z]</ref>", "http://a.example/it's"),
        ("<ref>http://a.example/x&lt;y</ref>", "http://a.example/x"),
        ("<ref>http://a.example/x&#160;y</ref>", "http://a.example/x"),
        ("<ref>http://a.example/?x=1&amp;y=2</ref>", "http://a.example/?x=1&y=2"),
        ("<ref>[http://a.example/?x=1&amp;y=2 z]</ref>", "http://a.example/?x=1&y=2"),
    ],
)
def test_an_address_ends_where_mediawiki_ends_it(wikitext: str, url: str) -> None:
    found = parse(wikitext).references
    assert found is not None
    assert [ref.citation and ref.citation.url for ref in found.refs] == [url]


@pytest.mark.parametrize(
    ("content", "urls"),
    [
        ("http://a.example/1 http://b.example/2", ["http://a.example/1", "http://b.example/2"]),
        (
            "See http://a.example/1, [//b.example/2 B]; ftp://c.example/3.",
            [
                "http://a.example/1",
                "https://b.example/2",
                "ftp://c.example/3",
            ],
        ),
        ("(HTTP://a.example/1) http://b.example/x_(y)", ["HTTP://a.example/1", "http://b.example/x_(y)"]),
        ("{{cite web|url=http://a.example|title=A}} http://b.example", ["http://a.example", "http://b.example"]),
        (
            "[http://b.example B], {{cite web|url=http://a.example|title=A [http://c.example]}}",
            [
                "http://a.example",
                "http://b.example",
            ],
        ),
        ("{{cite book|title=A|id={{cite web|url=http://c.example}}}} http://b.example?", [None, "http://b.example"]),
        ("{{cite web|title=A|url=http://a.example/1}} ([https://www.a.example/1/ here])", ["http://a.example/1"]),
        (
            "{{cite web|title=A|url=http://a.example/1}} "
            "{{webarchive|url=http://web.archive.org/web/20100101000000/http://a.example/1}}",
            ["http://a.example/1"],
        ),
        ("{{harvnb|Lee|2001}}; http://a.example, https://a.example/.", ["http://a.example"]),
    ],
)
def test_every_link_of_a_reference_is_a_source(content: str, urls: list[str | None]) -> None:
    found = parse(f"a<ref>{content}</ref>").references
    assert found is not None
    assert [ref.citation and ref.citation.url for ref in found.refs] == urls
    assert [ref.source_number for ref in found.refs] == [*range(len(urls))]


def test_names_of_notes_and_parameters_hold_no_placeholders() -> None:
    found = parse("{{r|{{sfn|A|2000}}}} <ref name='&#1;a'>b</ref> <ref>{{cite web|{{=}}=1|{{cn}}x=2}}</ref>").references
    assert found is not None
    assert [(ref.form, ref.name) for ref in found.refs] == [("short", None), ("ref", "a"), ("ref", None)]
    assert found.refs[2].citation is not None
    assert not any(ANY_CONTROL.search(loss) for loss in found.refs[2].citation.losses)


def test_citations_in_the_values_of_one_are_part_of_it() -> None:
    found = parse("{{cite book|title=a|id={{ISSN|0028-0836}} {{cite book|title=b}}<ref>c</ref>}}").references
    assert found is not None
    assert [(ref.form, ref.markup) for ref in found.refs] == [
        ("ref", "c"),
        ("work", "{{cite book|title=a|id=ISSN 0028-0836 {{cite book|title=b}}<ref>c</ref>}}"),
    ]


BOX = "{{Infobox|a=b|c=[[d|e]]}}"


@pytest.mark.parametrize(
    ("wikitext", "markup"),
    [
        (f"a {{{{ISSN|{BOX}}}}}", f"{{{{ISSN|{BOX}}}}}"),
        (f"a {{{{cite book|title= {BOX} f}}}}", f"{{{{cite book|title= {BOX} f}}}}"),
        (f"a{{{{sfn|{BOX}|2000}}}}", f"{{{{sfn|{BOX}|2000}}}}"),
        (f"a{{{{efn|f\n{BOX}\ng}}}}", f"f\n{BOX}\ng"),
        (f"a{{{{efn|1={{{{zzz none|{BOX}}}}}}}}}", BOX),
        (f"a{{{{#tag:ref|{BOX}}}}}", BOX),
        ("a{{efn|{{Infobox|a={{Infobox|b=c<ref>d</ref>}}}}}}", "{{Infobox|a={{Infobox|b=c<ref>d</ref>}}}}"),
        ("a {{cite book|title={{nowrap|[[a|b]]}}}}", "{{cite book|title=[[a|b]]}}"),
        ("a {{cite book|title={{nowrap|1=a = b}}}}", "{{cite book|title=a = b}}"),
        ("a {{ISSN|{{nowrap|1=a = b}}}}", "{{ISSN|a {{=}} b}}"),
        ("a {{cite book|title=b{{!}}c}}", "{{cite book|title=b{{!}}c}}"),
        ("a{{efn|b{{!}}c{{=}}d}}", "b|c=d"),
        ("a{{efn|<gallery>\nA.jpg|b\n</gallery>c}}", "c"),
        ("a{{efn|b <references/>}}", "b <references/>"),
        ("a {{cite book|title=b <references>c}}", "{{cite book|title=b <references>c}}"),
        ("a {{cite book|title={{ubl|b|c}}}}", "{{cite book|title=\n\n* b\n* c\n\n}}"),
    ],
)
def test_markup_is_wikitext_without_placeholders(wikitext: str, markup: str) -> None:
    found = parse(wikitext).references
    assert found is not None
    assert markup in [ref.markup for ref in found.refs]


def test_equals_signs_that_come_out_of_templates_name_no_argument_of_a_note() -> None:
    assert refs("a{{efn|b {{nowrap|1=c = d}}}} e{{efn|f{{=}}g}}") == [
        ("lower-alpha", 1, "b c = d"),
        ("lower-alpha", 2, "f=g"),
    ]


def test_names_of_schemes_tags_and_attributes_are_ascii() -> None:
    assert refs("<ref>Do\u0130 10.1000/a</ref>") == [("", 1, "Do\u0130 10.1000/a")]
    assert parse("a<\u017fection begin=b />").elements[1].text == "a<\u017fection begin=b />"
    assert parse("<nowiki>a</now\u0131ki>b</nowiki>c").elements[1].text == "a</now\u0131ki>bc"


@pytest.mark.parametrize("others", ["{{cite book|title=", "{{cn|", "{{rp|", "{{reflist|refs=", "{{harvnb|"])
def test_notes_within_notes_are_counted_through_other_templates(others: str) -> None:
    found = parse(f"{{{{efn|{others}" * 40 + "b" + "}}}}" * 40).references
    assert found is not None
    assert sum(ref.form == "note" for ref in found.refs if not ref.source_number) <= MAX_NESTED + 1
    assert found.counts["nested"] > 30


def test_citations_in_citations_are_each_read_once() -> None:
    """When each was read by all around it, 24 of them took minutes and gigabytes."""

    def work(n: int) -> None:
        parse("{{Cite book|" * n + "=" + "}}" * n)
        parse("<ref>" + "{{cite book|title=" * n + "a" + "}}" * n + "</ref>")

    assert_linear(work, 24)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_citation_with_a_template_in_an_identifier_is_what_it_cites(language: str) -> None:
    parser = WikitextParser(Site(lang=language), has_references=True)
    for argument in ("id={{ISSN|0028-0836}}", "issn={{ISSN|0028-0836}}", "id={{doi|10.1000/other}}"):
        wikitext = f"a<ref>{{{{cite journal|title=B|doi=10.1000/x|{argument}}}}}</ref>"
        found = parser.parse(wikitext, title="T").references
        assert found is not None
        assert [(ref.citation and (ref.citation.kind, ref.citation.doi)) for ref in found.refs] == [
            ("journal", "10.1000/x")
        ]


def test_further_sources_of_a_reference_have_rows_of_their_own() -> None:
    found = parse(
        "a<ref>{{cite book|title=A}}; {{cite book|title=B}}, {{nowrap|{{cite web|url=http://c.example|title=C}}}}</ref>"
        " b<ref>[http://d.example D], [http://e.example E] "
        "[http://web.archive.org/web/20200102030405/http://d.example copy]</ref>"
    ).references
    assert found is not None
    rows = [(ref.ref, ref.source_number, ref.number, ref.citation and ref.citation.title) for ref in found.refs]
    assert rows == [(0, 0, 1, "A"), (1, 0, 2, "D"), (0, 1, None, "B"), (0, 2, None, "C"), (1, 1, None, "E")]
    assert found.counts["further_source"] == 3


def test_what_a_template_does_not_show_has_no_place() -> None:
    found = parse("== A ==\n{{zzz none|b<ref>c</ref>|d}}\nE{{zzz none|f|{{cn}}}}.<ref>g</ref>").references
    assert found is not None
    places = [(use.ref, use.cleanup_tag, use.element, use.offset) for use in found.uses]
    assert places == [(0, None, None, None), (None, "citation_needed", None, None), (1, None, 2, 2)]
    assert found.counts["without_place"] == 2


@pytest.mark.parametrize(
    ("language", "note", "group", "name"),
    [
        ("fr", "{{Note|groupe=N|nom=x|texte=b<ref>c</ref>}}", "N", "x"),
        ("fr", "{{Note|groupe=N|b<ref>c</ref>}}", "N", None),
        ("fr", "{{refn|groupe=N|b<ref>c</ref>}}", "N", None),
        ("es", "{{refn|grupo=N|nombre=x|b<ref>c</ref>}}", "N", "x"),
        ("pt", "{{refn|grupo=N|b<ref>c</ref>}}", "N", None),
    ],
)
def test_notes_of_other_languages(language: str, note: str, group: str, name: str | None) -> None:
    found = WikitextParser(Site(lang=language), has_references=True).parse(f"a{note}", title="T").references
    assert found is not None
    inner, outer = found.refs
    assert (inner.text, outer.form, outer.text, outer.group, outer.name) == ("c", "note", "b", group, name)
    assert [(use.ref, use.element, use.within) for use in found.uses] == [(0, None, 1), (1, 1, None)]


def test_a_page_whose_references_fail_keeps_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no reference can be read")

    wikitext = "a [[b]]<ref>c</ref>\n{|\n| d\n|}"
    monkeypatch.setattr(ReferenceReader, "__call__", fail)
    parsed = parse(wikitext)
    assert parsed.references == ((), (), {"failed": 1})
    assert [anchor.text for anchor in parsed.anchors] == ["b"]


CITING = ["{{cite web|title=", "|", "a", "=", "''b''", "url=http://x.example/", " ", "-", ":", "\u2009", "\n", "&nbsp;"]


@given(st.lists(st.sampled_from([*CITING, "[[c|d]]", "{{", "}}", "}}", "last=e", "quote=_"]), max_size=14).map("".join))
@example("{{cite web|title=---- a: b}}")
@example("{{cite web|title=a\u2009 b: c|last=|}}")
def test_a_citation_that_is_all_of_a_reference_says_what_all_steps_give(content: str) -> None:
    asked = Dependencies(Site())
    reader = ReferenceReader("en", PLAIN.plain, NoteKinds("en", None, asked), asked)
    assert reader.sole_citation(content) in (None, reader.by_steps(content))


def test_only_definitions_of_one_name_that_differ_are_a_conflict() -> None:
    alike = parse("a{{sfn|Lee|1901|p=7}} b{{Sfnp| Lee|1901 |page=7}}").references
    assert alike is not None
    assert "conflict" not in alike.counts
    different = parse('a<ref name="n">x</ref> b<ref name="n">y</ref>').references
    assert different is not None
    assert different.counts["conflict"] == 1
