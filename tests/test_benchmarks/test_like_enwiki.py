"""Made dumps for benchmarks."""

from __future__ import annotations

import re
from collections import Counter

from benchmarks.like_enwiki import ARTICLES_SHARE, blocks_of, pages_like_enwiki
from kbsource.records import RawPage

TEXT = "{{Infobox x|a=b}}\n\n'''A''' is [[b]] and [[c|d]].\n\n{|\n|e\n\n|}\n\n{{broken\n\n* [[File:f.png]]"


def _page(page_id: int, title: str, text: str, namespace: int = 0) -> RawPage:
    return RawPage(
        page_id=page_id,
        namespace=namespace,
        title=title,
        redirect_title=None,
        revision_id=page_id,
        parent_revision_id=None,
        timestamp="2001-01-15T00:00:00Z",
        model="wikitext",
        text=text,
        file="",
        offset=-1,
    )


def test_a_block_closes_what_it_opens() -> None:
    blocks = blocks_of([_page(1, "A", TEXT)])
    assert blocks == ["{{Infobox x|a=b}}", "'''A''' is [[b]] and [[c|d]].", "{|\n|e\n\n|}"]


def test_pages_like_enwiki_have_its_shares_and_are_the_same_each_time() -> None:
    stock = [_page(1, "A", TEXT * 20), _page(2, "Template:T", "t", namespace=10)]
    pages = [page.xml.decode() for page in pages_like_enwiki(stock, n_mb=2)]
    assert pages == [page.xml.decode() for page in pages_like_enwiki(stock, n_mb=2)]
    kinds = Counter("redirect" if "<redirect" in page else re.search(r"<ns>(\d+)", page)[1] for page in pages)  # type: ignore[index]
    assert kinds.pop("10") == 1
    assert 1.5 < kinds["redirect"] / kinds["0"] < 1.6
    assert 0.3 < kinds["14"] / kinds["0"] < 0.4
    titles = re.findall(r"<title>(.*?)</title>", "".join(pages))
    assert len(set(titles)) == len(titles)
    links = [title for page in pages for title in re.findall(r"\[\[([^]|]+)\|", page)]
    known = set(titles)
    assert 0.9 < sum(link in known for link in links) / len(links) < 1
    texts = sum(len(page) for page in pages if "<ns>0<" in page and "<redirect" not in page)
    assert ARTICLES_SHARE / 2 < texts / 2e6 < 2 * ARTICLES_SHARE
