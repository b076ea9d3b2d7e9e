"""What ``kbsource verify`` finds wrong with a corpus of passages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbsource.errors import SetupError
from kbsource.records import Page
from kbsource.release.writer import write_rows
from mapping.passages.corpus import PASSAGES, read_passages
from mapping.passages.cut import Passage, PassageSpan
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.passages.tables import PassageCell
from pipelines.cli import main
from tests.support.passages import CORPUS_PAGES, page, write_kb
from tests.support.verified import broken, seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

TABLE = "passages/passages-00000-of-00002.parquet"
LINES = "pyserini/passages-00000-of-00002.jsonl"


def _edit(corpus: Path, change: Callable[[list[Passage]], Any]) -> None:
    passages = list(read_passages(str(corpus / TABLE)))
    change(passages)
    write_rows(passages, "passages", PASSAGES, output=str(corpus), file=TABLE)
    seal(corpus)


def _set(number: int, **values: Any) -> Callable[[list[Passage]], None]:
    def change(passages: list[Passage]) -> None:
        passages[number] = msgspec.structs.replace(passages[number], **values)

    return change


def test_a_corpus_is_sound(corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    report = verified(corpus, kb=kb, on_progress=lambda *progress: seen.append(progress))

    assert report.findings == ()
    assert (report.n_files, report.counts["passages"], report.n_rows, report.has_texts) == (6, 8, 8 + 8 + 9, True)
    assert seen[-1] == (2 * report.n_bytes, 2 * report.n_bytes)
    assert main(["verify", str(corpus)]) == 0
    assert "25 rows, 8 passages checked.\n" in capsys.readouterr().out
    assert main(["verify", str(corpus), "--kb", str(kb)]) == 0
    assert "25 rows, 8 passages with their texts checked.\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "example"),
    [
        (_set(1, passage_id="3__7"), "3__7: number 1 of page 3"),
        (_set(1, title="Other"), "3__1: its page is 'Sorn' and 'Other'"),
        (_set(1, text="It rises in Bracks."), "3__1: of another length than its spans"),
        (_set(1, spans=(PassageSpan(1, 0, 18),)), "3__1: its spans are out of order"),
        (_set(1, spans=()), "3__1: neither of text nor of a table, or of both"),
        (_set(1, cells=(PassageCell(0, 0, 0, 0, 2, 0),)), "3__1: neither of text nor of a table, or of both"),
        (_set(1, spans=(), cells=(PassageCell(0, 0, 0, 0, 99, 0),)), "3__1: its cells are out of order"),
        (_set(1, spans=(), cells=(PassageCell(0, 0, 0, 0, 2, 0),) * 2), "3__1: its cells are out of order"),
        (_set(1, spans=(), cells=(PassageCell(0, 0, 0, 0, 2, 0),)), "3__2: its table is out of order"),
        (_set(1, n_words=7, spans=(PassageSpan(2, 21, 30), PassageSpan(3, 0, 8))), "3__1: 7 words"),
        (lambda passages: passages.pop(1), "3__2: not behind the passage before it"),
    ],
)
def test_passages_are_built_as_such(corpus: Path, change: Callable[[list[Passage]], Any], example: str) -> None:
    _edit(corpus, change)
    findings = {(finding.file, finding.rule): finding for finding in verified(corpus).findings}
    assert example in findings[TABLE, "passage_law"].example


def test_a_page_stands_in_one_place(corpus: Path) -> None:
    _edit(corpus, lambda passages: passages.append(passages[0]))
    assert ("manifest.json", "duplicate_page") in broken(corpus)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        _set(0, text="The Sorn is a siver."),
        _set(0, n_words=4),
        _set(2, spans=(PassageSpan(4, 0, 17),)),
        lambda passages: passages.pop(),
        lambda passages: passages.append(Passage("6__0", 6, "No page", 0, 1, "Yes.", (PassageSpan(1, 0, 4),))),
    ],
)
def test_passages_are_what_their_pages_give(corpus: Path, kb: Path, change: Callable[[list[Passage]], Any]) -> None:
    _edit(corpus, change)
    assert (TABLE, "passage_differs") in broken(corpus, kb=kb)


def test_lines_are_what_the_table_says(corpus: Path) -> None:
    path = corpus / LINES
    whole = path.read_bytes()
    for odd in (whole.replace(b"Brack", b"Black"), whole + b"{}\n", whole[: whole.rindex(b"{")]):
        path.write_bytes(odd)
        seal(corpus)
        assert broken(corpus) == {(LINES, "line_differs")}


def test_a_table_for_dpr_has_its_head(corpus: Path) -> None:
    path = corpus / "dpr" / "passages.tsv"
    path.write_bytes(path.read_bytes().replace(b"id\ttext\ttitle\n", b"id\ttitle\ttext\n", 1))
    seal(corpus)
    assert broken(corpus) == {("dpr/passages.tsv", "line_differs")}


def test_counts_are_those_of_the_passages(corpus: Path, kb: Path) -> None:
    counts = PASSAGES_CORPUS.read(str(corpus)).facts["counts"]
    for name in counts:
        seal(corpus, counts={**counts, name: counts[name] + 1})
        assert broken(corpus, kb=kb) == {("manifest.json", "counts")}
    seal(corpus, counts={**counts, "words": 1})
    assert broken(corpus) == {("manifest.json", "counts")}
    seal(corpus, counts={})
    assert broken(corpus) == {("manifest.json", "manifest")}


def test_a_corpus_has_all_of_its_files(corpus: Path, kb: Path) -> None:
    files = json.loads((corpus / "manifest.json").read_text())["files"]
    for file in (TABLE, LINES):
        (corpus / file).rename(corpus.parent / "aside")
        seal(corpus, files=[entry for entry in files if entry["file"] != file])
        assert (file, "missing") in broken(corpus, kb=kb)
        (corpus.parent / "aside").rename(corpus / file)


def test_a_corpus_has_no_further_files(corpus: Path, kb: Path) -> None:
    further = "passages/passages-00002-of-00003.parquet"
    shutil.copy(corpus / TABLE, corpus / further)
    files = json.loads((corpus / "manifest.json").read_text())["files"]
    seal(corpus, files=[*files, {"file": further, "rows": 0, "bytes": 0, "sha256": ""}])
    for given in (kb, None):
        assert ("manifest.json", "manifest") in broken(corpus, kb=given)


def test_a_damaged_release_is_nothing_to_compare_a_corpus_with(
    tmp_path: Path, corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = tmp_path / "kb" / "pages" / "pages-00001-of-00002.parquet"
    pages.write_bytes(pages.read_bytes()[:-1])
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "kb")]) == 2
    assert f"{pages} is damaged or changed (size)" in capsys.readouterr().err


def test_a_corpus_is_compared_with_the_release_that_it_is_from(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other: tuple[Page, ...] = (*CORPUS_PAGES[:-1], page(11, "Very last", "It was."))
    with pytest.raises(SetupError, match="made from another release"):
        verified(corpus, kb=write_kb(tmp_path, other))
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_lines_with_more_than_the_table_are_compared_with_the_pages(
    tmp_path: Path, chunks: Path, release: Path
) -> None:
    copy = tmp_path / "chunks"
    shutil.copytree(chunks, copy)
    path = copy / "kilt" / "passages.tsv"
    path.write_bytes(path.read_bytes().replace(b'"paragraph_id":1', b'"paragraph_id":2', 1))
    seal(copy)
    assert broken(copy) == set()
    assert broken(copy, kb=release) == {("kilt/passages.tsv", "line_differs")}
