"""Makes a dump of any size from the real slices, by repeating their pages with new ids and new titles.

In the first round, pages keep their titles; if a title occurs twice, its second page gets a number. So the links and
redirects of every round resolve. Texts are not changed. The same slices and the same size give the same bytes.
"""

from __future__ import annotations

import argparse
import bz2
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from msgspec.structs import replace

from benchmarks.slices import OTHERS, S1, data_root, read_slices
from kbsource.records import RawPage
from kbsource.site import CANONICAL_NAMESPACES

PAGES_PER_STREAM = 100
# The pages are of several wikis; those outside the main namespace get the canonical English prefix.
NAMESPACES = {0: "", **{number: names[0] for number, names in sorted(CANONICAL_NAMESPACES.items())}}
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n'
    "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
    "    <base>https://en.wikipedia.org/wiki/Main_Page</base>\n"
    "    <generator>kbsource benchmarks</generator>\n"
    "    <case>first-letter</case>\n    <namespaces>\n"
    + "".join(
        f'      <namespace key="{number}" case="first-letter">{name}</namespace>\n'
        if name
        else '      <namespace key="0" case="first-letter" />\n'
        for number, name in sorted(NAMESPACES.items())
    )
    + "    </namespaces>\n  </siteinfo>\n"
)
TAIL = "</mediawiki>\n"


@dataclass(frozen=True)
class MadeDump:
    """A dump that was made: its decompressed and compressed size in bytes, and the numbers of pages and articles."""

    path: Path
    n_xml_bytes: int
    n_bytes: int
    n_pages: int
    n_articles: int


class MadePage(NamedTuple):
    """A page to write: its id and title for the index, whether it is an article, and its XML."""

    key: str
    is_article: bool
    xml: bytes


def base_pages(root: Path, names: Sequence[str] = (S1, *OTHERS)) -> list[RawPage]:
    """Returns every page of every slice once, with a unique title and English namespace prefixes."""
    pages: list[RawPage] = []
    seen: dict[str, int] = {}
    for read_slice in read_slices(root, names):
        for page in read_slice.pages:
            title = page.title
            if page.namespace != 0:
                title = f"{NAMESPACES.get(page.namespace, 'Project')}:{title.split(':', 1)[-1]}"
            n_seen = seen.get(title, 0)
            seen[title] = n_seen + 1
            pages.append(_with_title(page, f"{title} ({n_seen + 1})" if n_seen else title))
    return pages


def _with_title(page: RawPage, title: str) -> RawPage:
    return replace(page, title=title, namespace=page.namespace if page.namespace in NAMESPACES else 4)


def page_xml(page: RawPage) -> str:
    """Returns one ``<page>`` of export schema 0.10; revision ids follow from the page id."""
    redirect = "" if page.redirect_title is None else f"    <redirect title={quoteattr(page.redirect_title)} />\n"
    return (
        f"  <page>\n    <title>{escape(page.title)}</title>\n"
        f"    <ns>{page.namespace}</ns>\n    <id>{page.page_id}</id>\n"
        f"{redirect}    <revision>\n      <id>{1_000_000 + page.page_id}</id>\n"
        f"      <parentid>{page.page_id}</parentid>\n"
        f"      <timestamp>{page.timestamp}</timestamp>\n"
        "      <contributor>\n        <username>A</username>\n        <id>1</id>\n      </contributor>\n"
        f"      <model>{page.model}</model>\n      <format>text/x-wiki</format>\n"
        f'      <text xml:space="preserve">{escape(page.text)}</text>\n    </revision>\n  </page>\n'
    )


def made_pages(pages: list[RawPage], *, n_mb: float) -> Iterator[MadePage]:
    """Yields pages round after round, with ids from 1 on, until they have ``n_mb`` MB (10^6 bytes)."""
    n_bytes = page_id = copy = 0
    while True:
        for page in pages:
            page_id += 1
            title = f"{page.title} (copy {copy})" if copy else page.title
            xml = page_xml(replace(page, page_id=page_id, title=title)).encode()
            yield MadePage(
                key=f"{page_id}:{escape(title)}",
                is_article=page.namespace == 0 and page.redirect_title is None,
                xml=xml,
            )
            n_bytes += len(xml)
            if n_bytes >= n_mb * 1e6:
                return
        copy += 1


def make_dump(path: Path, *, root: Path, n_mb: float, multistream: bool) -> MadeDump:
    """Writes the dump as .bz2 at ``path``; a multistream dump also gets ``…-index.txt.bz2`` in the same folder."""
    return write_dump(path, made_pages(base_pages(root), n_mb=n_mb), multistream=multistream)


def made_up_dump(path: Path, pages: Iterable[tuple[int, str, str]]) -> MadeDump:
    """Writes articles, given as (page id, title, wikitext), as a multistream dump."""
    return write_dump(path, map(made_up_page, pages), multistream=True)


def made_up_page(page: tuple[int, str, str]) -> MadePage:
    """Returns the page to write for an article, given as (page id, title, wikitext)."""
    page_id, title, text = page
    raw = RawPage(
        page_id=page_id,
        namespace=0,
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
    return MadePage(f"{page_id}:{escape(title)}", is_article=True, xml=page_xml(raw).encode())


def write_dump(path: Path, pages: Iterable[MadePage], *, multistream: bool) -> MadeDump:
    """Writes pages as a complete dump. A multistream dump has 100 pages per stream, and an index like Wikimedia's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    n_xml_bytes = len(HEAD.encode()) + len(TAIL.encode())
    n_pages = n_articles = 0
    index = bz2.BZ2Compressor(9)
    index_parts: list[bytes] = []
    with path.open("wb") as file:
        sink = _Streams(file, multistream=multistream)
        sink.write(HEAD.encode())
        for page in pages:
            if n_pages % PAGES_PER_STREAM == 0:
                sink.cut()
            index_parts.append(index.compress(f"{sink.offset}:{page.key}\n".encode()))
            sink.write(page.xml)
            n_xml_bytes += len(page.xml)
            n_pages += 1
            n_articles += page.is_article
        sink.cut()
        sink.write(TAIL.encode())
        sink.close()
    if multistream:
        path.with_name(index_name(path.name)).write_bytes(b"".join([*index_parts, index.flush()]))
    return MadeDump(path, n_xml_bytes, path.stat().st_size, n_pages, n_articles)


def index_name(name: str) -> str:
    """Returns the file name of the index: ``x-multistream.xml.bz2`` -> ``x-multistream-index.txt.bz2``."""
    return f"{name.removesuffix('.xml.bz2')}-index.txt.bz2"


class _Streams:
    """A bz2 file with a single stream, or with a new stream after every ``cut``."""

    def __init__(self, file: BinaryIO, *, multistream: bool) -> None:
        self._file = file
        self._multistream = multistream
        self._compressor = bz2.BZ2Compressor(9)
        self.offset = 0

    def write(self, data: bytes) -> None:
        self._file.write(self._compressor.compress(data))

    def cut(self) -> None:
        if self._multistream:
            self._file.write(self._compressor.flush())
            self._compressor = bz2.BZ2Compressor(9)
            self.offset = self._file.tell()

    def close(self) -> None:
        self._file.write(self._compressor.flush())


def cached_dump(folder: Path, *, root: Path, n_mb: int, multistream: bool = True) -> MadeDump:
    """Returns the dump of this size in ``folder``, made on first use."""
    kind = "-multistream" if multistream else ""
    path = folder / f"{n_mb}mb" / f"enwiki-20000101-pages-articles{kind}.xml.bz2"
    facts = path.with_suffix(".json")
    if facts.is_file():
        return MadeDump(path, **json.loads(facts.read_text()))
    made = make_dump(path, root=root, n_mb=n_mb, multistream=multistream)
    facts.write_text(json.dumps({key: value for key, value in asdict(made).items() if key != "path"}))
    return made


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="the .xml.bz2 to write")
    parser.add_argument("--mb", type=float, default=50, help="size of the XML in MB (10^6 bytes)")
    parser.add_argument("--single-stream", action="store_true", help="one bz2 stream and no index")
    parser.add_argument(
        "--like", choices=["enwiki"], help="use the sizes, redirects and links of the English Wikipedia"
    )
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    args = parser.parse_args()
    root, multistream = data_root(args.data), not args.single_stream
    if args.like:
        from benchmarks.like_enwiki import pages_like_enwiki

        pages = pages_like_enwiki(base_pages(root, (S1,)), n_mb=args.mb)
        made = write_dump(args.output, pages, multistream=multistream)
    else:
        made = make_dump(args.output, root=root, n_mb=args.mb, multistream=multistream)
    print(
        f"{made.path}: {made.n_pages} pages, {made.n_articles} articles, "
        f"{made.n_xml_bytes / 1e6:.1f} MB of XML in {made.n_bytes / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
