"""Reads the real dump slices as plain pages, without kbsource's own reader, so that counts can be compared with an
independent count.
"""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from lxml import etree

from kbsource.records import RawPage
from kbsource.site import Site

REPOSITORY = Path(__file__).resolve().parent.parent
S1 = "gensim_enwiki-p10p30302-shortened.xml.bz2"
OTHERS = (
    "andresmit_wiki.xml.gz",
    "anubhavs11_wiki.xml.gz",
    "cyberzhg_zhwiki-test-pages.xml.gz",
    "dumpsterdive_smallwiki-pages-articles.xml.gz",
    "gensim_bgwiki-shortened.xml.bz2",
    "gensim_enwiki-table-markup.xml.bz2",
    "nwtgck_wikidump.xml.gz",
    "semanticizest_nlwiki-20140927-sample.xml.gz",
    "totocptbgn_frwiki10000.xml.gz",
    "wikibrain_en_test.xml.gz",
    "wikiextractor_test.xml.gz",
    "aawiki/aawiki-20260101-pages-meta-current.xml.bz2",
)
WIKITEXT = "wikitext"


@dataclass
class Slice:
    """One dump file: facts about its wiki, and its pages in order (last revision, all namespaces).

    Attributes:
        name: file name without its folder and suffixes.
        site: facts from ``<siteinfo>``; the language is that of ``xml:lang``.
        pages: every complete page. A truncated file ends with its last complete page.
        is_truncated: whether the XML is truncated.
    """

    name: str
    site: Site
    pages: list[RawPage] = field(default_factory=list)
    is_truncated: bool = False

    def articles(self) -> list[RawPage]:
        """Returns the pages of namespace 0 that have wikitext and are neither redirects nor empty."""
        return [
            page
            for page in self.pages
            if page.namespace == 0 and page.redirect_title is None and page.model == WIKITEXT and page.text.strip()
        ]


def data_root(option: str | None = None) -> Path:
    """Returns the folder of the real data: the option, else ``KBSOURCE_REAL_DATA``, else ``../shared/data``.

    Raises:
        SystemExit: the folder or its slices are missing.
    """
    root = Path(option or os.environ.get("KBSOURCE_REAL_DATA") or REPOSITORY.parent / "shared" / "data")
    if not (root / "dumps" / S1).is_file():
        raise SystemExit(f"{root}: no dumps/{S1} in it. Name the real data with --data or KBSOURCE_REAL_DATA.")
    return root


def open_plain(path: Path) -> BinaryIO:
    """Opens a dump for reading its decompressed bytes; the suffix determines the compression."""
    if path.suffix == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def read_slice(path: Path) -> Slice:
    """Reads a whole dump file into memory."""
    result = Slice(name=path.name.split(".", 1)[0], site=Site())
    with open_plain(path) as file:
        events = etree.iterparse(file, events=("start", "end"), resolve_entities=False, huge_tree=True)
        try:
            for event, element in events:
                tag = etree.QName(element).localname
                if event == "start":
                    if tag == "mediawiki":
                        lang = element.get("{http://www.w3.org/XML/1998/namespace}lang") or "en"
                        result.site = Site(lang=lang)
                elif tag == "siteinfo":
                    result.site = _site(element, result.site.lang)
                elif tag == "page":
                    result.pages.append(_page(element, path.name))
                    element.clear()
        except etree.XMLSyntaxError:
            result.is_truncated = True
    return result


def read_slices(root: Path, names: tuple[str, ...]) -> Iterator[Slice]:
    """Reads the named slices; slices that do not exist are skipped."""
    for name in names:
        path = root / "dumps" / name
        if path.is_file():
            yield read_slice(path)


def _text(element: etree._Element, name: str) -> str:
    found = element.find(f"{{*}}{name}")
    return "" if found is None else found.text or ""


def _site(element: etree._Element, lang: str) -> Site:
    namespaces = {
        int(namespace.get("key") or 0): namespace.text or ""
        for namespace in element.iterfind("{*}namespaces/{*}namespace")
    }
    return Site(
        lang=lang,
        dbname=_text(element, "dbname"),
        name=_text(element, "sitename"),
        base_url=_text(element, "base"),
        generator=_text(element, "generator"),
        case=_text(element, "case") or "first-letter",
        namespaces=namespaces,
    )


def _page(element: etree._Element, file: str) -> RawPage:
    redirect = element.find("{*}redirect")
    revisions = element.findall("{*}revision")
    revision = revisions[-1] if revisions else etree.Element("revision")
    parent = _text(revision, "parentid")
    return RawPage(
        page_id=int(_text(element, "id") or 0),
        namespace=int(_text(element, "ns") or 0),
        title=_text(element, "title"),
        redirect_title=None if redirect is None else redirect.get("title", ""),
        revision_id=int(_text(revision, "id") or 0),
        parent_revision_id=int(parent) if parent else None,
        timestamp=_text(revision, "timestamp") or "2001-01-15T00:00:00Z",
        model=_text(revision, "model") or WIKITEXT,
        text=_text(revision, "text"),
        file=file,
        offset=-1,
    )
