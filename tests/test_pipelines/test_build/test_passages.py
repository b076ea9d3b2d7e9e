"""``kbsource passages``: a corpus cut from a release, the forms of its lines, and runs that were killed."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.kilt import kilt_record
from kbsource.records import Cell, Page, Table
from mapping.passages import corpus as corpus_files
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import CutOptions
from mapping.passages.kind import PASSAGES_CORPUS
from pipelines.cli import main
from tests.support.builds import contents, open_release
from tests.support.contexts import passages_of
from tests.support.passages import CORPUS_CUT, CORPUS_FORMS, CORPUS_PAGES, cut_release, page, write_kb
from tests.support.verified import verified

TABLE = "passages/passages-00000-of-00002.parquet"


def test_running_text_is_cut_page_by_page(corpus: Path) -> None:
    assert [(passage.passage_id, passage.title, passage.text) for passage in passages_of(corpus)] == [
        ("3__0", "Sorn", "The Sorn is a river."),
        ("3__1", "Sorn", "It rises in Brack."),
        ("3__2", "Sorn", "Its fish are old."),
        ("5__0", "Tey", "A town of no more than forty goats."),
        ("5__1", "Tey", "It is old."),
        ("5__2", "Tey", 'Goats, "kids" and\tmore.'),
        ("9__0", "Last", "It is the last."),
        ("11__0", "Very last", "It is."),
    ]
    manifest = PASSAGES_CORPUS.read(str(corpus))
    counts = {"pages": 5, "pages_without_text": 1, "passages": 8, "words": 34, "long_passages": 1}
    assert manifest.facts["counts"] == counts
    assert manifest.facts["options"] == {
        "max_words": 6,
        "split_long": False,
        "unit": "sentences",
        "tables": False,
        "formats": ["dpr", "pyserini"],
    }
    schema = pq.read_schema(corpus / TABLE)
    assert schema.equals(PASSAGES, check_metadata=False)


def test_forms_have_the_same_passages_in_the_same_order(corpus: Path) -> None:
    passages = passages_of(corpus)
    lines = [line for path in sorted((corpus / "pyserini").iterdir()) for line in path.read_text("utf-8").splitlines()]
    assert [json.loads(line) for line in lines] == [
        {"id": passage.passage_id, "contents": f"{passage.title}\n{passage.text}", "section": ""}
        for passage in passages
    ]
    with (corpus / "dpr" / "passages.tsv").open(encoding="utf-8", newline="") as file:
        head, *table = csv.reader(file, delimiter="\t")
    assert head == ["id", "text", "title"]
    assert table == [[passage.passage_id, passage.text, passage.title] for passage in passages]
    titles = json.loads((corpus / "dpr" / "title_to_page_id.json").read_bytes())
    assert list(titles.items()) == [("Sorn", 3), ("Tey", 5), ("Last", 9), ("Very last", 11)]


def test_every_form_is_sound_and_has_every_passage(chunks: Path, release: Path) -> None:
    passages = passages_of(chunks)
    ids = [passage.passage_id for passage in passages]
    pages = {kb_page.page_id: kilt_record(kb_page)["text"] for kb_page in open_release(release)}
    assert verified(chunks).findings == verified(chunks, kb=release).findings == ()

    numbers, lines = zip(*(line.split(b"\t", 1) for line in (chunks / "kilt/passages.tsv").open("rb")), strict=True)
    assert [int(number) for number in numbers] == list(range(1, len(ids) + 1))
    for line, passage in zip(map(json.loads, lines), passages, strict=True):
        texts = [pages[passage.page_id][at["paragraph_id"]][at["start"] : at["end"]] for at in line["sources"]]
        assert (line["chunk_id"], line["text"]) == (passage.passage_id, " ".join(texts))
        assert all(line["text"][at["start"] : at["end"]] == at["text"] for at in line["anchors"])
    assert [json.loads(line)["_id"] for line in (chunks / "beir/corpus.jsonl").open("rb")] == ids
    collection = [line.rstrip("\n").split("\t") for line in (chunks / "colbert/collection.tsv").open(encoding="utf-8")]
    assert [(int(number), title) for number, _, title in collection] == list(
        enumerate(passage.title for passage in passages)
    )
    assert (chunks / "colbert/passage_ids.tsv").read_text() == "".join(f"{n}\t{id}\n" for n, id in enumerate(ids))
    assert {passage.section for passage in passages} > {()}


@pytest.mark.slow
def test_words_leave_lists_out(tmp_path: Path, kb: Path) -> None:
    cut_release(tmp_path / "corpus", kb, cut=CutOptions(unit="words-8"))
    assert [(passage.passage_id, passage.text) for passage in passages_of(tmp_path / "corpus")] == [
        ("3__0", "The Sorn is a river. It rises in"),
        ("3__1", "Brack. Its fish are old."),
        ("5__0", 'Goats, "kids" and\tmore.'),
        ("9__0", "It is the last."),
        ("11__0", "It is."),
    ]
    assert verified(tmp_path / "corpus", kb=kb).findings == ()


def test_chunks_of_kilt_need_paragraphs_of_kilt(tmp_path: Path, kb: Path) -> None:
    with pytest.raises(SetupError, match="Use --unit tokens-100"):
        cut_release(tmp_path / "corpus", kb, formats=("kilt",))
    with pytest.raises(SetupError, match="Leave --tables out"):
        cut_release(tmp_path / "corpus", kb, cut=CutOptions(unit="tokens-100", tables=True), formats=("kilt",))


def _lakes(depth: str, *, caption: str | None = None, section: str = "Lakes") -> Page:
    lakes = page(6, "Lakes", section, "They are deep.", kinds=["heading"])
    rows = tuple((Cell(name, True, 1, 1, ()), Cell(depth, False, 1, 1, ())) for name in ("Sorn", "Tey"))
    elements = tuple(replace(element, section=(section,)) for element in lakes.elements)
    return replace(lakes, elements=elements, tables=(Table(2, caption, ("Lake", "Depth"), rows),))


def test_rows_of_tables_follow_the_text(tmp_path: Path, in_this_process: None) -> None:
    kb = write_kb(tmp_path, (*CORPUS_PAGES, _lakes("12 m")))
    cut = CutOptions(8, tables=True)
    cut_release(tmp_path / "corpus", kb, cut=cut, formats=CORPUS_FORMS)
    *others, first, second = passages_of(tmp_path / "corpus")
    assert (first.text, second.text) == ("Lake: Sorn; Depth: 12 m.", "Lake: Tey; Depth: 12 m.")
    assert (first.section, first.spans) == (("Lakes",), ())
    assert not any(passage.cells for passage in others)
    assert verified(tmp_path / "corpus", kb=kb).findings == ()
    cut_release(tmp_path / "text", kb, cut=CutOptions(8))
    assert passages_of(tmp_path / "text") == others


@pytest.mark.slow  # a job several times
@pytest.mark.parametrize(
    ("changed", "n_taken"),
    [
        (_lakes("12 m"), 1),
        (_lakes("13 m"), 0),
        (_lakes("12 m", caption="Lakes"), 0),
        (_lakes("12 m", section="Waters"), 0),
    ],
    ids=["the same", "another cell", "another caption", "another heading"],
)
@pytest.mark.usefixtures("in_this_process")
def test_passages_of_pages_with_the_same_tables_are_taken_over(tmp_path: Path, changed: Page, n_taken: int) -> None:
    cut = CutOptions(8, tables=True)
    old, new = write_kb(tmp_path / "a", (*SAME, _lakes("12 m"))), write_kb(tmp_path / "b", (*SAME, changed))
    cut_release(tmp_path / "old", old, cut=cut)
    cut_release(tmp_path / "full", new, cut=cut)
    made = cut_release(tmp_path / "made", new, cut=cut, base=str(tmp_path / "old"), base_kb=str(old))
    assert contents(tmp_path / "made") == contents(tmp_path / "full")
    assert made.report == {"taken_over": len(SAME) + n_taken}


@pytest.mark.slow
def test_without_a_form_there_is_the_table_alone(tmp_path: Path, kb: Path) -> None:
    cut_release(tmp_path / "corpus", kb)
    assert {path.name for path in (tmp_path / "corpus").iterdir()} == {"manifest.json", "passages"}


@pytest.mark.slow
def test_the_cuts_between_chunks_change_no_byte(tmp_path: Path, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_release(tmp_path / "few", release, formats=CORPUS_FORMS)
    monkeypatch.setattr(corpus_files, "CHUNK_WEIGHT", 1)
    cut_release(tmp_path / "many", release, formats=CORPUS_FORMS)
    assert contents(tmp_path / "many") == contents(tmp_path / "few")


def _with(changed_page: Page, place: int, **changed: Any) -> Page:
    elements = list(changed_page.elements)
    elements[place] = replace(elements[place], **changed)
    return replace(changed_page, elements=tuple(elements))


SAME = (
    page(3, "Sorn", "Headed", "The Sorn is a river. It rises in Brack.", "Its fish are old.", kinds=["heading"]),
    page(8, "Empty", "Nothing", kinds=["heading"]),
    page(40, "Late", "It came late, as the last one does. It went early."),
)
OLD, NEW = zip(
    (page(4, "Moved", "It is here."), page(4, "Moved on", "It is here.")),
    (page(5, "Text", "It is here.", "It was there."), page(5, "Text", "It is here.", "It was not.")),
    (page(6, "Kind", "It is here.", kinds=["list_item"]), page(6, "Kind", "It is here.")),
    (made_page := page(7, "Section", "It is here.", "It was there."), _with(made_page, 2, section=("Now",))),
    (made_page := page(9, "Marker", "It is.", kinds=["list_item"]), _with(made_page, 1, marker="*:")),
    (page(10, "Emptied", "It is here."), page(10, "Emptied", "Nothing", kinds=["heading"])),
    strict=True,
)


@pytest.mark.parametrize("cut", [CORPUS_CUT, CutOptions(unit="words-5"), CutOptions(unit="tokens-4")], ids=str)
@pytest.mark.usefixtures("in_this_process")
def test_passages_of_pages_whose_text_is_the_same_are_taken_over(tmp_path: Path, cut: CutOptions) -> None:
    old = write_kb(tmp_path / "a", (*SAME, *OLD, page(42, "Gone", "It was here.")))
    new = write_kb(tmp_path / "b", (page(41, "New", "It is here."), *reversed(SAME), *NEW), rows_per_shard=7)
    cut_release(tmp_path / "old", old, cut=cut)
    cut_release(tmp_path / "full", new, cut=cut, formats=CORPUS_FORMS)
    given: dict[str, Any] = {"cut": cut, "formats": CORPUS_FORMS, "base": str(tmp_path / "old"), "base_kb": str(old)}
    made = cut_release(tmp_path / "made", new, **given)
    assert contents(tmp_path / "made") == contents(tmp_path / "full")
    assert made.report == {"taken_over": len(SAME)}


def test_passages_that_may_be_others_are_not_taken_over(tmp_path: Path, kb: Path, corpus: Path) -> None:
    def refused(match: str, base: Path | None, base_kb: Path | None, cut: CutOptions = CORPUS_CUT) -> None:
        base_given = {
            name: str(folder_of_base)
            for name, folder_of_base in (("base", base), ("base_kb", base_kb))
            if folder_of_base is not None
        }
        with pytest.raises(SetupError, match=match):
            cut_release(tmp_path / "out", kb, cut=cut, **base_given)

    refused("Give --base and --base-kb together", corpus, None)
    refused("Give --base and --base-kb together", None, kb)
    refused("were not cut from .*other", corpus, write_kb(tmp_path / "other", CORPUS_PAGES[:2]))
    refused("made with a different option max_words .6, here 7", corpus, kb, CutOptions(max_words=7))
    path = next((corpus / "passages").iterdir())
    content = path.read_bytes()
    path.write_bytes(content[:99] + bytes([content[99] ^ 1]) + content[100:])
    refused(rf"{path.name} is damaged or changed \(sha256\)", corpus, kb)


def test_a_damaged_release_is_told_without_a_traceback(
    tmp_path: Path, kb: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = next((tmp_path / "kb" / "pages").iterdir())
    content = bytearray(pages.read_bytes())
    content[-60:-20] = b"\xff" * 40
    pages.write_bytes(content)

    in_a_worker = main(["passages", str(tmp_path / "kb"), "--output", str(tmp_path / "corpus")])
    told_there = capfd.readouterr().err
    here = main(["export-kilt", str(tmp_path / "kb"), "--output", str(tmp_path / "kilt.jsonl")])
    told_here = capfd.readouterr().err

    assert (in_a_worker, here) == (1, 1)
    assert "kbsource verify" in told_there
    assert "kbsource verify" in told_here
    assert "Traceback" not in told_there + told_here
    assert not (tmp_path / "corpus" / "manifest.json").exists()


@pytest.mark.slow
def test_pages_with_another_text_than_was_written_are_not_cut(tmp_path: Path) -> None:
    kb = write_kb(tmp_path, CORPUS_PAGES)
    other = write_kb(tmp_path / "other", (*CORPUS_PAGES[:-1], page(11, "Very last", "It as.")))
    file = "pages/pages-00001-of-00002.parquet"
    assert (kb / file).stat().st_size == (other / file).stat().st_size
    shutil.copy(other / file, kb / file)
    with pytest.raises(SetupError, match=r"pages-00001-of-00002\.parquet is damaged or changed"):
        cut_release(tmp_path / "corpus", kb)
    assert not (tmp_path / "corpus" / "manifest.json").exists()


@pytest.mark.usefixtures("in_this_process")
def test_the_command_says_what_it_made(tmp_path: Path, kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["passages", str(kb), "--output"]
    assert main([*flags, str(tmp_path / "a"), "--max-words", "6"]) == 0
    out = capsys.readouterr().out
    assert "  of one longer sentence" in out
    assert f"kbsource verify {tmp_path / 'a'} --kb {kb}" in out
    assert main([*flags, str(tmp_path / "b"), "--max-words", "6", "--split-long-sentences", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["counts"] == {"pages": 5, "pages_without_text": 1, "passages": 8, "words": 34, "long_passages": 0}
    texts = [passage.text for passage in passages_of(tmp_path / "b")]
    assert texts[3:5] == ["A town of no more than", "forty goats. It is old."]
    assert main([*flags, str(tmp_path / "t"), "--unit", "tokens-8"]) == 0
    assert re.search(r"^tokens +\d+$", capsys.readouterr().out, re.MULTILINE)
    assert main([*flags, str(tmp_path / "c"), "--format", "dpr", "--format", "dpr"]) == 2
    assert "give each format only once" in capsys.readouterr().err
    assert main([*flags, str(tmp_path / "c"), "--worker-memory", "5"]) == 2
    assert "--worker-memory is 5. A worker needs at least 256 MB" in capsys.readouterr().err
