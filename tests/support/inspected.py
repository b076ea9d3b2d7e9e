"""Small releases of pages for the inspector's tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace
from starlette.testclient import TestClient

from kbsource.records import Anchor, Element, Page
from mapping.inspector.app import inspector_app
from mapping.inspector.opened import OpenRelease, close_releases, open_releases
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, redirect_to, write_release

N_PAGES = 60
REDIRECT_ID, REDIRECT = 5_000, "The old name"
"""A redirect to the page with id 1."""


def inspected_pages() -> Iterator[Page]:
    """Made-up pages; the first one has nested lists and a dead link."""
    first, *others = synthetic_pages(N_PAGES, n_paragraphs=6)
    at = len(first.elements)
    lists = [
        Element("heading", 2, None, "", ("Lists and <b>",), "Lists and <b>"),
        Element("list_item", 1, 1, "#", ("Lists and <b>",), "first"),
        Element("list_item", 2, None, "#*", ("Lists and <b>",), "below the first"),
        Element("list_item", 1, 2, "#", ("Lists and <b>",), "second 𝔘nknown"),
    ]
    dead = Anchor(at + 3, 7, 14, "𝔘nknown", "Unknown", None, None, "unknown")
    yield replace(first, elements=(*first.elements, *lists), anchors=(*first.anchors, dead))
    yield from others


def write_inspected(folder: Path, pages: Iterable[Page]) -> str:
    """Writes a release of pages with one redirect, and gives its folder."""
    own = list(pages)
    rows = [TitleRow(page.page_id, page.title) for page in own]
    write_release(folder, own, titles=[*rows, redirect_to(REDIRECT_ID, REDIRECT, own[0].title)])
    return str(folder / "release")


@contextmanager
def opened_release(path: str) -> Iterator[OpenRelease]:
    """Opens a release, and makes its side indexes."""
    releases = open_releases([path])
    try:
        for index in (releases[0].finder.titles, releases[0].finder.backlinks, releases[0].finder.texts):
            index.wait()
        yield releases[0]
    finally:
        close_releases(releases)


def client_of(*releases: OpenRelease, host: str = "127.0.0.1") -> TestClient:
    """A client that asks as a browser on this machine does."""
    return TestClient(inspector_app(releases), base_url=f"http://{host}", follow_redirects=False)


def listed(client: TestClient, url: str) -> str:
    """The numbers of the rows that a list shows, one behind the other."""
    answer = client.get(url)
    assert answer.status_code == 200, answer.text
    return "".join(re.findall(r'<a class="row" href="[^"]*/tables/\w+/(\d+)', answer.text))
