"""``kbsource passages``: a corpus cut from a release, and all that ``kbsource verify`` finds wrong with one."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pipelines.jobs.passages as job
from kbsource.errors import SetupError
from kbsource.files import LocalStorage, sha256_of
from kbsource.kilt import kilt_record
from kbsource.records import Page
from kbsource.release.writer import write_rows
from mapping.passages import corpus as corpus_files
from mapping.passages.corpus import read_passages
from mapping.passages.cut import CutOptions, Passage, PassageSpan
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.passages.schema import PASSAGES
from pipelines.cli import main
from tests.support.builds import contents, open_release
from tests.support.passages import cut_release, page, write_kb
from tests.support.verified import manifest_bytes, verified

FORMS = ("pyserini", "dpr")
CUT = CutOptions(max_words=6)
PAGES = (
    page(3, "Sorn", "Headed", "The Sorn is a river. It rises in Brack.", "Its fish are old.", kinds=["heading"]),
    page(5, "Tey", "A town of no more than forty goats. It is old.", 'Goats, "kids" and\tmore.', kinds=["list_item"]),
    page(8, "Empty", "Nothing", kinds=["heading"]),
    page(9, "Last", "It is the last."),
    page(11, "Very last", "It is."),
)
TABLE = "passages/passages-00000-of-00002.parquet"
LINES = "pyserini/passages-00000-of-00002.jsonl"


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kb(tmp_path_factory.mktemp("kb"), PAGES)


@pytest.fixture
def corpus(tmp_path: Path, kb: Path) -> Path:
    cut_release(tmp_path / "corpus", kb, cut=CUT, formats=FORMS)
    return tmp_path / "corpus"


def _passages(corpus: Path) -> list[Passage]:
    paths = sorted((corpus / "passages").iterdir())
    return [one for path in paths for one in read_passages(str(path), LocalStorage())]


def test_running_text_is_cut_page_by_page(corpus: Path) -> None:
    assert [(one.passage_id, one.title, one.text) for one in _passages(corpus)] == [
        ("3__0", "Sorn", "The Sorn is a river."),
        ("3__1", "Sorn", "It rises in Brack."),
        ("3__2", "Sorn", "Its fish are old."),
        ("5__0", "Tey", "A town of no more than forty goats."),
        ("5__1", "Tey", "It is old."),
        ("5__2", "Tey", 'Goats, "kids" and\tmore.'),
        ("9__0", "Last", "It is the last."),
        ("11__0", "Very last", "It is."),
    ]
    manifest = PASSAGES_CORPUS.read(str(corpus), LocalStorage())
    counts = {"pages": 5, "pages_without_text": 1, "passages": 8, "words": 34, "long_passages": 1}
    assert manifest.facts["counts"] == counts
    assert manifest.facts["options"] == {
        "max_words": 6,
        "split_long": False,
        "unit": "sentences",
        "formats": ["dpr", "pyserini"],
    }
    schema = pq.read_schema(corpus / TABLE)
    assert schema.equals(PASSAGES, check_metadata=False)


def test_a_text_is_what_stands_at_its_spans(tmp_path: Path, release: Path) -> None:
    cut_release(tmp_path / "corpus", release)
    passages = _passages(tmp_path / "corpus")
    pages = {one.page_id: one for one in open_release(release)}
    for one in passages:
        elements = pages[one.page_id].elements
        assert " ".join(elements[number].text[start:end] for number, start, end in one.spans) == one.text
        assert {elements[span.element].kind for span in one.spans} <= {"paragraph", "list_item"}
    held = {(one.page_id, span.element) for one in passages for span in one.spans}
    running = {
        (key, number)
        for key, one in pages.items()
        for number, element in enumerate(one.elements)
        if element.kind in ("paragraph", "list_item")
    }
    assert held == running


def test_forms_have_the_same_passages_in_the_same_order(corpus: Path) -> None:
    passages = _passages(corpus)
    lines = [line for path in sorted((corpus / "pyserini").iterdir()) for line in path.read_text("utf-8").splitlines()]
    assert [json.loads(line) for line in lines] == [
        {"id": one.passage_id, "contents": f"{one.title}\n{one.text}", "section": ""} for one in passages
    ]
    with (corpus / "dpr" / "passages.tsv").open(encoding="utf-8", newline="") as file:
        head, *table = csv.reader(file, delimiter="\t")
    assert head == ["id", "text", "title"]
    assert table == [[one.passage_id, one.text, one.title] for one in passages]
    titles = json.loads((corpus / "dpr" / "title_to_page_id.json").read_bytes())
    assert list(titles.items()) == [("Sorn", 3), ("Tey", 5), ("Last", 9), ("Very last", 11)]


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Path:
    folder = tmp_path_factory.mktemp("chunks") / "corpus"
    cut_release(folder, release, cut=CutOptions(unit="tokens-100"), formats=("kilt", "kilt-compat", "beir", "colbert"))
    return folder


def test_every_form_is_sound_and_has_every_passage(chunks: Path, release: Path) -> None:
    passages = _passages(chunks)
    ids = [one.passage_id for one in passages]
    pages = {one.page_id: kilt_record(one)["text"] for one in open_release(release)}
    assert verified(chunks).findings == verified(chunks, kb=release).findings == ()

    numbers, lines = zip(*(line.split(b"\t", 1) for line in (chunks / "kilt/passages.tsv").open("rb")), strict=True)
    assert [int(number) for number in numbers] == list(range(1, len(ids) + 1))
    for line, one in zip(map(json.loads, lines), passages, strict=True):
        texts = [pages[one.page_id][at["paragraph_id"]][at["start"] : at["end"]] for at in line["sources"]]
        assert (line["chunk_id"], line["text"]) == (one.passage_id, " ".join(texts))
        assert all(line["text"][at["start"] : at["end"]] == at["text"] for at in line["anchors"])
    assert [json.loads(line)["_id"] for line in (chunks / "beir/corpus.jsonl").open("rb")] == ids
    collection = [line.rstrip("\n").split("\t") for line in (chunks / "colbert/collection.tsv").open(encoding="utf-8")]
    assert [(int(number), title) for number, _, title in collection] == list(enumerate(one.title for one in passages))
    assert (chunks / "colbert/passage_ids.tsv").read_text() == "".join(f"{n}\t{id}\n" for n, id in enumerate(ids))
    assert {one.section for one in passages} > {()}


def test_lines_with_more_than_the_table_are_compared_with_the_pages(
    tmp_path: Path, chunks: Path, release: Path
) -> None:
    broken = tmp_path / "chunks"
    shutil.copytree(chunks, broken)
    path = broken / "kilt" / "passages.tsv"
    path.write_bytes(path.read_bytes().replace(b'"paragraph_id":1', b'"paragraph_id":2', 1))
    _seal(broken)
    assert _broken(broken) == set()
    assert _broken(broken, release) == {("kilt/passages.tsv", "line_differs")}


def test_words_leave_lists_out(tmp_path: Path, kb: Path) -> None:
    cut_release(tmp_path / "corpus", kb, cut=CutOptions(unit="words-8"))
    assert [(one.passage_id, one.text) for one in _passages(tmp_path / "corpus")] == [
        ("3__0", "The Sorn is a river. It rises in"),
        ("3__1", "Brack. Its fish are old."),
        ("5__0", 'Goats, "kids" and\tmore.'),
        ("9__0", "It is the last."),
        ("11__0", "It is."),
    ]
    assert verified(tmp_path / "corpus", kb=kb).findings == ()


def test_chunks_of_kilt_need_paragraphs_of_kilt(tmp_path: Path, kb: Path) -> None:
    with pytest.raises(SetupError, match="cut with --unit tokens-100"):
        cut_release(tmp_path / "corpus", kb, formats=("kilt",))


def test_without_a_form_there_is_the_table_alone(tmp_path: Path, kb: Path) -> None:
    cut_release(tmp_path / "corpus", kb)
    assert {path.name for path in (tmp_path / "corpus").iterdir()} == {"manifest.json", "passages"}


@pytest.mark.parametrize(
    "how",
    [
        {"runner": "local-multi", "workers": 2},
        {"runner": "local-multi", "workers": 2, "beam_args": ["--job_name=passages"]},
    ],
    ids=["two processes", "Beam"],
)
def test_the_bytes_are_the_same_with_every_runner(tmp_path: Path, kb: Path, corpus: Path, how: dict[str, Any]) -> None:
    cut_release(tmp_path / "again", kb, cut=CUT, formats=FORMS, **how)
    assert contents(tmp_path / "again") == contents(corpus)


def test_what_a_killed_run_left_behind_is_removed(tmp_path: Path, kb: Path, corpus: Path) -> None:
    again = tmp_path / "again"
    for file in (
        "BUILDING",
        "passages/passages-00000-of-00009.parquet",
        "dpr/passages.tsv",
        "pyserini/x",
        "_staging/x",
    ):
        (again / file).parent.mkdir(parents=True, exist_ok=True)
        (again / file).write_text("x")
    cut_release(again, kb, cut=CUT, formats=FORMS)
    assert contents(again) == contents(corpus)


def test_the_cuts_between_chunks_change_no_byte(tmp_path: Path, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_release(tmp_path / "few", release, formats=FORMS)
    monkeypatch.setattr(corpus_files, "CHUNK_WEIGHT", 1)
    cut_release(tmp_path / "many", release, formats=FORMS)
    assert contents(tmp_path / "many") == contents(tmp_path / "few")


def test_a_run_that_was_killed_goes_on_with_the_chunks_that_are_left(
    tmp_path: Path, kb: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = tmp_path / "again"

    def die(*_: Any, **__: Any) -> None:
        raise SetupError("killed")

    def chunks() -> dict[Path, int]:
        with monkeypatch.context() as patch:
            patch.setattr(job, "join_lines", die)
            with pytest.raises(SetupError, match="killed"):
                cut_release(again, kb, cut=CUT, formats=FORMS)
        return {path: path.stat().st_mtime_ns for path in (again / "_staging" / "cut").iterdir()}

    before = chunks()
    lost = min(before)
    lost.unlink()
    after = chunks()
    assert len(before) == 2
    assert {path for path in before if after[path] != before[path]} == {lost}
    cut_release(again, kb, cut=CUT, formats=FORMS)
    assert contents(again) == contents(corpus)


def test_a_damaged_release_is_told_without_a_traceback(
    tmp_path: Path, kb: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = next((tmp_path / "kb" / "pages").iterdir())
    content = bytearray(pages.read_bytes())
    content[-60:-20] = b"\xff" * 40
    pages.write_bytes(content)

    in_a_worker = main(["passages", "--kb", str(tmp_path / "kb"), "--output", str(tmp_path / "corpus")])
    told_there = capfd.readouterr().err
    here = main(["export-kilt", str(tmp_path / "kb"), "--output", str(tmp_path / "kilt.jsonl")])
    told_here = capfd.readouterr().err

    assert (in_a_worker, here) == (1, 1)
    assert "kbsource verify" in told_there
    assert "kbsource verify" in told_here
    assert "Traceback" not in told_there + told_here
    assert not (tmp_path / "corpus" / "manifest.json").exists()


def test_a_release_that_was_cut_off_is_refused_before_anything_is_written(tmp_path: Path, kb: Path) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = tmp_path / "kb" / "pages" / "pages-00001-of-00002.parquet"
    pages.write_bytes(pages.read_bytes()[:-1])
    with pytest.raises(SetupError, match=r"pages-00001-of-00002.parquet has \d+ bytes"):
        cut_release(tmp_path / "corpus", tmp_path / "kb")
    assert not (tmp_path / "corpus").exists()


def test_pages_with_another_text_than_was_written_are_not_cut(tmp_path: Path) -> None:
    kb = write_kb(tmp_path, PAGES)
    other = write_kb(tmp_path / "other", (*PAGES[:-1], page(11, "Very last", "It as.")))
    file = "pages/pages-00001-of-00002.parquet"
    assert (kb / file).stat().st_size == (other / file).stat().st_size
    shutil.copy(other / file, kb / file)
    with pytest.raises(SetupError, match=r"pages-00001-of-00002\.parquet is not as it was written"):
        cut_release(tmp_path / "corpus", kb)
    assert not (tmp_path / "corpus" / "manifest.json").exists()


def test_nothing_is_written_over(corpus: Path, kb: Path) -> None:
    with pytest.raises(SetupError, match="never overwritten"):
        cut_release(corpus, kb)


def test_without_a_release_nothing_is_cut(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no such folder"):
        cut_release(tmp_path / "corpus", tmp_path / "nowhere")
    assert not (tmp_path / "corpus").exists()


def test_a_file_of_pages_that_cannot_be_read_ends_the_job(tmp_path: Path) -> None:
    kb = write_kb(tmp_path, PAGES)
    (kb / "pages" / "pages-00001-of-00002.parquet").unlink()
    with pytest.raises(SetupError, match="pages-00001-of-00002") as caught:
        cut_release(tmp_path / "corpus", kb)
    assert caught.type is SetupError
    assert not (tmp_path / "corpus" / "manifest.json").exists()


def _seal(folder: Path, **changed: Any) -> None:
    """Makes a manifest fit the files as they are now, so that only the laws are broken."""
    values = json.loads((folder / "manifest.json").read_text()) | changed
    del values["manifest_sha256"]
    for entry in values["files"]:
        path = folder / entry["file"]
        entry["bytes"], entry["sha256"] = path.stat().st_size, sha256_of(LocalStorage(), str(path))
        is_table = path.suffix == ".parquet"
        entry["rows"] = pq.read_metadata(path).num_rows if is_table else path.read_bytes().count(b"\n")
    (folder / "manifest.json").write_bytes(manifest_bytes(values, form=values["format"]))


def _edit(corpus: Path, change: Callable[[list[Passage]], Any]) -> None:
    passages = list(read_passages(str(corpus / TABLE), LocalStorage()))
    change(passages)
    write_rows(passages, "passages", PASSAGES, output=str(corpus), file=TABLE, storage=LocalStorage())
    _seal(corpus)


def _set(number: int, **values: Any) -> Callable[[list[Passage]], None]:
    def change(passages: list[Passage]) -> None:
        passages[number] = passages[number]._replace(**values)

    return change


def _broken(corpus: Path, kb: Path | None = None) -> set[tuple[str, str]]:
    return {(one.file, one.rule) for one in verified(corpus, kb=kb).findings}


def test_a_corpus_is_sound(corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    report = verified(corpus, kb=kb, on_progress=lambda *one: seen.append(one))

    assert report.findings == ()
    assert (report.n_files, report.counts["passages"], report.n_rows, report.has_texts) == (6, 8, 8 + 8 + 9, True)
    assert seen[-1] == (2 * report.n_bytes, 2 * report.n_bytes)
    assert main(["verify", str(corpus)]) == 0
    assert capsys.readouterr().out.endswith("25 rows, 8 passages checked.\n")
    assert main(["verify", str(corpus), "--kb", str(kb)]) == 0
    assert capsys.readouterr().out.endswith("25 rows, 8 passages with their texts checked.\n")


@pytest.mark.parametrize(
    ("change", "example"),
    [
        (_set(1, passage_id="3__7"), "3__7: number 1 of page 3"),
        (_set(1, title="Other"), "3__1: its page is 'Sorn' and 'Other'"),
        (_set(1, text="It rises in Bracks."), "3__1: of another length than its spans"),
        (_set(1, spans=(PassageSpan(1, 0, 18),)), "3__1: its spans are out of order"),
        (_set(1, n_words=7, spans=(PassageSpan(2, 21, 30), PassageSpan(3, 0, 8))), "3__1: 7 words"),
        (lambda passages: passages.pop(1), "3__2: not behind the passage before it"),
    ],
)
def test_passages_are_built_as_such(corpus: Path, change: Callable[[list[Passage]], Any], example: str) -> None:
    _edit(corpus, change)
    findings = {(one.file, one.rule): one for one in verified(corpus).findings}
    assert example in findings[TABLE, "passage_law"].example


def test_a_page_stands_in_one_place(corpus: Path) -> None:
    _edit(corpus, lambda passages: passages.append(passages[0]))
    assert ("manifest.json", "duplicate_page") in _broken(corpus)


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
    assert (TABLE, "passage_differs") in _broken(corpus, kb)


def test_lines_are_what_the_table_says(corpus: Path) -> None:
    path = corpus / LINES
    whole = path.read_bytes()
    for odd in (whole.replace(b"Brack", b"Black"), whole + b"{}\n", whole[: whole.rindex(b"{")]):
        path.write_bytes(odd)
        _seal(corpus)
        assert _broken(corpus) == {(LINES, "line_differs")}


def test_a_table_for_dpr_has_its_head(corpus: Path) -> None:
    path = corpus / "dpr" / "passages.tsv"
    path.write_bytes(path.read_bytes().replace(b"id\ttext\ttitle\n", b"id\ttitle\ttext\n", 1))
    _seal(corpus)
    assert _broken(corpus) == {("dpr/passages.tsv", "line_differs")}


def test_counts_are_those_of_the_passages(corpus: Path, kb: Path) -> None:
    counts = PASSAGES_CORPUS.read(str(corpus), LocalStorage()).facts["counts"]
    for name in counts:
        _seal(corpus, counts={**counts, name: counts[name] + 1})
        assert _broken(corpus, kb) == {("manifest.json", "counts")}
    _seal(corpus, counts={**counts, "words": 1})
    assert _broken(corpus) == {("manifest.json", "counts")}
    _seal(corpus, counts={})
    assert _broken(corpus) == {("manifest.json", "manifest")}


def test_a_corpus_has_all_of_its_files(corpus: Path, kb: Path) -> None:
    files = json.loads((corpus / "manifest.json").read_text())["files"]
    for file in (TABLE, LINES):
        (corpus / file).rename(corpus.parent / "aside")
        _seal(corpus, files=[one for one in files if one["file"] != file])
        assert (file, "missing") in _broken(corpus, kb)
        (corpus.parent / "aside").rename(corpus / file)


def test_a_corpus_has_no_further_files(corpus: Path, kb: Path) -> None:
    further = "passages/passages-00002-of-00003.parquet"
    shutil.copy(corpus / TABLE, corpus / further)
    files = json.loads((corpus / "manifest.json").read_text())["files"]
    _seal(corpus, files=[*files, {"file": further, "rows": 0, "bytes": 0, "sha256": ""}])
    for given in (kb, None):
        assert ("manifest.json", "manifest") in _broken(corpus, given)


def test_a_damaged_release_is_nothing_to_compare_a_corpus_with(
    tmp_path: Path, corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = tmp_path / "kb" / "pages" / "pages-00001-of-00002.parquet"
    pages.write_bytes(pages.read_bytes()[:-1])
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "kb")]) == 2
    assert f"{pages} is not as it was written (size)" in capsys.readouterr().err


def test_a_corpus_is_compared_with_the_release_that_it_is_from(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other: tuple[Page, ...] = (*PAGES[:-1], page(11, "Very last", "It was."))
    with pytest.raises(SetupError, match="made from another release"):
        verified(corpus, kb=write_kb(tmp_path, other))
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_the_command_says_what_it_made(tmp_path: Path, kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["passages", "--kb", str(kb), "--output"]
    assert main([*flags, str(tmp_path / "a"), "--max-words", "6"]) == 0
    out = capsys.readouterr().out
    assert "  of one longer sentence" in out
    assert f"kbsource verify {tmp_path / 'a'} --kb {kb}" in out
    assert main([*flags, str(tmp_path / "b"), "--max-words", "6", "--split-long-sentences", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["counts"] == {"pages": 5, "pages_without_text": 1, "passages": 8, "words": 34, "long_passages": 0}
    assert [one.text for one in _passages(tmp_path / "b")][3:5] == ["A town of no more than", "forty goats. It is old."]
    assert main([*flags, str(tmp_path / "c"), "--format", "dpr", "--format", "dpr"]) == 2
    assert "give each form once" in capsys.readouterr().err
    assert main([*flags, str(tmp_path / "c"), "--worker-memory", "5"]) == 2
    assert "--worker-memory is 5 MB" in capsys.readouterr().err
