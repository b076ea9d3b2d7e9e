"""``kbsource qampari-contexts`` of QAMPARI's files as they are published: proofs are looked for in the pages."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.records import Page
from kbsource.sentences import sentence_spans
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.gold import ProofSpot
from mapping.contexts.proof_finder import ReleaseProofs
from mapping.contexts.questions import PUBLISHED_REASONS, check_published
from mapping.contexts.records import ContextsOptions
from mapping.passages.cut import CutOptions
from mapping.qampari.evidence import released_case
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from pipelines.cli import main
from tests.support.alignments import read_lines, table, write_records
from tests.support.passages import cut_release, page, write_kb
from tests.support.qampari import FORM, drawn, write_qampari
from tests.support.verified import verified


def _page(page_id: int, title: str, *texts: str, kinds: Sequence[str] = ()) -> Page:
    return replace(page(page_id, title, *texts, kinds=kinds), is_disambiguation=False)


BRACK = "Brack is a town on the Sorn. The bridge of Brack was built by Aldo Vent in 1901. It fell in 1950."
MIRAVEL = "Who's Who? (lake)"
PAGES = (
    _page(3, "Brack", "Of Aldo Vent", BRACK, "It is old. Brack has four bridges.", kinds=["heading"]),
    _page(5, MIRAVEL, "The lake was dug by the men of Aldo Vent and of nobody else.", "It is deep.", "It is deep."),
    _page(8, "Tey", "Of 4 goats\tand more.", "Many say that ΟΔΥΣΣΕΥΣ built all of the İzmir of the north."),
)
URL = "https://en.wikipedia.org/wiki/"
QID = "0__wikidata_simple__dev"


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kb(tmp_path_factory.mktemp("kb"), PAGES)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, kb: Path) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "passages"
    cut_release(folder, kb, cut=CutOptions(max_words=12))
    return folder


@pytest.fixture(scope="module")
def finder(kb: Path) -> Iterator[ReleaseProofs]:
    with ReleaseProofs.open(str(kb)) as opened:
        yield opened


def _spot(number: int, element: int, sentence: str) -> ProofSpot:
    proof_page = PAGES[number]
    start = proof_page.elements[element].text.index(sentence)
    return ProofSpot(proof_page.page_id, proof_page.title, element, start, start + len(sentence), sentence)


BUILT = "The bridge of Brack was built by Aldo Vent in 1901."


@pytest.mark.parametrize(
    ("title", "text", "wanted"),
    [
        pytest.param("Brack", BUILT, _spot(0, 2, BUILT), id="one sentence"),
        pytest.param("Brack", BRACK[:80], _spot(0, 2, BUILT), id="the last sentence of several"),
        pytest.param("Brack", released_case(BRACK), _spot(0, 2, "It fell in 1950."), id="in lower case"),
        pytest.param("brack", f"  {BUILT} \n", _spot(0, 2, BUILT), id="white space, and a title in lower case"),
        pytest.param("Who's_Who?_(lake)", "It is deep.", _spot(1, 2, "It is deep."), id="the first of several places"),
        pytest.param("Who%27s_Who%3F_(lake)", "It is deep.", _spot(1, 2, "It is deep."), id="percent-encoded"),
        pytest.param(
            "Tey",
            "Many say that οδυσσευς built all of the izmir of the north.",
            _spot(2, 2, "Many say that ΟΔΥΣΣΕΥΣ built all of the İzmir of the north."),
            id="letters whose lower case is longer",
        ),
        pytest.param(
            "Tey",
            released_case("Many say that ΟΔΥΣΣΕΥΣ built all of the İzmir of the north."),
            _spot(2, 2, "Many say that ΟΔΥΣΣΕΥΣ built all of the İzmir of the north."),
            id="as published",
        ),
        pytest.param("Brack", f"It was so in other times. {BUILT}", _spot(0, 2, BUILT), id="another context"),
        pytest.param(
            "Brack",
            "It was so. The old bridge of Brack was built by Aldo Vent in 1901.",
            _spot(0, 2, BUILT[:-1]),
            id="a near match",
        ),
        pytest.param(
            "Brack", "Brack is a town on the Sorn. It burnt down in that year.", "no_text", id="context alone"
        ),
        pytest.param("Brack", "It was so in other times. It fell.", "no_text", id="a few words stand anywhere"),
        pytest.param("Brack", "", "no_text", id="nothing"),
        pytest.param("Brack", "...", "no_text", id="no word"),
        pytest.param("Nowhere", BUILT, "no_page", id="no such page"),
        pytest.param("", BUILT, "no_page", id="no address"),
    ],
)
def test_a_proof_is_where_its_page_says_it(
    finder: ReleaseProofs, title: str, text: str, wanted: ProofSpot | str
) -> None:
    assert finder.find(f"{URL}{title}", text) == wanted


def test_a_proof_that_a_heading_says_alone_stands_in_no_running_text(tmp_path: Path) -> None:
    words = "The bridges that Aldo Vent built in Brack"
    kb = write_kb(tmp_path, [_page(3, "Brack", words, "Nothing else.", kinds=["heading"])], n_shards=1)
    with ReleaseProofs.open(str(kb)) as finder:
        assert finder.find(f"{URL}Brack", words) == "no_running_text"


def _proof(number: int, element: int, sentence: int) -> ProofText:
    proof_page = PAGES[number]
    text = proof_page.elements[element].text
    start, end = sentence_spans(text)[sentence]
    return ProofText(text[:end], proof_page.page_id, proof_page.title, element, 0, end, start, 0.5, "It is so.")


PLACES = [(0, 2, 1), (0, 2, 0), (0, 3, 1), (1, 1, 0), (2, 2, 0)]


def _release(folder: Path, *, is_released_case: bool = False) -> Path:
    answers = tuple(
        QuestionAnswer(f"Answer {number}", (f"Answer {number}", "x"), None, f"Q{number}", (_proof(*place),))
        for number, place in enumerate(PLACES)
    )
    about = QuestionEntity("Aldo Vent", ("Aldo Vent",), None, "Q900")
    questions = [
        drawn(
            Question("wikidata_simple", f"P50__Q{n}", "What?", None, ("P50",), None, (about,), answers, 5, 5),
            n,
            "train" if n else "dev",
        )
        for n in range(3)
    ]
    return write_qampari(folder, questions, form=FORM._replace(is_released_case=is_released_case))


def _published(folder: Path, release: Path) -> Path:
    """Gives the files of a release without its tables and its manifest, as they are published."""
    (folder / "qampari_data").mkdir(parents=True)
    for path in (release / "qampari_data").iterdir():
        if path.stat().st_size:
            (folder / "qampari_data" / path.name).write_bytes(path.read_bytes())
    return folder


def _export(qampari: Path, corpus: Path, output: Path, finder: ReleaseProofs | None = None) -> dict[str, Any]:
    files = ContextsFiles(str(qampari), str(corpus))
    return export_contexts(files, str(output), ContextsOptions(), finder=finder)


@pytest.mark.parametrize("is_released_case", [False, True])
def test_published_files_get_the_passages_that_their_release_gets(
    tmp_path: Path, corpus: Path, finder: ReleaseProofs, is_released_case: bool
) -> None:
    release = _release(tmp_path / "release", is_released_case=is_released_case)
    ours = _export(release, corpus, tmp_path / "ours")
    published = _published(tmp_path / "published", release)
    report = _export(published, corpus, tmp_path / "theirs", finder)
    assert report == ours
    assert report["proofs"] == {"all": 15, "placed": 15, "unplaced": {}}
    for path in sorted((tmp_path / "ours" / "qampari_contexts").iterdir()):
        assert (tmp_path / "theirs" / "qampari_contexts" / path.name).read_bytes() == path.read_bytes()
    assert verified(tmp_path / "theirs").findings == ()
    facts = json.loads((tmp_path / "theirs" / "manifest.json").read_text())["qampari"]
    assert [file["name"] for file in facts["published"]] == ["train_data.jsonl", "dev_data.jsonl"]
    with pytest.raises(SetupError, match="made from published files"):
        verified(tmp_path / "theirs", qampari=release, passages=corpus)


def _edited(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    lines = read_lines(path)
    change(lines[0])
    write_records(path, lines)


def test_proofs_that_stand_nowhere_are_listed(
    tmp_path: Path, kb: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = _published(tmp_path / "published", _release(tmp_path / "release")) / "qampari_data"
    (published / "train_data.jsonl").unlink()

    def change(record: dict[str, Any]) -> None:
        record["further"] = {"kept": [1.5]}
        first, second, third = (answer["proof"][0] for answer in record["answer_list"][:3])
        first["found_in_url"] = f"{URL}Nowhere"
        second["proof_text"] = "All of this is told of some other place."
        third["proof_text"] = BRACK[11:70]
        record["answer_list"][3]["aliases"] = ["not the text"]

    _edited(published / "dev_data.jsonl", change)
    output = tmp_path / "contexts"
    told = [str(corpus), "--kb", str(kb), "--output", str(output)]
    assert main(["qampari-contexts", str(published), *told]) == 0
    assert "  not: no_page" in capsys.readouterr().out
    unplaced = read_lines(output / "unplaced.jsonl")
    assert [(line["pid"][-4:], line["title"], line["element"], line["reason"]) for line in unplaced] == [
        ("1__0", f"{URL}Brack", None, "no_text"),
        ("0__0", f"{URL}Nowhere", None, "no_page"),
    ]
    assert unplaced[0]["sentence"] == "All of this is told of some other place."
    (record,) = read_lines(output / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    assert [positive_ctx["pid"][-4:] for positive_ctx in record["positive_ctxs"]] == ["2__0", "3__0", "4__0"]
    assert record["further"] == {"kept": [1.5]}
    assert verified(output).findings == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record.pop("question_text"), "missing_field"),
        (lambda record: record.update(answer_list=[]), "no_answers"),
        (lambda record: record.update(answer_list=[1]), "wrong_type"),
        (lambda record: record["answer_list"][0].update(aliases=[1]), "wrong_type"),
        (lambda record: record["answer_list"][0]["proof"][0].update(pid="x"), "malformed_pid"),
        (
            lambda record: record["answer_list"][0]["proof"].append(record["answer_list"][0]["proof"][0]),
            "malformed_pid",
        ),
        (lambda record: record["answer_list"][0]["proof"][0].pop("found_in_url"), "missing_field"),
        (lambda record: record.update(qid="2__wikidata_simple__train"), "malformed_pid"),
    ],
)
def test_questions_that_cannot_be_used_are_named(
    tmp_path: Path,
    kb: Path,
    corpus: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], Any],
    reason: str,
) -> None:
    published = _published(tmp_path / "published", _release(tmp_path / "release"))
    _edited(published / "qampari_data" / "train_data.jsonl", change)
    output = tmp_path / "contexts"
    told = [str(corpus), "--kb", str(kb), "--output", str(output), "--json"]
    assert main(["qampari-contexts", str(published), *told]) == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["questions"]["train"], report["rejected"]) == (1, {reason: 1})
    assert "train_data.jsonl, line 1: " in captured.err
    assert f"({reason})" in captured.err
    assert {(row["stage"], row["reason"]) for row in table(output, "rejected")} == {("questions", reason)}
    assert verified(output).findings == ()
    assert reason in PUBLISHED_REASONS


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_lines_may_be_packed_damaged_and_given_twice(
    tmp_path: Path, corpus: Path, finder: ReleaseProofs, pack: Callable[[bytes], bytes]
) -> None:
    content = (_release(tmp_path / "release") / "qampari_data" / "train_data.jsonl").read_bytes()
    published = tmp_path / "published"
    published.mkdir()
    suffix = "gz" if pack is gzip.compress else "bz2"
    (published / f"train_data.jsonl.{suffix}").write_bytes(pack(content + content + b"{\n"))
    report = _export(published, corpus, tmp_path / "contexts", finder)
    assert (report["questions"]["train"], report["proofs"]["placed"]) == (2, 10)
    assert report["rejected"] == {"duplicate_question": 2, "malformed_json": 1}
    assert set(report["rejected"]) <= set(PUBLISHED_REASONS)


def test_published_files_and_release_of_pages_belong_together(
    tmp_path: Path, kb: Path, corpus: Path, finder: ReleaseProofs
) -> None:
    release = _release(tmp_path / "release")
    published = _published(tmp_path / "published", release)
    output = tmp_path / "contexts"
    with pytest.raises(SetupError, match="give --kb, the release of pages"):
        _export(published, corpus, output)
    with pytest.raises(SetupError, match="--kb works only for published files"):
        _export(release, corpus, output, finder)
    with pytest.raises(SetupError, match="nowhere: neither a finished QAMPARI release nor published files"):
        _export(tmp_path / "nowhere", corpus, output, finder)
    other = write_kb(tmp_path / "other", PAGES[1:])
    with (
        ReleaseProofs.open(str(other)) as another,
        pytest.raises(SetupError, match="--kb is the release whose manifest"),
    ):
        _export(published, corpus, output, another)
    (published / "qampari_data" / "dev_data.jsonl").write_text('{"qid": "x"}\n')
    with pytest.raises(SetupError, match="with qid, question_text and answer_list"):
        _export(published, corpus, output, finder)
    assert not output.exists()


def test_a_record_needs_no_proofs() -> None:
    check_published(
        {"qid": QID, "question_text": "?", "answer_list": [{"answer_text": "x", "aliases": [], "proof": []}]}
    )
