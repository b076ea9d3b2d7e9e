"""Generates pages whose sizes, redirects, links and templates have the distributions of the English Wikipedia.

The text of an article is made of blocks (paragraphs, lists, tables, infoboxes) of real English articles, in a random
order with a fixed seed. Their links point to random titles. The same slices and the same size give the same pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log
from random import Random
from xml.sax.saxutils import escape

from msgspec.structs import replace

from benchmarks.link_speed import MISSING_SHARE, REDIRECT_SHARE, ZIPF_EXPONENT, title_of
from benchmarks.make_dump import MadePage, page_xml
from kbsource.records import RawPage

# The English Wikipedia of 2026: 105 GB of XML, 7 million articles, 11 million redirects, 2.5 million categories.
ARTICLE_BYTES = 13_000
"""Mean size of an article in bytes of wikitext. Half of the articles are shorter than 0.43 of it."""
SIZE_SIGMA = 1.3
MOST_BYTES = 400_000
ARTICLES_SHARE = 0.88
"""Share of the XML that is text of articles."""
REDIRECTS_AN_ARTICLE = 1.57
CATEGORIES_AN_ARTICLE = 0.36
CATEGORIES_OF_AN_ARTICLE = (2, 9)
SEED = 1
_LINK = re.compile(r"\[\[([^\[\]|#:<>{}\n]+)(#[^\[\]|\n]*)?(\|[^\[\]\n]*)?\]\]")
_CATEGORY = re.compile(r"\[\[Category:[^\[\]]*\]\]\n?")
_PAIRS = (("{{", "}}"), ("[[", "]]"), ("{|", "\n|}"))


def blocks_of(pages: list[RawPage]) -> list[str]:
    """Returns the blocks of articles in which every brace and bracket is closed."""
    blocks = []
    for page in pages:
        waiting: list[str] = []
        for piece in _CATEGORY.sub("", page.text).split("\n\n"):
            waiting.append(piece)
            block = "\n\n".join(waiting)
            if all(block.count(opened) == block.count(closed) for opened, closed in _PAIRS):
                blocks.append(block)
                waiting = []
            elif len(waiting) > 40:  # a page whose braces do not match
                waiting = []
    return [block for block in blocks if block.strip()]


def pages_like_enwiki(pages: list[RawPage], *, n_mb: float) -> Iterator[MadePage]:
    """Yields pages with about ``n_mb`` MB (10^6 bytes) of XML: the real pages of other namespaces once, then articles
    of random sizes with redirects and categories between them.

    Args:
        pages: the pages of the slices, from ``base_pages``.
        n_mb: size of the XML.
    """
    draw = Random(SEED)
    articles = [page for page in pages if page.namespace == 0 and page.redirect_title is None and page.text.strip()]
    blocks = blocks_of(articles)
    n_articles = max(int(n_mb * 1e6 * ARTICLES_SHARE / ARTICLE_BYTES), 1)
    n_redirects = int(n_articles * REDIRECTS_AN_ARTICLE)
    n_categories = int(n_articles * CATEGORIES_AN_ARTICLE)
    median = log(ARTICLE_BYTES) - SIZE_SIGMA**2 / 2

    def linked() -> str:
        kind = draw.random()
        if kind < REDIRECT_SHARE:
            return title_of(n_articles + draw.randrange(max(n_redirects, 1)))
        if kind > 1 - MISSING_SHARE:
            return title_of(n_articles + n_redirects + draw.randrange(n_articles))
        return title_of(int(n_articles * draw.random() ** (1 / (1 - ZIPF_EXPONENT))))

    def link(found: re.Match[str]) -> str:
        return f"[[{linked()}{found[2] or ''}{found[3] or f'|{found[1]}'}]]"

    def article() -> str:
        n_bytes = min(draw.lognormvariate(median, SIZE_SIGMA), MOST_BYTES)
        written: list[str] = []
        n_written = 0
        while n_written < n_bytes:
            block = _LINK.sub(link, draw.choice(blocks))
            written.append(block)
            n_written += len(block)
        categories = (draw.randrange(max(n_categories, 1)) for _ in range(draw.randint(*CATEGORIES_OF_AN_ARTICLE)))
        return "\n\n".join((*written, "\n".join(f"[[Category:{title_of(number)}]]" for number in categories)))

    # Articles, redirects and categories in a drawn order, each by the number of its title.
    kinds = [0] * n_articles + [1] * n_redirects + [2] * n_categories
    draw.shuffle(kinds)
    numbers = [iter(draw.sample(range(count), count)) for count in (n_articles, n_redirects, n_categories)]
    page_id = 0
    for page in pages:
        if page.namespace != 0:
            page_id += 1
            yield _made(replace(page, page_id=page_id))
    plain = replace(articles[0], redirect_title=None, namespace=0)
    for kind in kinds:
        page_id += 1
        number = next(numbers[kind])
        if kind == 0:
            page = replace(plain, page_id=page_id, title=title_of(number), text=article())
        elif kind == 1:
            target = title_of(number * 31 % n_articles)
            page = replace(
                plain,
                page_id=page_id,
                title=title_of(n_articles + number),
                redirect_title=target,
                text=f"#REDIRECT [[{target}]]\n\n{{{{R from move}}}}",
            )
        else:
            parent = title_of(draw.randrange(n_categories))
            page = replace(
                plain,
                page_id=page_id,
                namespace=14,
                title=f"Category:{title_of(number)}",
                text=f"[[Category:{parent}]]",
            )
        yield _made(page)


def _made(page: RawPage) -> MadePage:
    is_article = page.namespace == 0 and page.redirect_title is None
    return MadePage(f"{page.page_id}:{escape(page.title)}", is_article=is_article, xml=page_xml(page).encode())
