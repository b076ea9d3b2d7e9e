"""The parser on every real slice: invariants, leaks, and mwparserfromhell giving the same for every link."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kbsource.dump.ranges import plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.records import RawPage
from kbsource.site import Site
from kbsource.wikitext.markers import ANY_CONTROL
from kbsource.wikitext.parse import WikitextParser
from tests.support.real_data import real_path

S1 = "dumps/gensim_enwiki-p10p30302-shortened.xml.bz2"
SLICES = {
    S1: 106,
    "dumps/gensim_enwiki-table-markup.xml.bz2": 5,
    "dumps/gensim_bgwiki-shortened.xml.bz2": 1,
    "dumps/andresmit_wiki.xml.gz": 90,
    "dumps/anubhavs11_wiki.xml.gz": 127,
    "dumps/cyberzhg_zhwiki-test-pages.xml.gz": 23,
    "dumps/dumpsterdive_smallwiki-pages-articles.xml.gz": 903,
    "dumps/nwtgck_wikidump.xml.gz": 18,
    "dumps/semanticizest_nlwiki-20140927-sample.xml.gz": 19,
    "dumps/totocptbgn_frwiki10000.xml.gz": 21,
    "dumps/wikibrain_en_test.xml.gz": 33,
    "dumps/wikiextractor_test.xml.gz": 6,
}
MARKUP = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|'''|</?(?:ref|br|nowiki)\b|\|[-+}]|\{\||! *style|"
    r"\b(?:align|colspan|rowspan|bgcolor|style)\s*=\s*[\"\w]"
)
# What a piece that was cut must not leave; what is written so stays.
GAP = re.compile(
    r"\((?:e\.g\.|i\.e\.)?[ ,;:]*\)|\[[ ,;]*\]|(?<!\S)(?:\"\"|\u201c\u201d|\u201e\u201c)(?!\S)"
    r"|(?<!\\)(?:[,;] ?[,;]|[,;]\.(?!\.)|[,;] ?[])])"
)
BY_AUTHORS = {"Daugova": "a tag that is none", "HTML": "code as text"}
# What is text although it looks like markup: TeX, and what nowiki, pre, code blocks and character references hold.
LITERAL = re.compile(
    r"<(math|nowiki|pre|source|syntaxhighlight|code|chem|ce)\b[^>]*>.*?</\1\s*>|&lt;ref", re.DOTALL | re.IGNORECASE
)


def articles(relative: str) -> Iterator[tuple[Site, RawPage]]:
    path = str(real_path(relative))
    site = read_header(path).site
    for dump_range in plan_ranges([path], range_bytes=1 << 40):
        for page in read_range(dump_range, site, text_namespaces=frozenset({0})):
            if isinstance(page, RawPage) and page.namespace == 0 and page.redirect_title is None:
                yield site, page


@pytest.mark.parametrize("relative", SLICES)
def test_every_article_obeys_the_laws_and_leaks_no_markup(relative: str) -> None:
    parser = None
    n_articles = 0
    leaking: set[tuple[str, str]] = set()
    for site, raw in articles(relative):
        n_articles += 1
        parser = parser or WikitextParser(site)
        parsed = parser.parse(raw.text, title=raw.title, timestamp=raw.timestamp)
        for anchor in parsed.anchors:
            assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text
        literal = " ".join(match.group() for match in LITERAL.finditer(raw.text)).replace("&lt;", "<")
        for element in parsed.elements[1:]:
            assert element.text == element.text.strip() != ""
        texts = [element.text for element in parsed.elements[1:]]
        texts += [value.text for box in parsed.infoboxes for value in box.fields]
        texts += [cell.text for table in parsed.tables for row in table.rows for cell in row]
        texts += [table.caption or "" for table in parsed.tables]
        for text in texts:
            assert not ANY_CONTROL.search(text)
            leaking.update(
                (raw.title, mark)
                for mark in MARKUP.findall(text)
                if mark.replace("<", "&lt;") not in raw.text and mark not in literal
            )
            leaking.update((raw.title, gap) for gap in GAP.findall(text) if gap not in raw.text)
    assert n_articles == SLICES[relative]
    assert {leak for leak in leaking if leak[0] not in BY_AUTHORS} == set()


def test_mwparserfromhell_gives_the_same_for_every_link_of_real_articles() -> None:
    direct = parser = None
    for number, (site, raw) in enumerate(articles(S1)):
        if number % 4:
            continue
        direct = direct or WikitextParser(site)
        parser = parser or WikitextParser(site, is_direct=False)
        assert direct.parse(raw.text, title=raw.title) == parser.parse(raw.text, title=raw.title)
