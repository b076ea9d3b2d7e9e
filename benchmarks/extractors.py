"""Runs one extractor in a separate process: reads wikitexts, then extracts all of them once for every line on stdin.

It runs as a plain script, with kbsource's interpreter or with the peers' (``environment.peer_python``). Therefore, it
imports only the standard library and the chosen extractor. The measured time is ``time.process_time`` around the loop
over the pages. It excludes start-up, imports, and reading and preparing the input.

Input, JSON lines: ``{"sites": [...]}``, then pages: ``{"site": 0, "id": 10, "title": "A", "text": ""}``. Output, JSON
lines: ``{"pages": n, "bytes": n}`` when ready, then ``{"cpu_s": s, "result_chars": n}`` for each round.
"""

from __future__ import annotations

import argparse
import functools
import gc
import html
import importlib
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

Pages = list[dict[str, Any]]
Work = Callable[[], int]


def kbsource_pages(pages: Pages, sites: list[dict[str, Any]]) -> Work:
    """Extracts whole pages with kbsource: elements, anchors, tables, infoboxes, templates, categories."""
    articles, guarded, records, site = (
        importlib.import_module(f"kbsource.{name}") for name in ("pages.articles", "runtime.guarded", "records", "site")
    )
    guarded.spare_collector()  # as every working process of a build does
    parsers = [articles.PageParser(site.Site.from_json(wiki_site)) for wiki_site in sites]
    work = [
        (
            parsers[page["site"]],
            records.RawPage(
                page_id=page["id"],
                namespace=0,
                title=page["title"],
                redirect_title=None,
                revision_id=1,
                parent_revision_id=None,
                timestamp="2001-01-15T00:00:00Z",
                model="wikitext",
                text=page["text"],
                file="",
                offset=-1,
            ),
        )
        for page in pages
    ]

    def run() -> int:
        n_chars = 0
        for parser, raw in work:
            for element in parser.parse(raw).text.elements:
                n_chars += len(element.text)
        return n_chars

    return run


def wikiextractor(pages: Pages, sites: list[dict[str, Any]], *, expands: bool, with_links: bool) -> Work:
    """Extracts text with wikiextractor; links become HTML if requested.

    ``expands`` makes it work as its command does, which expands templates even with ``--no-templates``, then without
    definitions. Without ``expands``, templates are removed unread. This is faster, but possible only by calling
    ``Extractor.clean_text``. wikiextractor expects text with XML escapes, as in a dump, so the pages are escaped
    beforehand.
    """
    logging.disable(logging.CRITICAL)
    extract = importlib.import_module("wikiextractor.extract")
    options: dict[str, Any] = {}
    if hasattr(extract, "_DEFAULT_IGNORED_TAG_PATTERNS"):  # from 3.1.0 on by argument, before that by globals
        ignored = [] if with_links else [extract.ignoreTag("a")]
        options = {
            "keepLinks": with_links,
            "ignored_tag_patterns": [*extract._DEFAULT_IGNORED_TAG_PATTERNS, *ignored],
        }
    else:
        extract.Extractor.keepLinks = with_links
        if not with_links:
            extract.ignoreTag("a")
    titles = [page["title"] for page in pages]
    texts = [html.escape(page["text"], quote=False).replace('"', "&quot;") for page in pages]

    def run() -> int:
        n_chars = 0
        for title, text in zip(titles, texts, strict=True):
            extractor = extract.Extractor("1", "1", "", title, [], **options)
            for line in extractor.clean_text(text, expand_templates=expands, html_safe=False):
                n_chars += len(line)
        return n_chars

    return run


def strip_code(pages: Pages, sites: list[dict[str, Any]]) -> Work:
    """Extracts text with mwparserfromhell: ``parse(text).strip_code()``."""
    parse = importlib.import_module("mwparserfromhell").parse
    texts = [page["text"] for page in pages]

    def run() -> int:
        n_chars = 0
        for text in texts:
            n_chars += len(parse(text).strip_code())
        return n_chars

    return run


def segment_wiki(pages: Pages, sites: list[dict[str, Any]], *, with_links: bool) -> Work:
    """Extracts top-level sections as text with gensim's segment_wiki, and a list of the page's links if requested."""
    logging.disable(logging.CRITICAL)
    segment = importlib.import_module("gensim.scripts.segment_wiki").segment
    xmls = [
        '<page xmlns="http://www.mediawiki.org/xml/export-0.10/">'
        f"<title>{html.escape(page['title'])}</title><ns>0</ns>"
        f"<revision><text>{html.escape(page['text'], quote=False)}</text></revision></page>"
        for page in pages
    ]

    def run() -> int:
        n_chars = 0
        for xml in xmls:
            for _, text in segment(xml, include_interlinks=with_links)[1]:
                n_chars += len(text)
        return n_chars

    return run


EXTRACTORS: dict[str, Callable[[Pages, list[dict[str, Any]]], Work]] = {
    "kbsource": kbsource_pages,
    "wikiextractor": functools.partial(wikiextractor, expands=True, with_links=False),
    "wikiextractor, links": functools.partial(wikiextractor, expands=True, with_links=True),
    "wikiextractor, library call": functools.partial(wikiextractor, expands=False, with_links=False),
    "strip_code": strip_code,
    "segment_wiki": functools.partial(segment_wiki, with_links=False),
    "segment_wiki, links": functools.partial(segment_wiki, with_links=True),
}


def main() -> None:
    """Runs a round for every line, until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("extractor", choices=EXTRACTORS)
    parser.add_argument("texts")
    args = parser.parse_args()
    with open(args.texts, encoding="utf-8") as file:
        sites = json.loads(next(file))["sites"]
        pages = [json.loads(line) for line in file]
    n_bytes = sum(len(page["text"].encode()) for page in pages)
    run = EXTRACTORS[args.extractor](pages, sites)
    gc.freeze()  # the input is no one's garbage
    print(json.dumps({"pages": len(pages), "bytes": n_bytes}), flush=True)
    for _ in sys.stdin:
        gc.collect()
        start = time.process_time()
        n_chars = run()
        print(json.dumps({"cpu_s": time.process_time() - start, "result_chars": n_chars}), flush=True)


if __name__ == "__main__":
    main()
