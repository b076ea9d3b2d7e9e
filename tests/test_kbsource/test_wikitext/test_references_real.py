"""The references of every real slice: the page stays as it is, every use has its place, every tag is accounted for."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from kbsource.wikitext.parse import ParsedText, WikitextParser
from tests.test_kbsource.test_wikitext.test_real import SLICES, articles

pytestmark = pytest.mark.slow  # every page of the real slices, twice

# What holds no tags; comments first. Attributes may hold "/", so a tag that closes itself has it last.
NO_TAGS = re.compile(
    r"<!--.*?(?:-->|\Z)|<(nowiki|pre|math|chem|ce|source|syntaxhighlight|templatedata|timeline|score)\b[^<>]*"
    r"(?:(?<=/)>|>.*?</\1\s*>)",
    re.DOTALL | re.IGNORECASE,
)
TAG = re.compile(r"<ref(?=[\s/>])[^<>]*(?:<[^<>]*){0,3}>", re.IGNORECASE)
NAMED = ("empty", "numeric_name", "unclosed", "nested", "in_hidden_tag", "list_defined", "follow")


def n_tags(wikitext: str) -> int:
    """How many ``<ref>`` a page has, told by patterns alone."""
    return len(TAG.findall(NO_TAGS.sub("", wikitext)))


def n_accounted(parsed: ParsedText) -> int:
    assert parsed.references is not None
    _, uses, counts = parsed.references
    return sum(use.ref is not None for use in uses) + sum(counts[name] for name in NAMED) - counts["by_template"]


@pytest.mark.parametrize("relative", SLICES)
def test_real_references_keep_the_laws_and_leave_the_page_as_it_is(relative: str) -> None:
    plain = noted = None
    astray = {}
    for site, raw in articles(relative):
        plain = plain or WikitextParser(site)
        noted = noted or WikitextParser(site, has_references=True)
        parsed = noted.parse(raw.text, title=raw.title, timestamp=raw.timestamp)
        assert parsed.references is not None
        assert replace(parsed, references=None) == plain.parse(raw.text, title=raw.title, timestamp=raw.timestamp)
        refs, uses, _ = parsed.references
        n_refs = sum(ref.source_number == 0 for ref in refs)
        assert [ref.ref for ref in refs if ref.source_number == 0] == [*range(n_refs)]
        used = {use.ref for use in uses if use.ref is not None}
        assert {ref.ref for ref in refs if ref.number is not None} <= used <= {*range(n_refs)}
        for use in uses:
            if use.element is not None and use.offset is not None:
                before = parsed.elements[use.element].text[: use.offset]
                assert len(before) == use.offset
                assert before == before.rstrip()
                if use.sentence_start is not None and use.sentence_end is not None:
                    assert 0 <= use.sentence_start < use.offset
                    assert use.sentence_end <= len(parsed.elements[use.element].text)
        for ref in refs:
            for written in (*ref.markup.split("|"), ref.text):
                assert noted.plain(written) == noted.plain_structure(written)
        if (found := n_accounted(parsed)) != (expected := n_tags(raw.text)):
            astray[raw.title] = (expected, found)
    assert astray == {}
