"""``kbsource facts``: the mini-wiki and its Wikidata of two days, whose facts were edited by hand."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kbsource.kilt import kilt_texts
from kbsource.release.writer import write_rows
from kbsource.runtime.warehouse import StoredTable, warehouse
from mapping.facts import FACTS, SIDES
from mapping.inspector.opened import close_releases, open_releases
from pipelines.cli import main
from tests.support import mini_wikidata
from tests.support.builds import build_mini, open_release
from tests.support.builds import rows as rows_of
from tests.support.entities import make
from tests.support.inspected import client_of
from tests.support.moved_builds import build_moved
from tests.support.real_data import ROOT
from tests.support.tables import read_table
from tests.support.tiny_nli import overlap_model
from tests.support.verified import seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of both days: ``wikidata`` and ``kb``, ``later-wikidata`` and ``later``."""
    folder = tmp_path_factory.mktemp("worlds")
    make(mini_wikidata.DUMP, output=folder / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    build_mini(folder / "kb", page_props=None, wikidata=str(folder / "wikidata"))
    build_moved(folder)
    return folder


def _facts(worlds: Path, output: Path, *flags: str) -> int:
    wikidata = [str(worlds / name) for name in ("wikidata", "later-wikidata")]
    kbs = [str(worlds / name) for name in ("kb", "later")]
    return main(["facts", *kbs, "--wikidata", *wikidata, "--output", str(output), *flags])


@pytest.fixture(scope="module")
def made(worlds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("facts") / "facts"
    assert _facts(worlds, output) == 0
    return output


@pytest.fixture(scope="module")
def rows(made: Path) -> Rows:
    return list(read_table(str(made), "facts"))


def _one(rows: Rows, question: str) -> dict[str, Any]:
    (found,) = (row for row in rows if row["question"] == question)
    return found


def _texts(row: dict[str, Any], side: str) -> list[str | None]:
    return [answer["text"] for answer in row[f"{side}_answers"]]


@pytest.mark.parametrize(
    ("question", "outcome", "problem", "old", "new"),
    [
        ("What is the capital of Halvane Isles?", "changed", None, ["Port Sellick"], ["Ostermoor"]),
        # The newer number is preferred, and hides the one that was.
        ("What is the total population of Port Sellick?", "changed", None, ["61390"], ["70001"]),
        ("What is the official language of Fennick Island?", "appeared", None, [], ["Halvanic"]),
        ("In which year was Fennick Island founded?", "appeared", "new_not_found", [], ["1450"]),
        # Taken out, deprecated, ended.
        ("How many members does Museum of Tides have?", "disappeared", None, ["640"], []),
        ("In which year was Moor Union founded?", "disappeared", None, ["1906"], []),
        ("What position does Orla Benwick hold?", "disappeared", None, ["First Steward"], []),
        # Ended long ago, in both: the office that she had before is no answer.
        (
            "What are the participants in Harbour Treaty of 1821?",
            "changed",
            "change_unproved",
            ["Veldmark", "Halvane Isles"],
            ["Veldmark", "Halvane Isles", "Halvanic"],
        ),
        # Another label of the answer, whose page the page links to.
        ("Who operates Kestrane Observatory?", "stayed", None, ["University of Port Sellick"], ["Sellick University"]),
        ("How many members does Gazette of Port Sellick have?", "stayed", None, ["318"], ["318"]),
        ("What are the countries of origin of Kelp weaving?", "stayed", "new_no_page", ["Halvane Isles"] * 1, None),
        ("What is the area of Lake Miravel?", "stayed", "old_no_name", [None], [None]),
    ],
)
def test_facts_become_what_was_edited(
    rows: Rows, question: str, outcome: str, problem: str | None, old: list[str | None], new: list[str | None] | None
) -> None:
    row = _one(rows, question)
    assert (row["outcome"], row["problem"]) == (outcome, problem)
    assert _texts(row, "old") == old
    assert _texts(row, "new") == (old if new is None else new)


@pytest.mark.parametrize(("threads", "memory"), [(2, 500), (7, 100)])
def test_any_number_of_threads_joins_the_same_facts_with_any_memory(
    worlds: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, memory: int
) -> None:
    given: list[int] = []

    def opened(tables: Mapping[str, StoredTable], *, memory_mb: int) -> AbstractContextManager[Any]:
        given.append(memory_mb)
        return warehouse(tables, memory_mb=memory_mb, threads=threads)

    monkeypatch.setattr("pipelines.facts.warehouse", opened)
    assert _facts(worlds, tmp_path / "facts", "--memory", str(memory)) == 0
    assert given == [memory, memory]
    assert (tmp_path / "facts" / "manifest.json").read_bytes() == (made / "manifest.json").read_bytes()


def test_facts_are_the_same_when_few_rows_are_sorted_at_once(
    worlds: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbsource.runtime.warehouse.ROWS_AT_ONCE", 3)
    assert _facts(worlds, tmp_path / "facts") == 0
    assert (tmp_path / "facts" / "manifest.json").read_bytes() == (made / "manifest.json").read_bytes()


def test_an_item_that_was_merged_is_the_same_as_subject_and_as_answer(rows: Rows) -> None:
    bridge = _one(rows, "In which year was Ostermoor Bridge founded?")
    assert (bridge["outcome"], bridge["old_item_id"], bridge["item_id"]) == ("stayed", "Q9000144", "Q9700001")
    of_town = _one(rows, "What are the significant places for Ostermoor?")
    answers = [[(value["value"], value["item_id"]) for value in of_town[f"{side}_answers"]] for side in SIDES]
    assert of_town["outcome"] == "stayed"
    assert answers == [
        [("Q9000015", "Q9000015"), ("Q9700001", "Q9000144")],
        [("Q9000015", "Q9000015"), ("Q9700001", "Q9700001")],
    ]


def test_a_renamed_page_is_named_by_its_label_as_long_as_that_leads_to_it(rows: Rows) -> None:
    row = _one(rows, "How many members does Gazette of Port Sellick have?")
    assert (row["old_title"], row["new_title"]) == ("Sellick Gazette", "Gazette of Port Sellick")
    novel = _one(rows, "Who is the author of Lantern (novel)?")
    assert novel["entity"] == "Lantern (novel)"  # its label is that of other pages too


def test_every_proof_slices_to_what_it_claims_in_the_page_and_in_kilts_form_of_it(
    made: Path, worlds: Path, rows: Rows
) -> None:
    n_proofs = 0
    for side, name in zip(SIDES, ("kb", "later"), strict=True):
        with open_release(worlds / name) as source:
            for row in rows:
                for proof in (answer["proof"] for answer in row[f"{side}_answers"] if answer["proof"] is not None):
                    page = source.by_id(proof["page_id"])
                    assert page is not None
                    assert (page.title, page.revision_id) == (proof["title"], proof["revision_id"])
                    assert page.page_id == row[f"{side}_page_id"]
                    element = page.elements[proof["element"]]
                    assert element.text[proof["start_char"] : proof["end_char"]] == proof["text"]
                    paragraph = kilt_texts(page)[0][proof["paragraph_id"]]
                    assert paragraph[proof["paragraph_char"] :].startswith(proof["text"])
                    assert proof["answer_text"] in element.text[proof["sentence_char"] : proof["end_char"]]
                    n_proofs += 1
    assert n_proofs > 300


def test_a_proof_that_moved_shows_in_its_places(rows: Rows) -> None:
    row = _one(rows, "Who operates Kestrane Observatory?")
    old, new = (row[f"{side}_answers"][0]["proof"] for side in SIDES)
    moved_by = len("It was built by hand. ")
    assert new["sentence_char"] - old["sentence_char"] == moved_by
    assert (old["answer_text"], new["answer_text"]) == ("University of Port Sellick",) * 2


def test_every_statement_is_counted_and_every_fact_told(made: Path, worlds: Path, rows: Rows) -> None:
    report = json.loads((made / "report.json").read_bytes())
    counts: Counter[tuple[str, str]] = Counter((row["outcome"], row["problem"] or "question") for row in rows)
    assert {(outcome, name): n for outcome, own in report["facts"].items() for name, n in own.items() if n} == dict(
        counts
    )
    for side, name in zip(SIDES, ("wikidata", "later-wikidata"), strict=True):
        statements: Counter[str] = Counter(
            row["property_id"] for row in rows_of(worlds / name, "statements") if row["entity_id"].startswith("Q")
        )
        told = {name: own[side]["statements"] for name, own in report["properties"].items()}
        assert {name: n for name, n in told.items() if n} == dict(statements)
    properties = report["properties"]
    assert properties["P36"]["question"] == "What is the capital of {entity}?"
    assert properties["P9001"]["question"] is None  # nobody asks for a register's number
    # The language and the pound are subclasses too; classes themselves have no page.
    assert properties["P279"]["old"] == {"statements": 70, "without_page": 68}


def test_records_are_kilts_and_the_release_is_sound(made: Path, worlds: Path, rows: Rows) -> None:
    for side, name in zip(SIDES, ("kb", "later"), strict=True):
        assert main(["validate-kilt", str(worlds / name), str(made / f"{side}-kilt.jsonl")]) == 0
        records = [json.loads(line) for line in (made / f"{side}-kilt.jsonl").read_text().splitlines()]
        absent = "appeared" if side == "old" else "disappeared"
        wanted = [row for row in rows if row["problem"] is None and row["outcome"] != absent]
        assert [record["input"] for record in records] == [row["question"] for row in wanted]
    report = verified(made, old=worlds / "kb", new=worlds / "later")
    assert not report.findings
    assert report.counts["facts"] == len(rows)


def test_a_model_says_which_sentences_prove_answers(worlds: Path, tmp_path: Path, rows: Rows) -> None:
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[nli]")
    with open_release(worlds / "later") as source:
        overlap_model(tmp_path / "nli", texts=[element.text for page in source for element in page.elements])
    model = ("--model", str(tmp_path / "nli"), "--backend", "onnx")
    assert _facts(worlds, tmp_path / "facts", *model, "--least-entailment", "0.6") == 0
    judged = list(read_table(str(tmp_path / "facts"), "facts"))
    proofs = [answer["proof"] for answer in _answers(judged)]
    assert 0 < len(proofs) < len(_answers(rows))
    assert all(proof["entailment"] > 0.6 for proof in proofs)
    assert {row["problem"] for row in judged} >= {"old_not_entailed"}
    assert [row["outcome"] for row in judged] == [row["outcome"] for row in rows]
    assert not verified(tmp_path / "facts", old=worlds / "kb", new=worlds / "later").findings


def _answers(rows: Rows) -> Rows:
    return [
        answer for row in rows for side in SIDES for answer in row[f"{side}_answers"] if answer["proof"] is not None
    ]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda rows: rows[0].update(outcome="stayed"), "invalid_fact"),
        (lambda rows: rows[0].update(problem="old_not_found"), "invalid_fact"),
        (lambda rows: rows.reverse(), "invalid_fact"),
        (lambda rows: _answers(rows)[0].update(is_in_both=True), "invalid_fact"),
        (lambda rows: _answers(rows)[0]["proof"].update(bleu=0.9), "invalid_fact"),
        (lambda rows: _answers(rows)[0]["proof"].update(answer_text="nowhere"), "invalid_fact"),
        (lambda rows: _answers(rows)[0]["proof"].update(page_id=15), "invalid_fact"),
        (lambda rows: _answers(rows)[0]["aliases"].reverse(), "invalid_fact"),
        (lambda rows: rows[0].update(question="What is it?"), "records_differ"),
        (lambda rows: rows.pop(), "records_differ"),
        (lambda rows: rows.pop(), "counts"),
        (lambda rows: _moved(_answers(rows)[0]["proof"]), "proof_differs"),
        (lambda rows: _answers(rows)[0]["proof"].update(revision_id=1), "proof_differs"),
        (lambda rows: _answers(rows)[0]["proof"].update(element=99), "proof_differs"),
    ],
)
def test_what_was_changed_later_is_found(
    made: Path, worlds: Path, rows: Rows, tmp_path: Path, change: Callable[[Rows], Any], rule: str
) -> None:
    shutil.copytree(made, tmp_path / "facts")
    own = json.loads(json.dumps(rows))
    change(own)
    names = FACTS.tables["facts"].names
    values = [[row[name] for name in names] for row in own]
    write_rows(values, "facts", FACTS.tables["facts"], output=str(tmp_path / "facts"))
    seal(tmp_path / "facts")
    found = verified(tmp_path / "facts", old=worlds / "kb", new=worlds / "later").findings
    assert rule in {finding.rule for finding in found}


def _moved(proof: dict[str, Any]) -> None:
    for name in ("start_char", "sentence_char", "end_char"):
        proof[name] += 1


def test_the_inspector_shows_old_and_new_side_by_side(made: Path, worlds: Path, rows: Rows) -> None:
    releases = open_releases([str(made), str(worlds / "kb"), str(worlds / "later")])
    client = client_of(*releases)
    overview = client.get("/r/facts/").text
    assert 'href="/r/facts/tables/facts?outcome=changed&amp;problem=-"' in overview
    report = json.loads((made / "report.json").read_bytes())
    n_others = sum(own["question"] is None for own in report["properties"].values())
    assert f"{n_others} further properties have no question; report.json counts their statements." in overview
    listed = client.get("/r/facts/tables/facts", params={"outcome": "changed", "problem": "-"}).text
    assert "What is the capital of Halvane Isles?" in listed
    number = next(at for at, row in enumerate(rows) if row["question"] == "What is the capital of Halvane Isles?")
    shown = client.get(f"/r/facts/tables/facts/{number}").text
    for side, slug in zip(SIDES, ("kb", "later"), strict=True):
        proof = rows[number][f"{side}_answers"][0]["proof"]
        place = f"{proof['element']}%3A{proof['start_char']}-{proof['element']}%3A{proof['end_char']}"
        assert f'href="/r/{slug}/page/12?hl={place}' in shown
    assert "Older release, 20260101" in shown
    assert "Newer release, 20260201" in shown
    gone = next(at for at, row in enumerate(rows) if row["outcome"] == "disappeared")
    assert "No answer." in client.get(f"/r/facts/tables/facts/{gone}").text
    lost = next(at for at, row in enumerate(rows) if row["problem"] == "new_no_page")
    assert "The subject has no page." in client.get(f"/r/facts/tables/facts/{lost}").text
    close_releases(releases)
    alone = open_releases([str(made)])
    assert client_of(*alone).get(f"/r/facts/tables/facts/{number}").status_code == 200
    close_releases(alone)


def test_the_query_of_the_documentation_gives_what_changed(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "enwiki-202610").symlink_to(made)
    monkeypatch.chdir(tmp_path)
    (query,) = re.findall(
        r"^```sql\n(.*?)^```$", (ROOT / "docs" / "facts.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    found = duckdb.sql(query).fetchall()
    assert [row[:3] for row in found] == [
        ("What is the capital of Halvane Isles?", ["Port Sellick"], ["Ostermoor"]),
        ("What is the total population of Port Sellick?", ["61390"], ["70001"]),
    ]
    assert "The capital is Ostermoor." in found[0][3]


def test_a_release_that_no_fact_is_in_is_a_release(worlds: Path, tmp_path: Path) -> None:
    (tmp_path / "questions.toml").write_text("P1 = 'What is {entity}?'\n")
    assert _facts(worlds, tmp_path / "facts", "--questions", str(tmp_path / "questions.toml")) == 0
    assert list(read_table(str(tmp_path / "facts"), "facts")) == []
    assert not verified(tmp_path / "facts", old=worlds / "kb", new=worlds / "later").findings


def test_releases_in_the_wrong_order_are_refused(
    worlds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kb, later, wikidata, later_wikidata = (str(worlds / name) for name in ("kb", "later", "wikidata", "later-wikidata"))
    for given, said in (
        ([later, kb, "--wikidata", wikidata, later_wikidata], "name the older release first"),
        ([kb, kb, "--wikidata", wikidata, later_wikidata], "have the same date, 20260101"),
        ([kb, later, "--wikidata", later_wikidata, wikidata], "is newer than"),
        ([kb, later, "--wikidata", wikidata], "--wikidata"),
    ):
        assert main(["facts", *given, "--output", str(tmp_path / "facts")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "facts").exists()
