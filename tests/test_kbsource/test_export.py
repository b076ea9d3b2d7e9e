"""Exports: forms, pieces, compression by name, one file or several."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.export import ExportOptions, PageWriter, cut_blocks, export_pages, n_tokens
from kbsource.files import Folder
from kbsource.lookup import KnowledgeSource
from kbsource.records import instant_text
from kbsource.rendering import Block
from tests.support.inspected import inspected_pages
from tests.support.releases import TitleRow, redirect_to, write_release


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeSource:
    folder, pages = tmp_path_factory.mktemp("export"), list(inspected_pages())
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    write_release(
        folder, pages, titles=[*titles, redirect_to(5_000, "The old name", pages[0].title)], rows_per_shard=40
    )
    return KnowledgeSource.open(folder / "release")


def exported(source: KnowledgeSource, path: Path, **options: Any) -> bytes:
    export_pages(source, str(path), ExportOptions(**options))
    return path.read_bytes()


def test_text_and_markdown_are_those_of_the_pages(source: KnowledgeSource, tmp_path: Path) -> None:
    pages = list(source)
    assert exported(source, tmp_path / "a").decode() == "".join(f"{page.plain()}\n\n\n" for page in pages)
    markdown = exported(source, tmp_path / "b", format="markdown", has_links=True).decode()
    assert markdown == "".join(f"{page.markdown(links=True)}\n\n\n" for page in pages)


def test_lines_of_plain_text_have_what_loaders_expect(source: KnowledgeSource, tmp_path: Path) -> None:
    pages = list(source)
    for form in ("plain", "body"):
        lines = exported(source, tmp_path / form, format="jsonl", text=form, without=("section 3",)).splitlines()
        assert [json.loads(line) for line in lines] == [
            {
                "id": str(page.page_id),
                "url": page.url,
                "title": page.title,
                "text": getattr(page, form)(without="section 3"),
            }
            for page in pages
        ]
    by_section = list(PageWriter(ExportOptions("jsonl", text="body", by="section")).records(pages[0]))
    assert {tuple(record) for record in by_section} == {("id", "url", "title", "section", "text")}
    assert "\n\n".join(record["text"] for record in by_section) == pages[0].body()


def test_every_option_writes_what_the_page_gives_in_python(source: KnowledgeSource, tmp_path: Path) -> None:
    without, pages = ("tables", "Lists and <B>"), list(source)
    text = exported(source, tmp_path / "a", text="body", without=without).decode()
    assert text == "".join(f"{page.body(without=without)}\n\n\n" for page in pages)
    markdown = exported(source, tmp_path / "b", format="markdown", has_links=True, without=without).decode()
    assert markdown == "".join(f"{page.markdown(links=True, without=without)}\n\n\n" for page in pages)
    html = exported(source, tmp_path / "c", format="html", without=without).decode()
    assert [page for page in pages if page.html(without=without) not in html] == []
    records = exported(source, tmp_path / "d", format="jsonl", without=without).splitlines()
    assert [json.loads(line)["text"] for line in records] == [page.markdown(without=without) for page in pages]


def test_sections_that_are_left_out_are_counted(source: KnowledgeSource, tmp_path: Path) -> None:
    options = ExportOptions("jsonl", text="plain", without=("SECTION 3", "tables", "Nowhere"))
    made = export_pages(source, str(tmp_path / "a-*"), options)
    assert made.n_sections == {"SECTION 3": 60, "Nowhere": 0}


def test_a_page_of_lists_alone_has_a_line_of_no_text(source: KnowledgeSource) -> None:
    page = next(iter(source))
    lists = replace(page, elements=(page.elements[0], *page.elements[-4:]), anchors=())
    for options in ({}, {"by": "section"}, {"max_tokens": 50}, {"by": "section", "max_tokens": 50}):
        writer = PageWriter(ExportOptions("jsonl", text="plain", **options))  # type: ignore[arg-type]
        assert [record["text"] for record in writer.records(lists)] == [""]


def test_html_is_one_document(source: KnowledgeSource, tmp_path: Path) -> None:
    html = exported(source, tmp_path / "a.html", format="html").decode()
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert html.endswith("</body>\n</html>\n")
    assert re.findall(r'<article id="page-(\d+)">', html) == [str(page.page_id) for page in source]


@pytest.mark.parametrize(
    ("suffix", "opened"),
    [
        ("gz", gzip.decompress),
        ("bz2", bz2.decompress),
        ("zst", lambda data: pa.input_stream(pa.py_buffer(data), "zstd").read()),
    ],
)
def test_files_are_compressed_by_their_names(source: KnowledgeSource, tmp_path: Path, suffix: str, opened: Any) -> None:
    plain = exported(source, tmp_path / "a.jsonl", format="jsonl")
    assert opened(exported(source, tmp_path / f"a.jsonl.{suffix}", format="jsonl")) == plain


def test_a_star_is_a_file_for_each_file_of_pages_also_in_a_bucket(source: KnowledgeSource, tmp_path: Path) -> None:
    whole = exported(source, tmp_path / "whole.jsonl", format="jsonl")
    folder = "memory://lake/export"
    made = export_pages(source, f"{folder}/part-*.jsonl", ExportOptions("jsonl"))
    assert made.files == (f"{folder}/part-00000.jsonl", f"{folder}/part-00001.jsonl")
    assert b"".join(Folder.of(file).read() for file in made.files) == whole
    assert (made.n_pages, made.n_records, made.n_bytes) == (60, 60, len(whole))


def test_pages_by_their_names(source: KnowledgeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", sink)
    names = ("The old name", "7", "Q1002")
    export_pages(source, "-", ExportOptions("jsonl"), titles=names)
    found = [json.loads(line)["page_id"] for line in sink.buffer.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert found == [1, 7, 7]
    with pytest.raises(SetupError, match="Nowhere: the release has no such page"):
        export_pages(source, str(tmp_path / "x"), ExportOptions(), titles=["Nowhere"])
    assert not (tmp_path / "x").exists()
    with pytest.raises(SetupError, match=r"leave out the \*"):
        export_pages(source, str(tmp_path / "x*"), ExportOptions(), titles=["1"])


def test_sections_have_their_path_and_together_all_of_the_page(source: KnowledgeSource) -> None:
    page = next(iter(source))
    records = list(PageWriter(ExportOptions("jsonl", by="section")).records(page))
    assert [record["section"] for record in records] == [[], ["Section 3"], ["Lists and <b>"]]
    assert "\n\n".join(record["text"] for record in records) == page.markdown()
    assert [record["id"] for record in records][:2] == ["1-0", "1-1"]
    assert records[0]["timestamp"] == instant_text(page.timestamp)


@given(
    texts=st.lists(st.text("ab .\n漢", max_size=40), max_size=6),
    headings=st.sets(st.integers(0, 5)),
    most=st.integers(8, 20),
)
def test_pieces_hold_every_token_once_and_no_more_than_they_may(
    texts: list[str], headings: set[int], most: int
) -> None:
    blocks = [Block("heading" if n in headings else "paragraph", (), text) for n, text in enumerate(texts)]
    runs = list(cut_blocks(blocks, most))
    assert all(sum(n_tokens(block.text) for block in run) <= most for run in runs)
    kept = re.findall(r"[ab]+|[.漢]", " ".join(block.text for run in runs for block in run))
    assert kept == re.findall(r"[ab]+|[.漢]", " ".join(texts))


def test_pieces_end_behind_sentences_and_headings_stay_with_their_text() -> None:
    blocks = [
        Block("paragraph", (), "One two three four. Five six seven eight nine ten eleven."),
        Block("heading", ("H",), "H"),
        Block("paragraph", ("H",), "A b c d e f g h."),
    ]
    runs = [[block.text for block in run] for run in cut_blocks(blocks, 10)]
    assert runs == [["One two three four."], ["Five six seven eight nine ten eleven."], ["H", "A b c d e f g h."]]
    long = [blocks[1], Block("paragraph", ("H",), "a b c d e f g h i j k l m n o p")]
    assert [[block.text for block in run] for run in cut_blocks(long, 10)] == [
        ["H", "a b c d e f g h i"],
        ["j k l m n o p"],
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "markdown", "by": "section"}, "give --format jsonl"),
        ({"max_tokens": 100}, "give --format jsonl"),
        ({"has_links": True}, "plain text has no links"),
        ({"format": "jsonl", "text": "body", "has_links": True}, "plain text has no links"),
        ({"format": "html", "text": "plain"}, "--text works only with --format text and jsonl, not with html"),
        (
            {"format": "markdown", "text": "markdown"},
            "--text works only with --format text and jsonl, not with markdown",
        ),
        ({"format": "text", "text": "markdown"}, "give --format markdown"),
    ],
)
def test_what_a_format_does_not_have_is_refused(options: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        ExportOptions(**options)
