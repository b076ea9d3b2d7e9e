"""HTML that no wiki would show: the rules of ``tests.support.html_fuzz``, on few pages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies

from tests.support.growth import assert_linear
from tests.support.html_fuzz import FLAT, NESTINGS, Readers, faults, mutant, soup, stock_of_pages
from tests.support.snapshots import document

READERS = Readers()
STOCK = stock_of_pages()
RANDOMS = strategies.randoms(use_true_random=False)


@given(RANDOMS)
def test_made_up_pages_break_no_rule(rng: random.Random) -> None:
    html = document(soup(rng))
    assert [*faults(READERS, html, is_timed=False)] == [], html


@given(RANDOMS)
def test_mutants_break_no_rule(rng: random.Random) -> None:
    html = mutant(rng, STOCK)
    assert [*faults(READERS, html, is_timed=False)] == [], html


@pytest.mark.parametrize("name", NESTINGS)
def test_nestings_break_no_rule(name: str) -> None:
    assert [*faults(READERS, NESTINGS[name](50), is_timed=False)] == []


@pytest.mark.parametrize("name", FLAT)
def test_the_work_grows_with_the_page(name: str) -> None:
    make = FLAT[name]
    assert_linear(lambda n: READERS.noted.parse(make(n), title="Ada"), 100)
