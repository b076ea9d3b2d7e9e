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
from kbsource.files import LocalStorage
from kbsource.pages.staging import raw_pages
from kbsource.records import Page
from kbsource.release.columns import batch_to_pages
from kbsource.runtime.chunks import Key, Stored, read_stored
from pipelines.runners.running import run_pipeline
from pipelines.transforms.parse_wikitext import ParseWikitext
from pipelines.transforms.read_dump import ReadWikipediaDump
from pipelines.transforms.read_pages import ReadPages
from pipelines.transforms.title_index import BuildTitleIndex
from tests.support import mini_wiki
from tests.support.builds import open_release


def batches(rows: Stored | pa.RecordBatch) -> list[pa.RecordBatch]:
    return list(read_stored(rows, LocalStorage())) if isinstance(rows, Stored) else [rows]


def titles_of(chunk: tuple[Key, Any]) -> list[str]:
    return [raw.title for batch in batches(chunk[1]) for _, raw in raw_pages(batch)]


def pages_of(chunk: tuple[Key, Any]) -> list[Page]:
    return [page for batch in batches(chunk[1]) for page in batch_to_pages(batch)]


def summed(counts: list[tuple[Key, dict[str, int]]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for _, one in counts:
        total.update(one)
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


@pytest.mark.parametrize("is_stored", [False, True])
def test_parsing_with_an_index_gives_the_pages_of_a_build(release: Path, tmp_path: Path, is_stored: bool) -> None:
    expected = [page.elements and page.anchors for page in open_release(release)]
    read = ReadWikipediaDump(str(mini_wiki.MULTISTREAM), range_bytes=10_000)
    with TestPipeline(runner="FnApiRunner") as pipeline:
        dump = pipeline | read
        index = dump.titles | BuildTitleIndex(str(tmp_path / "index"))
        folder = str(tmp_path / "pages") if is_stored else None
        pages = dump.raw | "parse" >> ParseWikitext(read.site, index, folder=folder)
        anchors = pages.chunks | beam.FlatMap(pages_of) | beam.Map(lambda page: page.anchors)
        assert_that(anchors, equal_to(expected), label="pages")
        assert_that(pages.rejected, equal_to([]), label="rejected")
        counts = pages.counts | beam.combiners.ToList() | beam.Map(summed)
        assert_that(counts, equal_to([{"articles": mini_wiki.N_ARTICLES, "skipped": 0}]), label="counts")


def test_without_an_index_links_lead_nowhere_and_text_is_the_same(release: Path) -> None:
    read = ReadWikipediaDump(str(mini_wiki.MULTISTREAM), max_pages=30)
    texts = [page.elements for page in open_release(release)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        pages = (pipeline | read).raw | ParseWikitext(read.site)
        found = pages.chunks | beam.FlatMap(pages_of)
        # Those to a section of the page itself need no index.
        targets = found | beam.FlatMap(lambda page: {one.target_page_id for one in page.anchors} - {page.page_id})
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


def test_the_pages_of_a_release_come_in_chunks_with_their_places(release: Path) -> None:
    expected = [(page.page_id, page.title) for page in open_release(release)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        chunks = pipeline | ReadPages(str(release), columns=["page_id", "title"])
        rows = chunks | beam.FlatMapTuple(lambda _, batch: zip(*batch.to_pydict().values(), strict=True))
        assert_that(rows, equal_to(expected), label="rows")
        assert_that(chunks | beam.Map(lambda chunk: chunk[0]), equal_to([Key(0, 0)]), label="keys")


def test_no_release_is_said_when_the_pipeline_is_put_together(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no finished release"):
        ReadPages(str(tmp_path))
