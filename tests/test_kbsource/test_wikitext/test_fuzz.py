"""Pages that nobody would write: the rules of ``tests.support.parser_fuzz``, on few pages."""

from __future__ import annotations

import random

import pytest

from kbsource.wikitext.parse import WikitextParser
from tests.support.examples import examples
from tests.support.growth import assert_linear
from tests.support.parser_fuzz import NESTINGS, SITE, Parsers, chain, faults, mutants, soup, stock_of_pages
from tests.test_kbsource.test_wikitext.test_properties import python_work


def test_made_up_pages_break_no_rule() -> None:
    rng, parsers = random.Random(examples(1)), Parsers()
    for _ in range(examples(150)):
        page = soup(rng)
        assert [*faults(parsers, page.wikitext, is_timed=False)] == [], page.wikitext


def test_mutants_break_no_rule() -> None:
    rng, parsers, stock = random.Random(examples(1)), Parsers(), stock_of_pages()
    for _ in range(examples(60)):
        page = mutants(rng, stock)
        assert [*faults(parsers, page.wikitext, is_timed=False)] == [], page.wikitext


@pytest.mark.parametrize("name", NESTINGS)
def test_work_with_references_grows_with_a_nesting_alone(name: str) -> None:
    parser = WikitextParser(SITE, has_references=True)
    make = NESTINGS[name]
    python_work(parser, make(50))
    small, large = python_work(parser, make(150)), python_work(parser, make(600))
    assert large <= 4**1.3 * small + 3000, f"{small} lines for 150, {large} for 600"


NOTING = ["{{efn|a", "{{cite book|title=b|id=", "{{cn|", "{{r|", "{{reflist|refs=", "{{Infobox|a=", "[[a|"]


@pytest.mark.parametrize("outer", NOTING)
@pytest.mark.parametrize("inner", NOTING)
def test_work_with_references_grows_with_a_chain_of_two_alone(outer: str, inner: str) -> None:
    parser = WikitextParser(SITE, has_references=True)
    python_work(parser, chain([outer, inner], 3))
    small, large = (python_work(parser, chain([outer, inner], n)) for n in (10, 40))
    assert large <= 4**1.2 * small, f"{small} lines for 10, {large} for 40"


@pytest.mark.parametrize("piece", ["<p>", "a <div> ", "[//a <p>b</p>] ", "{{clear}}"])
def test_work_grows_with_a_line_of_blocks_alone(piece: str) -> None:
    parser = WikitextParser(SITE)
    assert_linear(lambda n: parser.parse(f"[http://a.example b] {piece * n}", title="A"), 200)


def test_an_example_of_what_is_lost_is_shortened_without_marks_of_references() -> None:
    wikitext = chain(["{{efn|a<ref>c</ref>", "[[File:a.jpg|thumb|", "{{r|"], 109)
    assert [*faults(Parsers(), wikitext, is_timed=False)] == []
