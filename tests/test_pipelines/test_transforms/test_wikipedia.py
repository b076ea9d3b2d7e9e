"""A dump read, indexed and parsed, and a release read, by transforms in a pipeline of one's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import DataError, SetupError
from kbsource.index.definition_store import DefinitionStore
from kbsource.pages.staging import raw_pages
from kbsource.records import Page
from kbsource.release.pages.reading import pages_of
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_stored
from kbsource.site import Site
from pipelines.runners.running import run_pipeline
from pipelines.transforms import BuildDefinitions, BuildTitleIndex, ParseWikitext, ReadPages, ReadWikipediaDump
from tests.support import defined_wiki, mini_wiki
from tests.support.builds import open_release
from tests.support.snapshots import RECORDS, write_tar


def batches(rows: BatchRef | pa.RecordBatch) -> list[pa.RecordBatch]:
    return list(read_stored(rows)) if isinstance(rows, BatchRef) else [rows]


def titles_of(chunk: tuple[ChunkKey, Any]) -> list[str]:
    return [raw.title for batch in batches(chunk[1]) for _, raw in raw_pages(batch)]


def chunk_pages(chunk: tuple[ChunkKey, Any]) -> list[Page]:
    return [page for batch in batches(chunk[1]) for page in pages_of(batch)]


def summed(counts: list[tuple[ChunkKey, dict[str, int]]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for _, counter in counts:
        total.update(counter)
    return dict(total)


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_dump_gives_articles_titles_rejects_and_counts(release: Path, tmp_path: Path, is_stored: bool) -> None:
    folder = str(tmp_path) if is_stored else None
    for _ in range(2):  # the second time what is in the folder is taken
        read = ReadWikipediaDump(str(mini_wiki.MULTISTREAM), range_bytes=10_000, folder=folder)
        with TestPipeline(runner="FnApiRunner") as pipeline:
            dump = pipeline | read
            found = dump.raw | beam.FlatMap(titles_of)
            assert_that(found, equal_to([page.title for page in open_release(release)]), label="raw")
            ids = dump.titles | beam.FlatMap(
                lambda chunk: [i for b in batches(chunk[1]) for i in b["page_id"].to_pylist()]
            )
            n_titles = ids | beam.combiners.Count.Globally()
            assert_that(n_titles, equal_to([mini_wiki.N_ARTICLES + mini_wiki.N_REDIRECTS]), label="titles")
            reasons = dump.rejected | beam.Map(lambda bad: bad.reason)
            assert_that(reasons, equal_to(["malformed_xml", "text_deleted"]), label="rejected")
            expected = {
                "pages": mini_wiki.N_PAGES,
                "articles": mini_wiki.N_ARTICLES,
                "redirects": mini_wiki.N_REDIRECTS,
                "other_namespaces": mini_wiki.N_OTHER_NAMESPACES,
                "not_selected": 0,
                "rejected": 2,
            }
            counts = dump.counts | beam.combiners.ToList() | beam.Map(summed)
            assert_that(counts, equal_to([expected]), label="counts")


@pytest.mark.slow  # a job several times
@pytest.mark.parametrize("is_stored", [False, True])
def test_parsing_with_an_index_gives_the_chunk_pages_a_build(release: Path, tmp_path: Path, is_stored: bool) -> None:
    expected = [page.elements and page.anchors for page in open_release(release)]
    read = ReadWikipediaDump(str(mini_wiki.MULTISTREAM), range_bytes=10_000)
    with TestPipeline(runner="FnApiRunner") as pipeline:
        dump = pipeline | read
        index = dump.titles | BuildTitleIndex(str(tmp_path / "index"))
        folder = str(tmp_path / "pages") if is_stored else None
        pages = dump.raw | "parse" >> ParseWikitext(read.site, index, folder=folder)
        anchors = pages.chunks | beam.FlatMap(chunk_pages) | beam.Map(lambda page: page.anchors)
        assert_that(anchors, equal_to(expected), label="pages")
        assert_that(pages.rejected, equal_to([]), label="rejected")
        counts = pages.counts | beam.combiners.ToList() | beam.Map(summed)
        assert_that(counts, equal_to([{"articles": mini_wiki.N_ARTICLES, "skipped": 0}]), label="counts")


def test_without_an_index_links_lead_nowhere_and_text_is_the_same(release: Path) -> None:
    read = ReadWikipediaDump(str(mini_wiki.MULTISTREAM), max_pages=30)
    texts = [page.elements for page in open_release(release)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        pages = (pipeline | read).raw | ParseWikitext(read.site)
        found = pages.chunks | beam.FlatMap(chunk_pages)
        # Those to a section of the page itself need no index.
        targets = found | beam.FlatMap(lambda page: {anchor.target_page_id for anchor in page.anchors} - {page.page_id})
        assert_that(targets | beam.Distinct(), equal_to([None]), label="targets")
        assert_that(
            found | beam.Filter(lambda page: page.elements not in texts) | beam.combiners.Count.Globally(),
            equal_to([0]),
            label="texts",
        )


def test_too_many_titles_with_one_page_id_end_the_job(tmp_path: Path) -> None:
    for name in ("wiki-1.xml.bz2", "wiki-2.xml.bz2"):
        (tmp_path / name).write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    pipeline = TestPipeline(runner="FnApiRunner")
    dump = pipeline | ReadWikipediaDump(str(tmp_path / "wiki-*.xml.bz2"))
    _ = dump.titles | BuildTitleIndex(str(tmp_path / "index"), max_duplicates=0.4)

    with pytest.raises(DataError, match=r"titles rejected, 50\.000%.*duplicate_page_id"):
        run_pipeline(pipeline, "test")


def test_the_chunk_pages_a_release_come_in_chunks_with_their_places(release: Path) -> None:
    expected = [(page.page_id, page.title) for page in open_release(release)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        chunks = pipeline | ReadPages(str(release), columns=["page_id", "title"])
        rows = chunks | beam.FlatMapTuple(lambda _, batch: zip(*batch.to_pydict().values(), strict=True))
        assert_that(rows, equal_to(expected), label="rows")
        assert_that(chunks | beam.Map(lambda chunk: chunk[0]), equal_to([ChunkKey(0, 0)]), label="keys")


def test_no_release_is_said_when_the_pipeline_is_put_together(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no finished release"):
        ReadPages(str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("is_stored", [False, True])
def test_templates_of_all_ranges_are_in_one_store(tmp_path: Path, is_stored: bool) -> None:
    dump = defined_wiki.write_dumps(tmp_path)
    folder = str(tmp_path / "staged") if is_stored else None
    for _ in range(2):  # the second time what is in the folders is taken
        read = ReadWikipediaDump(dump, range_bytes=700, folder=folder, has_definitions=True)
        with TestPipeline(runner="FnApiRunner") as pipeline:
            stores = (pipeline | read).definitions | BuildDefinitions(str(tmp_path / "store"))
            assert_that(stores, equal_to([str(tmp_path / "store")]))
    found = DefinitionStore(str(tmp_path / "store"), read.site)

    assert found.source("Twice") == found.source("Zeime-de") == defined_wiki.TEMPLATES["Zeime-de"][0]
    assert (found.source("Loop"), found.module("Numbers")) == (None, defined_wiki.MODULES["Numbers"])
    assert len(found) == len(defined_wiki.TEMPLATES)


def test_a_store_that_is_there_is_taken(tmp_path: Path) -> None:
    for dump in (defined_wiki.write_dumps(tmp_path), str(tmp_path / "*articles1.xml")):
        with TestPipeline(runner="FnApiRunner") as pipeline:
            read = ReadWikipediaDump(dump, has_definitions=True)
            _ = (pipeline | read).definitions | BuildDefinitions(str(tmp_path / "store"))

    assert len(DefinitionStore(str(tmp_path / "store"), Site(lang="ltg"))) == len(defined_wiki.TEMPLATES)


def test_definitions_are_not_asked_for_by_default(tmp_path: Path) -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        dump = pipeline | ReadWikipediaDump(defined_wiki.write_dumps(tmp_path))
        assert_that(dump.definitions | beam.combiners.Count.Globally(), equal_to([0]))


def test_definitions_need_an_index() -> None:
    with pytest.raises(SetupError, match="need an index"):
        ParseWikitext(Site(), definitions=object())


def test_pages_of_a_snapshot_of_html_are_parsed_by_its_parser(tmp_path: Path) -> None:
    read = ReadWikipediaDump(str(write_tar(tmp_path / "a.tar.gz", [RECORDS])))
    with TestPipeline(runner="FnApiRunner") as pipeline:
        dump = pipeline | read
        index = dump.titles | BuildTitleIndex(str(tmp_path / "index"))
        pages = dump.raw | "parse" >> ParseWikitext(read.site, index, parser=read.parser)
        links = pages.chunks | beam.FlatMap(chunk_pages) | beam.FlatMap(lambda page: page.anchors)
        targets = links | beam.Map(lambda anchor: (anchor.text, anchor.target_page_id))
        assert_that(targets, equal_to([("Port Sellick", 12), ("a ferry", 57)]), label="links")
