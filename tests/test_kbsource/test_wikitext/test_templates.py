from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.site import Site
from kbsource.wikitext import templates
from kbsource.wikitext.expander import render_use
from kbsource.wikitext.functions.arguments import PageFacts, Template, read_rules, read_section
from kbsource.wikitext.markers import unliteral
from kbsource.wikitext.templates import (
    Rendering,
    TemplateRule,
    find_function,
    find_variable,
    magic,
    normalise_template_name,
    read_fallbacks,
    rule_book,
    split_template,
)
from kbsource.wikitext.tree import Parameter, Text, Use, read_tree
from tests.support.examples import examples

GOLDEN = Path(__file__).parents[2] / "golden" / "templates" / "templates.toml"
LANGUAGES = ("en", "de", "fr", "nl", "es", "it", "pt", "ru", "sv", "pl", "vi", "zh", "ja", "et", "bg", "he", "ko", "xx")
WITHOUT_RULES = "ar azb be-tarask bn cs fa fi hi hu lt simple sr-ec th uk".split()
PAGES = {
    lang: PageFacts(lang, "Test page", "2016-02-19T12:00:00Z", Site(lang=lang)) for lang in (*LANGUAGES, *WITHOUT_RULES)
}
_USE = re.compile(r"\{\{(.*)\}\}", re.DOTALL)


def _golden_cases() -> list[tuple[str, str, Rendering]]:
    cases = []
    for group in tomllib.loads(GOLDEN.read_text("utf-8")).values():
        for lang, wikitext, expected, *rest in group["cases"]:
            facts = rest[0] if rest else {}
            rendering = Rendering(facts.get("outcome", "rendered"), expected, facts.get("is_block", False))
            cases.append((lang, wikitext, rendering))
    return cases


def _render(lang: str, wikitext: str) -> Rendering:
    """Renders the one use in a wikitext; what stands around it stays, literal characters become what they stand for."""
    match = _USE.search(wikitext)
    assert match is not None
    template = split_template(match.group(1), lang)
    assert template is not None
    outcome, text, is_block = render_use(template, PAGES[lang])
    around = wikitext[: match.start()] + unliteral(text) + wikitext[match.end() :]
    return Rendering(outcome, around if text else "", is_block)


def test_golden_set_is_large_enough() -> None:
    assert len(_golden_cases()) >= 250


@pytest.mark.parametrize(("lang", "wikitext", "expected"), _golden_cases(), ids=lambda value: str(value)[:60])
def test_golden(lang: str, wikitext: str, expected: Rendering) -> None:
    assert _render(lang, wikitext) == expected


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        pytest.param("foo", Template("Foo", (), {}), id="name alone"),
        pytest.param(" foo_bar \n", Template("Foo bar", (), {}), id="name cleaned"),
        pytest.param("Template:foo|a", Template("Foo", ("a",), {}), id="namespace removed"),
        pytest.param("foo| a |b=  c ", Template("Foo", (" a ",), {"b": "c"}), id="only named values are stripped"),
        pytest.param("foo|[[a|b]]|c", Template("Foo", ("[[a|b]]", "c"), {}), id="pipe inside a link"),
        pytest.param(
            "foo|[[File:x|thumb|a [[b|c]] d]]|e",
            Template("Foo", ("[[File:x|thumb|a [[b|c]] d]]", "e"), {}),
            id="pipes inside nested links",
        ),
        pytest.param("foo|[[a|b", Template("Foo", ("[[a", "b"), {}), id="a link that is not closed hides no pipe"),
        pytest.param("foo|]]a|b", Template("Foo", ("]]a", "b"), {}), id="a closer without opener"),
        pytest.param("foo|[[a=b]]", Template("Foo", ("[[a=b]]",), {}), id="equals sign inside a link names nothing"),
        pytest.param("foo|[[a=b]]=c", Template("Foo", (), {"[[a=b]]": "c"}), id="equals sign behind a link"),
        pytest.param("foo|1= a |x", Template("Foo", ("a",), {}), id="a number counts over the place"),
        pytest.param("foo|x|3=c", Template("Foo", ("x", "", "c"), {}), id="numbers leave gaps empty"),
        pytest.param("foo|9999=c", Template("Foo", (), {"9999": "c"}), id="a far number makes no long list"),
        pytest.param("foo|a=1|a=2", Template("Foo", (), {"a": "2"}), id="the last of a repeated name counts"),
        pytest.param("foo|a=b=c", Template("Foo", (), {"a": "b=c"}), id="the first equals sign counts"),
        pytest.param("#if:a=b|c=d", Template("#if", ("a=b", "c=d"), {}), id="arguments of functions have no names"),
        pytest.param("#TAG:ref|x", Template("#tag:ref", ("x",), {}), id="tags are counted by their name"),
        pytest.param("subst:formatnum:12", Template("formatnum:", ("12",), {}), id="substitution is no name"),
        pytest.param("#wenn:a|b", Template("#if", ("a", "b"), {}), id="localised function"),
        pytest.param("AKTUELLES", Template("AKTUELLES", (), {}), id="no variable"),
        pytest.param("User:X/Y", Template("User:X/Y", (), {}), id="another namespace stays"),
        pytest.param("", None, id="empty"),
        pytest.param(" |a", None, id="no name"),
        pytest.param("a<b>|c", None, id="no title"),
        pytest.param("a\nb|c", None, id="a title has no newline"),
    ],
)
def test_split_template(inner: str, expected: Template | None) -> None:
    assert split_template(inner) == expected


def test_names_are_upper_by_the_rules_of_the_language() -> None:
    assert normalise_template_name("infobox", "tr") == "İnfobox"
    assert normalise_template_name("infobox", "en") == "Infobox"


def test_the_revision_is_now() -> None:
    template = split_template("age|1990|1|2")
    assert template is not None
    for timestamp, age in (("2020-01-01T00:00:00Z", "29"), ("2020-01-02T00:00:00Z", "30"), ("", "")):
        assert render_use(template, PageFacts("en", "A", timestamp)).wikitext == age


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_rule_book_loads(lang: str) -> None:
    book = rule_book(lang)
    assert book.find("Convert").outcome == "rendered"
    assert book.find("Cite web").outcome == "dropped"
    assert book.find("Infobox person").outcome == "infobox"
    assert book.find("No such template").outcome == "unknown"


def test_a_rule_without_its_function_is_a_set_up_error() -> None:
    with pytest.raises(SetupError, match="no_such"):
        templates._rule({"name": "X", "function": "inline.no_such"})


def test_a_file_of_rules_is_read_once() -> None:
    assert read_rules("en") is read_rules("en")


def test_a_section_of_a_file_is_what_the_file_has() -> None:
    calendars = read_rules("calendar_names")
    assert {lang: read_section("calendar_names", lang) for lang in calendars} == calendars
    assert read_section("calendar_names", "no such language") == {}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_name_has_one_rule_in_a_file(lang: str) -> None:
    data = read_rules(lang)
    names = [name for entry in data.get("rule", ()) for name in (entry["name"], *entry.get("aliases", ()))]
    names.extend(name for aliases in data.get("aliases", {}).values() for name in aliases)
    names.extend({*data.get("drop", {}).get("names", ()), *data.get("infobox", {}).get("names", ())})
    names.extend(name for names_of_one, _ in read_fallbacks(lang) for name in names_of_one)
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_file_of_definitions_is_that_of_a_language() -> None:
    files = [path.name for path in resources.files("kbsource.wikitext").joinpath("rules").iterdir()]
    assert {name.removesuffix(".wiki") for name in files if name.endswith(".wiki")} <= {*LANGUAGES, *WITHOUT_RULES}


def _braces(text: Text) -> Iterator[Use | Parameter]:
    for node in text:
        if isinstance(node, Use):
            yield node
            values = [node.head, *(value for _, value in node.parts)]
            yield from chain.from_iterable(map(_braces, (*values, *(key for key, _ in node.parts if key))))
        elif isinstance(node, Parameter):
            yield node
            yield from chain(_braces(node.name), _braces(node.default or ()))


_FALLBACKS = [
    pytest.param(lang, body, id=f"{lang}-{names[0]}")
    for lang in (*LANGUAGES, *WITHOUT_RULES)
    for names, body in read_fallbacks(lang)
]


@pytest.mark.parametrize(("lang", "body"), _FALLBACKS)
def test_definitions_in_wikitext_are_closed_and_call_parser_functions_only(lang: str, body: str) -> None:
    assert body == body.strip("\n") != ""
    assert body.count("{") == body.count("}")
    tree = read_tree(body)
    assert not [text for text in tree if isinstance(text, str) and ("{{" in text or "}}" in text)]
    empty = render_use(Template("USS", (), {}), PAGES[lang], TemplateRule("rendered", None, {}, False, body=body))
    assert "{{{" not in empty.wikitext
    heads = ["".join(map(str, use.head)) for use in _braces(tree) if isinstance(use, Use)]
    assert [head for head in heads if find_function(head) is None and find_variable(head) is None] == []


def _all_functions() -> list[tuple[str, str]]:
    """Gives one name for every function and its parameters, of every language."""
    found: dict[tuple[object, str], tuple[str, str]] = {}
    for lang in LANGUAGES:
        for name, rule in rule_book(lang).by_name.items():
            if rule.function is not None:
                found.setdefault((rule.function, f"{sorted(rule.parameters.items())}{lang}"), (lang, name))
    return list(found.values())


LONG = "9" * 5000  # more digits than Python turns into a number
_PIECES = st.one_of(
    st.sampled_from(
        """0 1 -1 12 1999 2001-02-30 1,250.5 -3 1/2 1/0 2+1/2 1e999 1e-5 -0 ½ ٣ 31 13 99999999999999999999 km mi ft in
        ftin C F stlb to - by x e6acre mpgus y yes no mdy dmy [[a|b]] ''x'' (7) +0.2 N S E [[ ]] | = January Jan Q V
        XIX e fr de ref abc &nbsp; &minus;5 − \x02 5\x02 " ' / : # * ( ) {{ }} round ^ **""".split()
    ),
    st.text(max_size=6),
    st.sampled_from(["", " ", "\n", "9" * 400, "1" * 45, "January 2, 1990", LONG, f"-{LONG}", f"1 January {LONG}"]),
)
_NAMES = st.sampled_from(
    """abbr disp adj sp order sigfig round frac e u ul end df mf lc since format ft in m cm text lt label code p b 1 2
    prec nolink dab link timezone alt NS EW author title col1 spell comma lit translit âge""".split()
)


@pytest.mark.slow  # every function with every argument
@settings(max_examples=examples(25))
@given(st.lists(_PIECES, max_size=8), st.dictionaries(_NAMES, _PIECES, max_size=4))
@example([LONG] * 6, {})
@example(["1", "km", "mi"], {"sigfig": LONG, "frac": LONG})
@example(["2000", LONG, f"{LONG}-01-01"], {})
def test_no_arguments_make_a_function_fail(positional: list[str], named: dict[str, str]) -> None:
    for lang, name in _all_functions():
        rendering = render_use(Template(name, tuple(positional), named), PAGES[lang])
        assert rendering.outcome in ("rendered", "dropped", "infobox")


@settings(max_examples=examples(25))
@given(st.lists(_PIECES, max_size=8), st.dictionaries(_NAMES, _PIECES, max_size=4))
def test_no_arguments_make_a_definition_fail(positional: list[str], named: dict[str, str]) -> None:
    for lang, body in (case.values for case in _FALLBACKS):
        rule = TemplateRule("rendered", None, {}, False, body=str(body))
        page = PAGES[str(lang)]
        outcome = render_use(Template("USS", tuple(positional), named), page, rule).outcome
        assert outcome in ("rendered", "dropped")


@settings(max_examples=examples(300))
@given(st.text(alphabet="ab[]|={}: \n", max_size=40))
def test_splitting_loses_no_text(inner: str) -> None:
    template = split_template("x|" + inner)
    assert template is not None
    letters = sorted(character for character in inner if character in "ab")
    seen = "".join((*template.positional, *template.named, *template.named.values()))
    if len(template.named) == 0:
        assert sorted(character for character in seen if character in "ab") == letters


@pytest.mark.parametrize(
    "wikitext",
    [
        pytest.param("{{convert|1" + "/1" * 100_000 + "|km}}", id="number"),
        pytest.param("{{convert|1|" + "m/" * 100_000 + "m}}", id="quotient of units"),
        pytest.param("{{convert|1|" + "e3" * 100_000 + "m}}", id="multiples"),
        pytest.param("{{convert|1|km|" + "mi " * 100_000 + "}}", id="outputs"),
        pytest.param("{{convert|1" + "|x|1" * 2_000 + "|" + "q" * 100_000 + "}}", id="unit on each"),
        pytest.param("{{slink|" + "T" * 100_000 + "|s" * 2_000 + "}}", id="sections"),
        pytest.param("{{#replace:" + "a" * 100_000 + "|a|" + "b" * 100_000 + "}}", id="replacement"),
        pytest.param("{{#expr:" + "(" * 100_000 + "}}", id="brackets"),
        pytest.param("{{spaces|999999999}}", id="repetition"),
        pytest.param("{{padleft:1|999999999}}", id="padding"),
        pytest.param("{{x|999999999=a}}", id="numbered argument"),
        pytest.param("{{x|" + "[[" * 100_000 + "|a}}", id="brackets of links"),
    ],
)
def test_hostile_input_gives_no_more_than_it_takes(wikitext: str) -> None:
    template = split_template(wikitext[2:-2])
    assert template is not None
    assert len(template.positional) <= wikitext.count("|") + 1
    assert len(render_use(template, PAGES["en"]).wikitext) <= 2 * len(wikitext) + 1000


def test_magic_words_name_one_thing() -> None:
    facts = magic()
    assert set(facts.functions.values()) <= set(facts.rules)
    assert set(facts.variables.values()) <= set(facts.rules)
