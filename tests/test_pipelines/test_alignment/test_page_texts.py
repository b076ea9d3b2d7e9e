"""Pages of a release with nothing but what is searched in them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kbsource.release.pages.kind import PAGES_RELEASE
from pipelines.primitives.page_texts import PageTexts
from tests.support.builds import open_release
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, write_release

N_PAGES = 23


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    pages = list(synthetic_pages(N_PAGES, n_paragraphs=3))
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    write_release(folder, pages, titles=titles, rows_per_shard=7, n_shards=4)
    return folder / "release"


@pytest.mark.parametrize("has_anchors", [False, True])
@pytest.mark.parametrize("order", ["as stored", "backwards", "drawn"])
def test_every_page_is_given_at_its_position_in_any_order(kb: Path, has_anchors: bool, order: str) -> None:
    files = PAGES_RELEASE.read(str(kb)).tables["pages"]
    texts = PageTexts(
        str(kb), tuple(one.file for one in files), tuple(one.rows for one in files), has_anchors=has_anchors
    )
    whole = list(open_release(kb))
    positions = list(range(N_PAGES))
    if order == "backwards":
        positions.reverse()
    if order == "drawn":
        positions = random.Random(1).choices(positions, k=40)

    for position in positions:
        page, expected = texts.page(position), whole[position]
        assert (page.page_id, page.title, page.elements) == (expected.page_id, expected.title, expected.elements)
        assert page.is_disambiguation == expected.is_disambiguation
        assert page.anchors == (expected.anchors if has_anchors else ())
    texts.close()
