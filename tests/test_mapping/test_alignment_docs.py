"""docs/alignment.md says what the code does."""

from __future__ import annotations

import re
from itertools import combinations
from string import punctuation

import pytest

from kbsource.records import Element
from mapping.records import OUTCOMES
from mapping.schema import TABLES
from mapping.search.bleu import bleu
from mapping.search.page_search import align_evidence
from mapping.search.tokenised_page import TokenisedPage
from mapping.write.validate import RULES
from tests.support.real_data import ROOT
from tests.support.tokenisers import tokeniser

PAGE = (ROOT / "docs" / "alignment.md").read_text("utf-8")


def test_every_outcome_rule_and_table_is_explained() -> None:
    for name in (*OUTCOMES, *RULES, *TABLES):
        assert f"`{name}`" in PAGE, name


def test_every_column_of_records_is_named() -> None:
    for name in TABLES["records"].names:
        assert f"`{name}`" in PAGE, name


def test_every_column_has_a_meaning() -> None:
    for schema in TABLES.values():
        for field in schema:
            assert (field.metadata or {}).get(b"description"), field.name


COMPARED = re.findall(r"^\| (.+?) \| (.+?) \| ([01]\.\d{4}) \| ([01]\.\d{4}) \|$", PAGE, re.MULTILINE)


def released_score(evidence: str, page: str) -> float:
    """The score of KILT's released matcher for a page of one paragraph: the evidence loses its punctuation before it is
    cut into tokens, the page behind that; characters that stand in it score 1."""
    import spacy

    bare = str.maketrans("", "", punctuation)
    cut = spacy.blank("en")
    plain = evidence.lower().translate(bare)
    if plain in page or evidence in page:
        return 1.0
    tokens = [token.text for token in cut(plain)]
    words = [token.text.lower().translate(bare) for token in cut(page)]
    spans = (list(filter(None, words[start:end])) for start, end in combinations(range(len(words) + 1), 2))
    return max(bleu(tokens, span) for span in spans)


@pytest.mark.parametrize(("evidence", "page", "ours", "released"), COMPARED)
def test_scores_beside_those_of_the_released_matcher(evidence: str, page: str, ours: str, released: str) -> None:
    found = align_evidence(evidence, TokenisedPage([Element("paragraph", 0, 0, "", "", page)], tokeniser("en")))
    assert f"{0.0 if found is None else found.score:.4f}" == ours
    assert f"{released_score(evidence, page):.4f}" == released


def test_scores_are_compared() -> None:
    assert len(COMPARED) == 4
