"""Definitions of templates: readable cases, what is remembered, what modules are given, what hostile ones cost."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from kbsource.site import Site
from kbsource.wikitext import expander
from kbsource.wikitext.expander import MAX_CHARS, MAX_LOOK_UPS, MAX_WORK, Expander, Frame, Invoke, PageExpander
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.markers import CUT
from kbsource.wikitext.parse import ParsedText, WikitextParser
from kbsource.wikitext.templates import find_rule
from tests.support.examples import examples
from tests.support.wikitexts import Dictionary, check_laws, shown

GOLDEN = Path(__file__).parents[2] / "golden" / "templates" / "definitions.toml"
GROUPS = tomllib.loads(GOLDEN.read_text("utf-8"))
DEFINITIONS = {name: source for group in GROUPS.values() for name, source in group["definitions"].items()}
CASES = [(wikitext, shown, *rest) for group in GROUPS.values() for wikitext, shown, *rest in group["cases"]]
IS_RIGA = frozenset({"Riga"}).__contains__
GOLDEN_PARSER = WikitextParser(Site(lang="ltg"), definitions=Dictionary(DEFINITIONS), exists=IS_RIGA)


def facts(parsed: ParsedText) -> dict[str, list[str]]:
    for anchor in parsed.anchors:
        assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text
    return {
        "links": [f"{anchor.text} -> {anchor.target_title}{'*' * anchor.from_template}" for anchor in parsed.anchors],
        "categories": [f"{name}{'*' * (name in parsed.template_categories)}" for name in parsed.categories],
        "tables": ["/".join(";".join(cell.text for cell in row) for row in t.rows) for t in parsed.tables],
        "infoboxes": [
            " ".join((box.name, *(f"{field.name}={field.text}" for field in box.fields))) for box in parsed.infoboxes
        ],
        "losses": [loss.kind for loss in parsed.losses],
        "outcomes": [f"{use.name} {use.outcome}" for use in parsed.templates],
    }


def test_equals_signs_that_templates_show_name_no_field_of_an_infobox_by_definition() -> None:
    definitions = Dictionary({"Steckbrief": '<table class="infobox"><tr><td>{{{1}}}</td></tr></table>'})
    parser = WikitextParser(Site(), definitions=definitions)
    [box] = parser.parse("{{Steckbrief|{{nowrap|1=a = b}}{{!}}c|d=e}}", title="T").infoboxes
    assert [(field.name, field.text) for field in box.fields] == [("1", "a = b|c"), ("d", "e")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:50])
def test_golden(case: tuple[str, str, dict[str, Any]]) -> None:
    wikitext, expected, *rest = case
    parsed = GOLDEN_PARSER.parse(wikitext, title="Test page", timestamp="2016-02-19T12:00:00Z")
    assert "\n".join(map(shown, parsed.elements[1:])) == expected
    found = facts(parsed)
    for name, value in (rest[0] if rest else {}).items():
        assert found[name] == value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:50])
def test_nothing_shown_depends_on_what_boxes_hold(
    case: tuple[str, str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expander, "without_insides", lambda tree, is_category: tree)
    full = WikitextParser(Site(lang="ltg"), definitions=Dictionary(DEFINITIONS), exists=IS_RIGA)
    facts_of = {"title": "Test page", "timestamp": "2016-02-19T12:00:00Z"}
    assert full.parse(case[0], **facts_of) == GOLDEN_PARSER.parse(case[0], **facts_of)


SITE = Site(lang="ltg")


def parser(definitions: Mapping[str, str], **options: object) -> WikitextParser:
    return WikitextParser(SITE, definitions=Dictionary(definitions), **options)  # type: ignore[arg-type]


def text(parsed: ParsedText) -> str:
    return "\n".join(element.text for element in parsed.elements[1:])


def doubling(last: str) -> dict[str, str]:
    return {f"D{number}": f"{{{{D{number - 1}}}}}" * 2 if number else last for number in range(31)}


HOSTILE: dict[str, tuple[dict[str, str], str]] = {
    "recursion": ({"A": "{{A}}"}, "{{A}}"),
    "mutual recursion": ({"A": "{{B}}", "B": "{{A}}"}, "{{A}}"),
    "doubled output": (doubling("0123456789"), "{{D30}}"),
    "doubled emptiness": (doubling(""), "{{D30}}"),
    "doubled arguments": (
        {f"E{n}": f"{{{{E{n - 1}|{{{{{{1}}}}}}{{{{{{1}}}}}}}}}}" if n else "{{{1}}}" for n in range(31)},
        "{{E30|0123456789}}",
    ),
    "doubled conditions": (
        {f"F{n}": f"{{{{#if:{{{{F{n - 1}}}}}|{{{{F{n - 1}}}}}}}}}" if n else "x" for n in range(31)},
        "{{F30}}",
    ),
    "a million arguments": ({"A": "{{{1}}}"}, "{{A" + "|a" * 1_000_000 + "}}"),
    "arguments inside": ({"A": "{{B" + "|a" * 400_000 + "}}", "B": "x"}, "{{A}}"),
    "unclosed templates": ({"A": "{{B|" * 100_000}, "{{A}}"),
    "unclosed links": ({"A": "[[B|" * 100_000}, "{{A}}"),
    "nested conditions": ({"A": "{{#if:x|" * 20_000 + "y" + "}}" * 20_000}, "{{A}}"),
    "nested cases": ({"A": "{{#switch:{{#ifeq:a|" * 2_000 + "y" + "}}}}" * 2_000}, "{{A}}"),
    "a long chain": ({f"G{n}": f"{{{{G{n - 1}}}}}" if n else "x" for n in range(300)}, "{{G299}}"),
    "too large": ({"A": "x" * 1_000_000}, "{{A}}{{A|1}}{{A|2}}"),
    "many uses": ({"A": "{{B}}" * 900, "B": "{{C}}" * 900, "C": "x"}, "{{A}}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_definitions_cost_their_page_and_no_more(name: str) -> None:
    definitions, use = HOSTILE[name]
    hostile = parser({**definitions, "Fine": "fine"})
    parsed = hostile.parse(f"before {use} after", title="T")
    assert "limit_exceeded" in {use.outcome for use in parsed.templates}
    assert text(parsed).startswith("before")
    assert text(parsed).endswith("after")
    assert text(hostile.parse("{{Fine}}", title="U")) == "fine"


@pytest.mark.parametrize("name", ["doubled output", "doubled arguments", "doubled emptiness", "a million arguments"])
def test_work_is_counted_and_bounded(name: str) -> None:
    definitions, use = HOSTILE[name]
    page = PageExpander(Expander(Dictionary(definitions), SITE, find_rule("ltg")), PageFacts("ltg", "T"))
    for call in use.removeprefix("{{").removesuffix("}}").split("}}{{"):
        page.expand(call, call.partition("|")[0])
    assert page.work <= MAX_WORK + len(use)
    assert page.n_chars <= 2 * MAX_CHARS  # the last text may be as long as all before it


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param("<nowiki>" * 20_000, id="nowiki"),
        pytest.param("<onlyinclude>" * 20_000 + "</onlyinclude>", id="onlyinclude"),
        pytest.param("a<noinclude>" * 20_000, id="noinclude"),
        pytest.param("<div class=navbox>" * 20_000, id="boxes"),
        pytest.param("<div class=navbox>" * 10_000 + "</div>" * 10_000, id="nested boxes"),
        pytest.param("{|\n|\n" * 10_000 + "|}\n" * 10_000, id="nested tables"),
        pytest.param("<span>" * 10_000 + "</div>" * 10_000, id="other closers"),
        pytest.param("<div class='" + "a " * 100_000 + "'>x</div>", id="classes"),
        pytest.param(":''" + "[[ ''" * 20_000, id="quotes"),
        pytest.param("{{{a|" * 10_000 + "}}}" * 10_000, id="parameters"),
        pytest.param("{{#expr:" + "(" * 50_000 + "}}", id="brackets"),
        pytest.param("[[a" + "\u0301\u0323" * 500_000 + "]]", id="marks"),
    ],
)
def test_broken_definitions_end(definition: str) -> None:
    check_laws(parser({"A": definition}).parse("a {{A}} b", title="T"))


@pytest.mark.parametrize(
    "wikitext",
    [
        "&#{}; [[&#{};]] [[Category:&#{};]] [[a#&#{};|b]] {{:&#{};}} {{A&#{};}} <ref name={}>a</ref>",
        "[[{}]] [[File:x.jpg|{}px|upright={}]] [[:en:{}]] [[Special:Redirect/page/{}]] RFC {} ISBN {} http://x:{}/ x",
        "<ol start={}><li>x</ol> <h{}>x</h{}> {{{{{{{}|x}}}}}} <span style='width:{}px'>x</span>",
        "{|\n| colspan={} rowspan='{}' | a\n|}\n<table><td colspan={}>x",
        "{{A|{}=x|1={}}} {{#ifexist:&#{};|a|b}} {{#titleparts:a/b|{}|{}}} {{#sub:abc|{}|-{}}} {{ns:{}}}",
        "{{padleft:x|{}}} {{#explode:a b| |{}|{}}} {{#pos:abc|c|{}}} {{plural:{}|a|b}} {{formatnum:{}}}",
        "{{#expr:{}+{}}} {{#expr:1 round {}}} {{#ifexpr:{}|a|b}} {{#ifeq:{}|{}0|a|b}} {{#switch:{}|{}0=a|b}}",
        "{{#time:Y|{}}} {{#time:Y|@{}}} {{#time:Y|+{} days}} {{#formatdate:{}-01-01}}",
        "{{ordinal|{}}} {{century|{}}} {{convert|{}|km|mi|{}}} {{birth date|{}|{}|{}}} {{death year and age|{}|{}}}",
    ],
)
@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000, "\u0669" * 5000])
def test_numbers_of_any_length_are_read(wikitext: str, number: str) -> None:
    wikitext = wikitext.replace("{}", number)
    check_laws(parser({"A": "{{{1}}}"}).parse(wikitext, title="T"))
    check_laws(parser({"A": "{{{1}}}", "B": wikitext}).parse("{{B}}", title="T"))


@pytest.mark.parametrize(
    "character", [f"&#{n};" for n in (1, 6, 9, 13, 27, 31)] + ["\r", "\x06", "%06", "%0D", "\x7f", "%7F"]
)
def test_no_control_character_is_shown(character: str) -> None:
    wikitext = (
        "a{}b [[x{}y#z{}|a{}b]] [[Category:x{}y]] {{A|x{}\ny}} {{A{}|b}} {{lc:A{}}}\n"
        "{{urldecode:a\n{}T9}} {{#urldecode:{}}} {{padleft:x|5|{}}} {{#replace:a|a|{}}} <nowiki>a{}</nowiki>\n"
        "* l{}\n== h{} ==\n{|\n|+ c{}\n! a{}b\n| [[x{}|y{}]]\n|}\n{{Infobox x|a{}=b{}|c=[[d{}]]}}\n<pre>a{}</pre>"
    ).replace("{}", character)
    for page, definition in (
        (wikitext, "{{{1}}}"),
        ("{{B}}", "{{{1}}}"),
        (f"{{{{A|{wikitext}}}}}", "{{{1}}}{{lc:{{{1}}}}}"),
    ):
        check_laws(parser({"A": definition, "B": wikitext}).parse(page, title="T"))


def test_a_switch_of_500_arms() -> None:
    arms = "".join(f"|K{number}=value {number}" for number in range(500))
    cases = parser({"S": f"{{{{#switch:{{{{{{1}}}}}}{arms}|#default=none}}}}"})
    assert text(cases.parse("{{S|K0}}, {{S|K499}}, {{S|K500}}", title="T")) == "value 0, value 499, none"


def test_a_megabyte_is_shown() -> None:
    assert len(text(parser({"M": "word " * 200_000}).parse("{{M}}", title="T"))) == 999_999


def test_pages_asked_for_are_bounded() -> None:
    one_more = MAX_LOOK_UPS + 1
    asked = parser({"A": "{{#ifexist:X|a|b}}" * one_more}, exists=lambda title: True)
    assert text(asked.parse("{{A}}", title="T")) == "a" * MAX_LOOK_UPS + "b"


def test_equal_uses_are_worked_out_once() -> None:
    definitions = Dictionary({"A": "{{{1}}}!", "B": "{{{1}}} of {{PAGENAME}} in {{CURRENTYEAR}}"})
    remembering = WikitextParser(SITE, definitions=definitions)
    for year, title in ((2001, "T"), (2002, "U")):
        parsed = remembering.parse("{{A|x}} {{A|x}} {{B|y}}", title=title, timestamp=f"{year}-01-02T00:00:00Z")
        assert text(parsed) == f"x! x! y of {title} in {year}"
        assert parsed.dependencies == {"10:A", "10:B"}  # noted too where it is remembered
    assert definitions.asked == ["A", "B"]


BOXES = {
    "Box": '<div class="ambox" style="{{Ask}}">{{Ask}} [[Category:Kept by nobody]]</div>[[Category:Likewise]]',
    "Table": '{| class="metadata"\n| {{Ask}}\n|}\n',
    "Links": '{{#if:x|<div class="navbox">[[A]] [[Category:Towns]]</div>{{{1}}}}}',
    "Others": '<div class="navbox">{{Tagged}}</div>{{{1}}}',
    "Tagged": "[[Category:Towns]]",
    "Halves": '{{#if:x|<div class="ambox">}}{{{1}}}{{#if:x|</div>}} seen',
    "Ask": "{{PAGENAME}}",
}


@pytest.mark.parametrize("name", BOXES)
def test_what_stands_in_boxes_is_not_worked_out_and_nothing_else_changes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f"One {{{{{name}|two}}}} three."
    emptied = parser(BOXES).parse(page, title="T")
    monkeypatch.setattr(expander, "without_insides", lambda tree, is_category: tree)
    whole = parser(BOXES).parse(page, title="T")
    assert replace(emptied, dependencies=whole.dependencies) == whole


def test_a_box_costs_the_same_whatever_it_holds() -> None:
    costs = []
    for inside in ("", "x{{Ask}}{{{1}}}{{Ask}}y"):
        definitions = {"Box": f'{{{{#if:x|<div class="ambox">{inside}</div>}}}}', "Ask": "{{PAGENAME}}" * 99}
        page = PageExpander(Expander(Dictionary(definitions), SITE, find_rule("ltg")), PageFacts("ltg", "T"))
        assert page.expand("Box|a", "Box").wikitext.strip(CUT) == ""
        costs.append(page.work)
    assert costs[0] == costs[1]


def test_what_is_remembered_costs_as_if_it_were_new() -> None:
    definitions = {"A": "{{B}}" * 500, "B": "{{C}}" * 100, "C": ""}
    page = "".join(f"{{{{A|{number}}}}}" for number in range(6))
    fresh, used = parser(definitions), parser(definitions)
    used.parse(page[: len(page) // 2], title="T")
    expected = fresh.parse(page, title="T")
    assert {use.outcome for use in expected.templates} == {"expanded", "limit_exceeded"}
    assert used.parse(page, title="T") == expected == fresh.parse(page, title="T")


def test_visible_characters_are_counted_where_a_use_stands_in_no_other() -> None:
    shown = parser({"A": "two [[a|words]]", "B": "", "C": "<div class=navbox>no</div>"})
    parsed = shown.parse("{{A}} {{nowrap|{{A}}}} {{B}} {{C}}", title="T")
    assert parsed.shown == {("A", "expanded"): 8, ("Nowrap", "rendered"): 8}


def test_calls_of_modules_that_are_not_run_are_counted_each_time() -> None:
    definitions = {"A": "{{#invoke:M|f}} and {{#invoke:M|g}}", "B": '<div class="navbox">{{{1|{{#invoke:M|f}}}}}</div>'}
    uses = "{{A}} {{A}} {{#invoke:M|f}} {{B}}"
    assert dict(map(astuple, parser(definitions).parse(uses, title="T").losses)) == {"module": 6}
    fails = parser(definitions, invoke=lambda module, function, frame: "x" if function == "f" else None)
    assert dict(map(astuple, fails.parse(uses, title="T").losses)) == {"module": 2}


def test_names_of_the_wiki_are_those_of_the_dump() -> None:
    names = {0: "", 1: "Kölm", 2: "Dalībnīks", 10: "Taiss", 100: "Portals"}
    own = Site(lang="ltg", name="Vikipedeja", base_url="https://ltg.wikipedia.org/wiki/Saime", namespaces=names)
    parser = WikitextParser(
        own, definitions=Dictionary({"Wiki": "{{SITENAME}}, {{ns:User}}, {{#ifexist:Riga|1|0}}"}), exists=IS_RIGA
    )
    page = (
        "{{wiki}}; {{SITENAME}}, {{SERVERNAME}}, {{ns:user}}, {{ns:Taiss}}, {{ns:100}}, {{NAMESPACE}}, "
        "{{TALKPAGENAME}}, {{PAGENAME}}, {{#ifexist:Riga|1|0}}, {{#ifexist:Nowhere|1|0}}"
    )
    shown_on = [parser.parse(page, title=title).elements[1].text for title in ("Ryga", "Portals:Ryga")]
    both = "Vikipedeja, Dalībnīks, 1; Vikipedeja, ltg.wikipedia.org, Dalībnīks, Taiss, Portals,"
    assert shown_on == [f"{both} Kölm:Ryga, Ryga, 1, 0", f"{both} Portals, Portal talk:Ryga, Ryga, 1, 0"]


def test_names_may_have_the_prefix_of_the_wiki() -> None:
    own = Site(lang="ltg", namespaces={10: "Taiss"})
    prefixed = WikitextParser(own, definitions=Dictionary({"A": "x"}))
    assert text(prefixed.parse("{{Taiss:A}} {{template:a}}", title="T")) == "x x"


REDIRECTS = {
    "X": "Convert",
    "Len": "Convert",
    "Lng": "Lang-de",
    "Doubt": "Citation needed",
    "Person": "Infobox person",
    "Two": "Fourteen",
    "Nowrap": "Own",
    "Small": "Missing",
    "Ambiguous": "Disambiguation",
}


@pytest.mark.parametrize(
    ("wikitext", "shown", "outcome"),
    [
        ("{{X|5|km}}", "5 kilometres (3.1 mi)", "rendered"),
        ("{{Template:len|5|km}}", "5 kilometres (3.1 mi)", "rendered"),
        ("{{nest|5}}", "<5 kilometres (3.1 mi)>", "expanded"),
        ("{{lng|Haus}}", "German: Haus", "rendered"),
        ("{{doubt|date=May 2020}}", "", "dropped"),
        ("{{person|name=A}}", "", "rendered"),
        ("{{two}}", "14", "expanded"),
        ("{{nowrap|a}}", "own a", "expanded"),
        ("{{small|a}}", "a", "rendered"),
        ("{{ambiguous}}", "", "dropped"),
    ],
)
def test_the_wikis_redirects_are_followed_before_a_rule_is_looked_up(wikitext: str, shown: str, outcome: str) -> None:
    definitions = {"Fourteen": "14", "Own": "own {{{1}}}", "Nest": "&lt;{{x|{{{1}}}|km}}&gt;"}
    english = WikitextParser(Site(), definitions=Dictionary(definitions, redirects=REDIRECTS))
    parsed = english.parse(f"a {wikitext} b", title="T")
    assert text(parsed).replace("\xa0", " ") == " ".join(f"a {shown} b".split())
    assert [use.outcome for use in parsed.templates] == [outcome]
    assert [box.name for box in parsed.infoboxes] == (["Person"] if "person" in wikitext else [])
    assert parsed.is_disambiguation == ("ambiguous" in wikitext)
    assert parsed.dependencies is not None
    assert f"10:{parsed.templates[0].name.removeprefix('Template:')}" in parsed.dependencies


def test_a_wiki_corrects_a_rule() -> None:
    definitions = Dictionary({"10^": "10<sup>{{{1}}}</sup>", "Flat": "♭", "Convert": "never"})
    assert text(WikitextParser(Site(), definitions=definitions).parse("{{10^|6}} B{{flat}}", title="T")) == "10⁶ B♭"


def module(module: str, function: str, frame: Frame) -> str | None:
    if module != "M":
        return None
    if function == "arguments":
        parent = frame.parent
        assert parent is not None
        return f"{dict(frame.arguments)} {dict(parent.arguments)} {parent.title}"
    if function == "preprocess":
        return frame.preprocess("{{#if:{{{1}}}|{{Shout|{{{1}}}}}}}")
    if function == "expand":
        return frame.expand("Shout", {"1": "a"}) + frame.expand("uc:", {"1": "b"}) + frame.expand("#if", {"1": ""})
    if function == "title":
        return frame.page_title
    frame.spend(MAX_WORK + 1)
    return "never"


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        pytest.param(
            "{{#invoke:M|arguments| a |k = {{{1}}} }}",
            "{'1': ' a ', 'k': 'x'} {'1': 'x'} Template:A",
            id="arguments of module and template",
        ),
        pytest.param("{{#invoke:M|preprocess|y}}", "y!", id="wikitext in the module's frame"),
        pytest.param("{{#invoke:M|expand}}", "a!B", id="templates and functions"),
        pytest.param("{{#invoke:M|title}}", "T", id="title of the page"),
        pytest.param("{{#invoke:M|forever}}", "", id="work is charged to the page"),
        pytest.param("{{#invoke:Other|f}}", "", id="nobody runs it"),
    ],
)
def test_modules_are_run(definition: str, expected: str) -> None:
    invoke: Invoke = module
    running = parser({"A": definition, "Shout": "{{{1}}}!"}, invoke=invoke)
    parsed = running.parse("{{A|x}}", title="T")
    assert text(parsed) == " ".join(expected.split())
    outcome = "invoked" if expected else "limit_exceeded" if "forever" in definition else "unknown"
    assert [use.outcome for use in parsed.templates] == [outcome]


MARKUP = """{{A| {{B| {{C}} {{A}} }} {{{1}}} {{{1|x}}} {{{ | = [[ ]] [[a|b]] {| |} |- '' ''' * # : ; == {{#if:
    {{#switch: {{!}} {{PAGENAME}} <noinclude> </noinclude> <includeonly> </includeonly> <onlyinclude> </onlyinclude>
    <nowiki> </nowiki> <!-- --> <ref> </ref> <div> <div class=navbox> </div> <table class=infobox> </table>
    [[Category:x]] word é <span style="display:none"> </span> {{Infobox|a=b}} {{convert|5|km}} {{nowrap| &amp;
    { }""".split()
WIKITEXT = st.lists(st.sampled_from([*MARKUP, "\n", "\n", " "]), max_size=25).map("".join)


@settings(max_examples=examples(300))
@given(st.dictionaries(st.sampled_from("ABC"), WIKITEXT), WIKITEXT)
def test_all_definitions_obey_the_laws_and_every_way_gives_the_same(definitions: dict[str, str], page: str) -> None:
    direct = parser(definitions)
    expected = direct.parse(page, title="T")
    check_laws(expected)
    assert direct.parse(page, title="T") == expected  # what is remembered changes nothing
    assert parser(definitions, is_direct=False).parse(page, title="T") == expected


TAGS = {
    "nowiki": "[[a]] ''b'' &amp; = * x",
    "math": "a^2 < b = [[c]]",
    "chem": "H2O",
    "ce": "CO2",
    "syntaxhighlight": "1 < 2 [[a]]\n  b",
    "source": "x = 1",
    "pre": "''a'' [[b]]\n * c",
    "poem": "a ''b''\n[[c]]",
    "ref": "a note",
    "references": "",
    "gallery": "File:A.jpg|b",
    "score": "c d e",
    "timeline": "x",
    "mapframe": "x",
    "span": "a ''b'' [[c]]",
    "code": "a [[b]]",
    "sup": "2",
    "blockquote": "a [[b]]",
    "small": " a ",
}


@pytest.mark.parametrize("name", TAGS)
def test_a_tag_by_function_is_the_tag(name: str) -> None:
    content = TAGS[name]
    definitions = {
        "A": f"{{{{#tag:{name}|{content}}}}}",
        "B": f"<{name}>{content}</{name}>",
        "C": "{{#tag:{{{1}}}|{{{2}}}}}",
    }
    read = parser(definitions)

    def shown(wikitext: str) -> list[tuple[str, str]]:
        parsed = read.parse(f"before {wikitext} behind", title="T")
        check_laws(parsed)
        return [(element.kind, element.text) for element in parsed.elements]

    expected = shown(definitions["B"])
    for use in (
        definitions["A"],
        f"{{{{#TAG: {name.upper()} |{content}|name=x}}}}",
        "{{A}}",
        f"{{{{C|{name}|2={content}}}}}",
    ):
        if name != "small" or "C" not in use:  # an argument with a name is stripped
            assert shown(use) == expected, use
    assert shown("{{B}}") == expected


@pytest.mark.parametrize(
    ("wikitext", "shown"),
    [
        ("a{{#tag:nowiki| [[b]] }}c", "a [[b]] c"),
        ("{{#tag:nowiki|{{lc:ABC}}}}", "abc"),
        ("{{#tag:nowiki|{{Shout|''x''}}}}", "''x''!"),
        ("{{#tag:syntaxhighlight|a = [[b]]|lang=lua|inline=1}}.", "a = [[b]]."),
        ("a {{#tag:ref|b|name='c'}} {{#tag:references}} d", "a\nd"),
        ("{{#iferror:{{#tag:span|x|class=error}}|wrong|right}}", "wrong"),
        ("{{#tag:no body|x}} {{#tag:nobody|y|a=b}}", '<no body>x</no body> <nobody a="b">y</nobody>'),
        ("{{#tag:nowiki|a=b}}", "a=b"),
    ],
)
def test_tags_by_function(wikitext: str, shown: str) -> None:
    read = parser({"A": wikitext, "Shout": "{{{1}}}!"})
    assert text(read.parse(wikitext, title="T")) == shown
    assert text(read.parse("{{A}}", title="T")) == shown


def test_encoded_names_of_pages_begin_no_list() -> None:
    shown = [parser({}).parse(use, title="*A ''b''").elements[1] for use in ("{{PAGENAMEE}}", "{{FULLPAGENAMEE}}")]
    assert [(element.kind, element.text) for element in shown] == [("paragraph", "*A_''b''")] * 2


@pytest.mark.parametrize(
    "definition", ["{{{1}}}{{missing}}", "{{#if:{{{1}}}|{{{1}}}{{missing}}}}", "{{{1}}}{{#invoke:A|b}}"]
)
def test_rules_in_place_of_incomplete_definitions_do_not_double_the_work(definition: str) -> None:
    def work(n_nested: int) -> int:
        nested = "{{nowrap|" * n_nested + "{{{1}}}" + "}}" * n_nested
        definitions = Dictionary({"Nowrap": definition, "A": nested})
        page = PageExpander(Expander(definitions, SITE, find_rule("en")), PageFacts("en", "T"))
        assert page.expand("A|x", "A").wikitext == "x"
        return page.work

    assert work(16) < 4 * work(8) < 16 * work(4)


@pytest.mark.parametrize(
    ("argument", "is_incomplete"), [("x", False), ("x{{missing}}", True), ("x{{#invoke:A|b}}", True)]
)
def test_what_an_argument_lacks_is_recorded_though_a_rule_replaces_the_definition(
    argument: str, is_incomplete: bool
) -> None:
    definitions = Dictionary({"Nowrap": "{{{1}}}{{missing}}", "A": f"{{{{nowrap|{argument}}}}}"})
    page = PageExpander(Expander(definitions, SITE, find_rule("en")), PageFacts("en", "T"))

    found = page.expand("A", "A")

    assert (found.wikitext[:1], found.is_incomplete, found.n_modules) == ("x", is_incomplete, int("invoke" in argument))
