"""Invariants that hold for every wikitext: offsets, no leaks of working marks, the same by every way, linear work."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbsource.site import Site
from kbsource.wikitext.lines import _EMPTY_BRACKETS, _without_empty_brackets
from kbsource.wikitext.markers import CUT, literal
from kbsource.wikitext.parse import WikitextParser
from tests.support.examples import examples
from tests.support.wikitexts import check_laws


@given(st.text(alphabet='[]"“”«» (a.' + CUT * 3, max_size=14))
@settings(max_examples=examples(500))
def test_empty_brackets_go_wherever_the_pattern_finds_them(text: str) -> None:
    assert _without_empty_brackets(text) == _EMPTY_BRACKETS.sub(CUT, text)


MARKUP = """[[ ]] [ ] {{ }} {{{ }}} {| |} |- | || ! !! '' ''' ''''' == === * # : ; < > <ref> </ref> <ref/> <!-- -->
    <nowiki> </nowiki> <br> <div> </div> <table> <td> <li> & &lt; &#91; &nbsp; http://x.y [http://x.y File:a.jpg|
    Category:b fr:c word Word, é 漢字 𝒳 _ __TOC__ ~~~~ ---- infobox {{Infobox|a= {{convert|5|km}} {{nowrap| =
    <math>x_{1}}</math> <pre> </pre> {{!}} -{ }- <h2> </h2> <b> </b> [http://[::1]/ [HTTP://x.y'' ${{x|1}} ( ) </ref
    <noinclude> [[File:a.jpg|thumb|b]] %5B __toc__ &#0065;"""
PIECES = st.sampled_from([*MARKUP.split(), "\n", "\n\n", "\n", "\t", "\u00a0", " "])
WIKITEXT = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join)

DIRECT = WikitextParser(Site())
PARSER = WikitextParser(Site(), is_direct=False)


@settings(max_examples=examples(600))
@given(WIKITEXT)
@example("[[a|b [[c]] d]]{{x|[[y}}]]")
@example("{|\n| [[a\n| b]]\n|}")
@example("[[[http://x.y")
@example("[[[http://x.y|a")
@example("[]]http://x.y")
@example("[[a|{{Infobox|b=c}}*]]")
@example("{{Infobox|a= === }}")
@example("{{Infobox|a= {{Infobox|b=c}} }}")
@example("{{Infobox|a= == [[b]] == }}")
@example("a [[ == File:a.jpg| <div> ]] b")
@example("[[[[{{nowrap|<pre></pre>}}")
@example("a {{nowrap|<pre>=</pre>}} b")
@example("a {{nowrap|{{Infobox|a=b}}}} b")
@example("a [[ == File:a.jpg|b <div> <div> c]] d")
@example("<h2>{{Infobox}}</h2>")
def test_every_wikitext_obeys_the_laws(wikitext: str) -> None:
    check_laws(DIRECT.parse(wikitext, title="T"))


@settings(max_examples=examples(600))
@given(st.lists(PIECES | st.sampled_from([CUT, literal("'= [*|_"), "\u2009", "-"]), max_size=12).map("".join))
@example("&#61;a")
@example("|-")
@example("- [[a]]s [http://x.y''b'']")
def test_the_text_of_a_line_is_what_all_steps_of_a_page_give(wikitext: str) -> None:
    assert DIRECT.plain(wikitext) == DIRECT.plain_structure(wikitext)


@settings(max_examples=examples(400))
@given(WIKITEXT)
@example("[http://x.y a: b http://z c:d]")
@example("[[File:a.jpg|b [[c]] [http://x.y d] http://z]]e")
def test_mwparserfromhell_gives_the_same_for_every_link(wikitext: str) -> None:
    assert PARSER.parse(wikitext, title="T") == DIRECT.parse(wikitext, title="T")


@settings(max_examples=examples(300))
@given(st.text(max_size=300))
def test_any_text_at_all(text: str) -> None:
    check_laws(DIRECT.parse(text, title="T"))


HOSTILE: dict[str, Callable[[int], str]] = {
    "unclosed templates": lambda n: "{{a|" * n,
    "unclosed parameters": lambda n: "{{{a|" * n,
    "unclosed links": lambda n: "[[a|" * n,
    "unclosed plain links": lambda n: "[[a" * n,
    "links without target": lambda n: "[[" * n,
    "unclosed external links": lambda n: "[http://a " * n,
    "external links closed once": lambda n: "[http://a " * n + "]",
    "brackets in labels": lambda n: "[http://a b [c " * n + "]",
    "comments on a line": lambda n: "<!-- a --> " * n + "b",
    "tags in a heading": lambda n: "=<div>" * n + "=",
    "tags in a term": lambda n: ";" + "<b>:" * n,
    "unfinished tags": lambda n: "<ref <a " * n,
    "money": lambda n: "($" + "{{x|1}} $" * n + ")",
    "files between words": lambda n: "a[[File:b|thumb]]" * n,
    "zeros": lambda n: "&#" + "0" * n + ";",
    "unclosed references": lambda n: "<ref>" * n,
    "unfinished references": lambda n: "<ref name=" * n,
    "unclosed comments": lambda n: "<!-- " * n,
    "unclosed tags around links": lambda n: "<div>[[" * n,
    "unclosed table rows": lambda n: "{|\n" + "|-\n| {{small|a || b\n" * n,
    "nested tables": lambda n: "{|\n|\n" * n,
    "quotes": lambda n: "''a'''b" * n,
    "apostrophes": lambda n: "'" * n,
    "signs": lambda n: "=" * n,
    "signs apart": lambda n: "= " * n,
    "list": lambda n: "*" * n + " a",
    "terms": lambda n: ";" + "[a" * n,
    "colons": lambda n: "a:" * n,
    "cuts and spaces": lambda n: "<ref/> " * n,
    "parentheses": lambda n: "(<ref/>;" * n,
    "spaces": lambda n: " " * n + "a",
    "underscores": lambda n: "_" * n,
    "entities": lambda n: "&amp" * n,
    "closers": lambda n: "]]}}|}" * n,
    "nested links": lambda n: "[[a|" * n + "]]" * n,
    "nested templates": lambda n: "{{nowrap|" * n + "}}" * n,
    "nested unknown templates": lambda n: "{{x|" * n + "y" + "}}" * n,
    "newlines": lambda n: "\n" * n,
    "words": lambda n: "a [[b]] c " * n,
}


def python_work(parser: WikitextParser, wikitext: str) -> int:
    """Counts the lines of Python executed: work, not seconds."""
    count = 0

    def tracer(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return tracer

    previous = sys.gettrace()
    sys.settrace(tracer)  # type: ignore[arg-type]
    try:
        parser.parse(wikitext, title="T")
    finally:
        sys.settrace(previous)
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_wikitext_takes_linear_work(name: str) -> None:
    parser = WikitextParser(Site())
    make = HOSTILE[name]
    small, large = python_work(parser, make(200)), python_work(parser, make(1600))
    assert large <= 12 * small + 2000, f"{name}: {small} lines for 200, {large} for 1600"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_wikitext_of_a_megabyte_ends_and_obeys_the_laws(name: str) -> None:
    make = HOSTILE[name]
    n = 200_000 // max(len(make(1)), 1)
    check_laws(WikitextParser(Site()).parse(make(n), title="T"))
