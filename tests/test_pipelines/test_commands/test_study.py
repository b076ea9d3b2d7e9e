"""AmbER's user study, as it is typed: pages of a set, people who choose one, and systems over the same pages."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mapping.annotation.study import queries_of_set
from pipelines.cli import main

Row = dict[str, Any]
PAGES = ("30", "31", "32", "33")


def lines(path: Path, records: Iterable[Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def amber_set(name: str, pages: Iterable[str], *, answer: Any = ("the  River",)) -> Row:
    """A set whose first entity is the head; each has a query about its page."""
    qids = {}
    for number, page in enumerate(pages):
        place = {"wikipedia_id": page, "title": f"T{page}"}
        output = {"answer": answer if isinstance(answer, str) else list(answer), "provenance": [place]}
        query = {"id": f"{name}-{page}", "input": f"What is {name}, {page}?", "output": output}
        qids[f"Q{page}"] = {"is_head": not number, "popularity": 3.0, "wikipedia": [place], "queries": [query]}
    return {"name": name, "qids": qids}


@pytest.fixture(scope="module")
def page_ids(release: Path) -> list[str]:
    from kbsource.lookup import KnowledgeSource

    with KnowledgeSource.open(str(release)) as source:
        found = (source.by_id(number) for number in range(1, 200))
        return [str(page.page_id) for page in found if page is not None and len(page.elements) > 3][:4]


@pytest.fixture
def sets(page_ids: list[str], tmp_path: Path) -> str:
    given = [amber_set("Ada", page_ids), amber_set("Bea", page_ids[:2]), amber_set("Cleo", [*page_ids[:2], "999999"])]
    return lines(tmp_path / "amber_sets.jsonl", given)


def _study(sets: str, release: Path, output: Path, *options: str) -> int:
    return main(["campaign", "study", sets, "--kb", str(release), "--output", str(output), *options])


def test_a_query_is_shown_with_its_page_and_two_others_of_the_set() -> None:
    asked = [query for query in queries_of_set(amber_set("Ada", PAGES), "s") if query is not None]

    assert len(asked) == 4
    for query in asked:
        assert len(set(query.page_ids)) == 3
        assert query.page_ids[query.gold] == query.query_id.split("-")[1]
    assert [query.is_head for query in asked] == [True, False, False, False]
    assert (
        len({query.gold for seed in "abcdef" for query in queries_of_set(amber_set("Ada", PAGES), seed) if query}) == 3
    )
    assert list(queries_of_set(amber_set("Bea", PAGES[:2]), "s")) == [None, None]


@pytest.mark.parametrize("form", ["jsonl", "csv", "label-studio"])
def test_people_and_systems_are_scored_over_the_same_three_pages(
    form: str, sets: str, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks", tmp_path / "campaign"
    assert _study(sets, release, tasks, "--format", form, "--json") == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts == {"queries": 9, "too_few_pages": 2, "page_not_in_release": 3, "sampled": 4, "rejected": 0}
    assert main(["verify", str(tasks)]) == 0
    key = {line["query_id"]: line for line in read(tasks / "key.jsonl")}
    texts = {passage["passage_id"]: passage["text"] for passage in read(tasks / "passages.jsonl")}
    if form == "csv":
        with open(tasks / "tasks.csv", newline="") as file:
            shown: list[Row] = list(csv.DictReader(file))
    elif form == "jsonl":
        shown = read(tasks / "tasks.jsonl")
    else:
        shown = [task["data"] for task in json.loads((tasks / "tasks.json").read_text())]
    assert {row["query_id"] for row in shown} == key.keys()
    assert all(texts[page][:20] in str(row["pages"]) for row in shown for page in key[row["query_id"]]["page_ids"])

    # "right" chooses the gold page and marks two of its words, "wrong" the page behind it and marks nothing.
    answers = {}
    said: list[Row] = []
    for row in shown:
        query = key[row["query_id"]]
        gold = query["gold"]
        highlight = " ".join(texts[query["page_ids"][gold]].split()[:2])
        answers[row["query_id"]] = highlight
        for worker, number, marked in (("right", gold, highlight), ("wrong", (gold + 1) % 3, "")):
            label = str(number + 1)
            if form == "label-studio":
                parts: list[Row] = [{"type": "choices", "value": {"choices": [label]}}]
                parts += [{"type": "labels", "value": {"text": marked, "start": 0, "end": 1}}] if marked else []
                said.append({"data": row, "annotations": [{"completed_by": worker, "result": parts}]})
            else:
                said.append({**row, "worker_id": worker, "label": label, "highlight": marked})
    if form == "csv":
        path = tmp_path / "said.csv"
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, said[0])
            writer.writeheader()
            writer.writerows(said)
    else:
        path = tmp_path / "said.json"
        path.write_text(json.dumps(said) if form == "label-studio" else "\n".join(map(json.dumps, said)))
    assert main(["campaign", "import", str(tasks), str(path), "--output", str(output)]) == 0
    assert main(["verify", str(output)]) == 0
    first, *others = sorted(key)
    places = [{"wikipedia_id": "12345"}, *({"wikipedia_id": page} for page in key[first]["page_ids"])]
    gold_page = key[others[0]]["page_ids"][key[others[0]]["gold"]]
    run = [
        {"id": first, "output": [{"answer": "The river", "provenance": places}]},
        {"id": others[0], "output": [{"answer": "x", "provenance": [{"wikipedia_id": gold_page}]}]},
    ]
    capsys.readouterr()
    fates = tmp_path / "fates.jsonl"
    given = ["--predictions", lines(tmp_path / "bm25.jsonl", run), "--items", str(fates), "--json"]
    assert main(["campaign", "report", str(output), *given]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["queries"] == {"asked": 4, "judged": 4, "unjudged": 0}
    assert report["people"]["judgements"] == 8
    assert report["people"]["document_accuracy"] == {"all": 0.5, "head": 0.5, "tail": 0.5}
    assert report["workers"]["right"]["document_accuracy"]["all"] == 1
    assert report["people"]["em"]["all"] == 0  # no page begins with the answer
    system = report["systems"]["bm25.jsonl"]
    is_first_right = key[first]["gold"] == 0
    assert (system["found_a_page"], system["without_prediction"]) == (2, 2)
    assert system["document_accuracy"]["all"] == (1 + is_first_right) / 4
    right = {others[0], *([first] if is_first_right else [])}
    for part, is_head in (("head", True), ("tail", False)):
        own = [query_id for query_id, query in key.items() if query["is_head"] == is_head]
        assert system["document_accuracy"][part] == len(right.intersection(own)) / len(own)
    assert system["em"]["all"] == 0.25
    assert {fate["query_id"]: fate["chosen"]["right"]["highlight"] for fate in read(fates)} == answers


def test_the_same_bytes_and_another_seed_draws_others(sets: str, release: Path, tmp_path: Path) -> None:
    for name, options in {"a": (), "b": (), "c": ("--seed", "other")}.items():
        assert _study(sets, release, tmp_path / name, "--sample", "2", "--words", "5", *options) == 0
    first, second, other = ((tmp_path / name / "tasks.jsonl").read_bytes() for name in "abc")
    assert first == second != other
    assert all(
        len(page["text"].split()) <= 5 for task in read(tmp_path / "a" / "tasks.jsonl") for page in task["pages"]
    )


def test_claims_are_refused_and_what_cannot_be_used_is_named(
    sets: str, page_ids: list[str], release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = lines(tmp_path / "fc.jsonl", [amber_set("Ada", page_ids, answer="SUPPORTS")])
    assert _study(claims, release, tmp_path / "fc") == 2
    assert "no query can be shown with 3 pages" in capsys.readouterr().err
    assert _study(sets, release, tmp_path / "tasks") == 0
    (task, *_) = read(tmp_path / "tasks" / "tasks.jsonl")
    rows = [
        {"query_id": "nobody", "worker_id": "w", "label": "1"},
        {"query_id": task["query_id"], "worker_id": "w", "label": "4"},
        {"query_id": task["query_id"], "worker_id": "w", "label": "2", "highlight": "of steel and glass"},
        {"query_id": task["query_id"], "worker_id": "w", "label": "3"},
        {"query_id": task["query_id"], "worker_id": "v", "label": "none"},
    ]
    argv = ["campaign", "import", str(tmp_path / "tasks"), lines(tmp_path / "said.jsonl", rows), "--output"]
    assert main([*argv, str(tmp_path / "campaign")]) == 1
    said = capsys.readouterr().err
    for reason in ("unknown_question", "unknown_label", "highlight_not_found", "conflicting_label"):
        assert reason in said
    assert [row["label"] for row in read(tmp_path / "campaign" / "judgements.jsonl")] == ["none"]
