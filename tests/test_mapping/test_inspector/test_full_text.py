"""Search in the texts of pages: what is found, in which order, and what is shown of it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from kbsource.records import Element, Page
from kbsource.release.pages.kind import PagesManifest
from mapping.inspector.full_text import SNIPPET_CHARS, FullText, full_text
from mapping.inspector.opened import open_releases
from tests.support.inspected import client_of, write_inspected
from tests.support.pages import synthetic_pages

pytest.importorskip("tantivy", reason="needs kbsource[search]")

LONG = " ".join(f"filler{number}" for number in range(200))
TEXTS = {
    "Harbour": ("A port for ships.",),
    "Lighthouse": ("It stands at the harbour.", "Ships see its light."),
    "Ships of the line": ("Ships, ships and more ships.", f"{LONG} The Heron was a harbour pilot. {LONG}"),
    "Nothing": ("Empty of it.",),
    "Größe": ("Über Häuser und 𝔘nicode_names.",),
    "Mole": (LONG,),
    "Quay": ("Mole, mole, mole, mole.",),
    "<b>Bold</b>": ("A harbour <script>alert(1)</script> & more.",),
}


def made_pages() -> list[Page]:
    """A page for each title; their texts are paragraphs."""
    pages = []
    for number, (model, (title, texts)) in enumerate(zip(synthetic_pages(len(TEXTS)), TEXTS.items(), strict=True)):
        elements = (model.elements[0], *(Element("paragraph", 0, None, "", (), text) for text in texts))
        title_element = replace(elements[0], text=title)
        pages.append(
            replace(
                model,
                page_id=number + 1,
                title=title,
                elements=(title_element, *elements[1:]),
                anchors=(),
                tables=(),
                infoboxes=(),
            )
        )
    return pages


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_inspected(tmp_path_factory.mktemp("texts"), made_pages())


@pytest.fixture(scope="module")
def search(path: str) -> Callable[[str], list[str]]:
    (opened,) = open_releases([path])
    index = opened.finder.texts.wait()
    assert index is not None, opened.finder.texts.fault

    def found(query: str) -> list[str]:
        result = index.search(query, 0, 100)
        assert result.n_pages == len(result.ids)
        assert [page_id for n in range(9) for page_id in index.search(query, n, n + 1).ids] == list(result.ids)
        return [opened.finder.title(page_id) or "" for page_id in result.ids]

    return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("harbour", ["Harbour", "Lighthouse", "<b>Bold</b>", "Ships of the line"]),
        ("HARBOURS the", ["Harbour", "Lighthouse", "<b>Bold</b>", "Ships of the line"]),
        ("heron", ["Ships of the line"]),
        ("grösse größe", ["Größe"]),
        ("alert mole", ["Mole", "<b>Bold</b>", "Quay"]),
        ("nowhere", []),
        ("", []),
        ("?!", []),
        ("the of", []),
        ('ships" AND (title:', ["Ships of the line", "Harbour", "Lighthouse"]),
    ],
)
def test_pages_with_the_words_are_found_best_first(
    search: Callable[[str], list[str]], query: str, expected: list[str]
) -> None:
    assert search(query) == expected


def test_every_word_of_every_page_finds_it(search: Callable[[str], list[str]], path: str) -> None:
    (opened,) = open_releases([path])
    index = opened.finder.texts.wait()
    assert index is not None
    for page in made_pages():
        counts = Counter(word for element in page.elements for word in re.findall(r"[^\W_]+", element.text))
        for word in list(counts)[:30]:
            assert (page.title in search(word)) == bool(index.words(word))


def test_a_snippet_is_where_most_words_are_and_leads_there(path: str) -> None:
    (opened,) = open_releases([path])
    index = opened.finder.texts.wait()
    assert index is not None
    page = made_pages()[2]
    snippet = index.snippet(page, "the Heron's harbour")
    assert len(snippet.text) <= SNIPPET_CHARS + 2
    assert [snippet.text[start:end] for start, end in snippet.spans] == ["Heron", "harbour"]
    assert snippet.place is not None
    element = page.elements[snippet.place.element].text
    assert element[snippet.place.start : snippet.place.end] == "Heron"
    of_title = index.snippet(made_pages()[3], "quite other words")
    assert (of_title.text, of_title.spans, of_title.place) == ("Empty of it.", (), None)


def test_the_view_shows_results_with_their_words_marked_and_json_tells_them(path: str) -> None:
    (opened,) = open_releases([path])
    client = client_of(opened)
    first = client.get("/r/release/search?q=harbour&all").text
    assert "being indexed" in first or "In the text" in first
    opened.finder.texts.wait()
    text = client.get("/r/release/search?q=harbour&all").text
    assert "<mark>harbour</mark>" in re.sub(r"<mark [^>]*>", "<mark>", text)
    assert "&lt;script&gt;" in text
    assert "<script>alert" not in text
    told = client.get("/r/release/texts.json?q=harbour").json()
    assert (told["ready"], told["n_found"], told["fault"]) == (True, 4, None)
    assert [row["title"] for row in told["found"]] == ["Harbour", "Lighthouse", "<b>Bold</b>", "Ships of the line"]
    lighthouse = client.get(told["found"][1]["url"])
    assert lighthouse.status_code == 200
    assert "<mark" in lighthouse.text
    assert client.get("/r/release/search?q=harbour&all&from=9").status_code == 404
    assert client.get("/r/release/texts.json?q=harbour&from=x").status_code == 400
    assert client.get("/r/release/texts.json?q=").json()["found"] == []


def test_without_the_library_the_remedy_is_told(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (opened,) = open_releases([path])
    assert isinstance(opened.manifest, PagesManifest)
    assert full_text(path, opened.manifest).wait() is None
    client = client_of(opened)
    opened.finder.texts.wait()
    assert "pip install &#39;kbsource[search]&#39;" in client.get("/r/release/search?q=harbour&all").text


def test_an_index_is_kept_in_the_cache(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (opened,) = open_releases([path])
    assert isinstance(opened.manifest, PagesManifest)
    made = full_text(path, opened.manifest)
    assert isinstance(made.wait(), FullText)
    monkeypatch.setattr("mapping.inspector.full_text._write", lambda *_: pytest.fail("it was made before"))
    again = full_text(path, opened.manifest)
    assert isinstance(again.get(), FullText)
    assert again.percent == 100


def test_a_page_with_an_id_that_no_page_has_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write_inspected(tmp_path, made_pages())
    (opened,) = open_releases([path])
    assert isinstance(opened.manifest, PagesManifest)
    for file in Path(path, "pages").iterdir():
        table = pq.read_table(file)
        pq.write_table(table.set_column(0, "page_id", pa.array([-1] * len(table), table.schema.field(0).type)), file)

    index = full_text(path, opened.manifest)

    assert index.wait() is None
    assert "a page id must not be negative" in (index.fault or "")
