"""QAMPARI of the mini-wiki and the mini-Wikidata, end to end."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, structs

from kbsource.release.layout import BUILDING, STAGING
from mapping.qampari.kind import read_form
from mapping.qampari.list_tables import list_tables
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    SUBSETS,
    TABLE_COMPOSITION,
    TABLE_SIMPLE,
    load_relations,
)
from mapping.qampari.records import Question
from mapping.qampari.release import parse_qid
from mapping.qampari.selection import SampleSizes, split_relations
from pipelines.cli import main
from pipelines.commands.make import funnel_text, qampari_summary
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.qampari import QampariOptions
from tests.support import mini_wikidata
from tests.support.builds import build_mini, open_release, rows
from tests.support.entities import make
from tests.support.qampari import made_alone, undrawn_row
from tests.support.qampari_oracle import Oracle, check, undrawn_questions
from tests.support.qampari_worlds import World, options_for, run_job

pytestmark = pytest.mark.usefixtures("module_in_this_process")

SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("mini")
    make(mini_wikidata.DUMP, output=folder / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    build_mini(folder / "kb", wikidata=str(folder / "wikidata"))
    return World(folder / "kb", folder / "wikidata", folder)


def _options(world: World, output: Path, **options: Any) -> QampariOptions:
    return options_for(world, output, **{"relations": None, **options})


@pytest.fixture(scope="module")
def made(world: World, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    """A release without a model; not to be changed."""
    return run_job(_options(world, tmp_path_factory.mktemp("made") / "qampari"))


@pytest.fixture(scope="module")
def output(made: MadeRelease) -> Path:
    return Path(made.output)


@pytest.fixture(scope="module")
def drawn(output: Path) -> list[Question]:
    return [convert(row, Question) for row in rows(output, "questions")]


def _lines(output: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "qampari_data" / f"{split}_data.jsonl").read_bytes().splitlines()]


def test_every_query_and_question_as_slow_and_obvious_code_has_it(world: World, made: MadeRelease) -> None:
    expected = Oracle(world.wikidata, world.kb, load_relations())

    check(made, expected)
    assert {question.subset for question in expected.questions} == set(SUBSETS)


def test_numbers_of_qids_run_from_0_without_a_gap_in_the_order_of_the_files(
    output: Path, drawn: list[Question]
) -> None:
    by_split = defaultdict(list)
    for question in drawn:
        if question.qid is not None:
            n, subset, split = parse_qid(question.qid)
            assert (subset, split) == (question.subset, question.split)
            by_split[split].append(n)
    for split in SPLITS:
        assert by_split[split] == list(range(len(by_split[split])))
        assert [line["qid"] for line in _lines(output, split)] == [
            question.qid for question in drawn if question.split == split
        ]
    assert all(by_split.values())


def test_the_funnel_adds_up_to_the_queries(output: Path, made: MadeRelease, drawn: list[Question]) -> None:
    table = rows(output, "queries")
    report = json.loads((output / "report.json").read_bytes())
    assert report == made.report
    assert set(report["funnel"]) == {row["subset"] for row in table}
    for subset, counts in report["funnel"].items():
        own = [row for row in table if row["subset"] == subset]
        names = {"n_answers": "answers", "n_with_page": "answers_with_page"}
        names |= {"n_aligned": "answers_aligned", "n_validated": "answers_validated"}
        sums = {name: sum(row[column] or 0 for row in own) for column, name in names.items()}
        assert counts == {"queries": len(own), **sums, **Counter(row["outcome"] for row in own)}
        assert report["questions"]["kept"][subset] == counts.get("kept", 0)
    shown = {line.split()[0]: line.split()[1:] for line in funnel_text(report, is_judged=False).splitlines()}
    counts = report["funnel"][INTERSECTION]
    assert shown[INTERSECTION][:3] == [str(counts["queries"]), str(counts["answers"]), "-"]
    of_split = Counter((question.split, question.subset) for question in drawn if question.split is not None)
    assert {
        (split, subset): n for split, found in report["questions"]["sampled"].items() for subset, n in found.items()
    } == of_split


@pytest.mark.parametrize(("model", "head"), [(None, "unjudged"), ({"model": "m"}, "validated")])
def test_what_no_model_judged_is_not_called_validated(
    made: MadeRelease, model: dict[str, str] | None, head: str
) -> None:
    manifest = replace(made.manifest, facts={**made.manifest.facts, "model": model})
    said = qampari_summary(replace(made, manifest=manifest)).to_text().split()
    assert {head} == {"validated", "unjudged"} & {*said}


@pytest.mark.parametrize(
    ("counts", "said"),
    [({}, "No query was found"), ({SIMPLE: {"queries": 2, "kept": 0}}, "No query became a question")],
)
def test_a_release_without_questions_says_why(made: MadeRelease, counts: dict[str, Any], said: str) -> None:
    of_none = replace(made, report={**made.report, "funnel": counts})

    assert said in qampari_summary(of_none).to_text()
    assert said not in qampari_summary(made).to_text()


def test_each_question_is_on_the_side_of_its_relations(drawn: list[Question]) -> None:
    relations = load_relations()
    sides = split_relations(
        (relation.property_id for relation in relations.simple.values() if relation.is_enabled), "qampari"
    )
    for question in drawn:
        found = {sides.get(name) for name in question.property_ids}
        if question.subset in (TABLE_SIMPLE, TABLE_COMPOSITION):
            assert question.eligible_split == ("train" if question.split == "train" else "test")
        elif question.subset == INTERSECTION:
            assert question.eligible_split == ("test" if found == {"test"} else "train")
        else:
            assert question.eligible_split == ("test" if "test" in found else "train")


def _but_drawn(drawn: list[Question], *subsets: str) -> list[Any]:
    return [made_alone(question) for question in drawn if question.subset in subsets]


@pytest.mark.slow
def test_sizes_and_mixed_change_the_draw_and_nothing_else(
    world: World, output: Path, drawn: list[Question], tmp_path: Path
) -> None:
    pool = dict.fromkeys(SUBSETS, 1) | {TABLE_COMPOSITION: 0}
    sizes = SampleSizes(pool, train_per_relation=1)

    run_job(_options(world, tmp_path / "other", sizes=sizes, mixed="drop"))

    other = [convert(row, Question) for row in rows(tmp_path / "other", "questions")]
    assert [made_alone(question) for question in other] == [made_alone(question) for question in drawn]
    assert rows(tmp_path / "other", "queries") == rows(output, "queries")
    n_drawn = Counter(question.subset for question in other if question.split in ("dev", "test"))
    assert all(n <= pool[subset] for subset, n in n_drawn.items())
    assert n_drawn[SIMPLE] == n_drawn[TABLE_SIMPLE] == 1
    of_relation = Counter(
        name for question in other if question.split == "train" for name in set(question.property_ids)
    )
    assert set(of_relation.values()) == {1}
    for question, before in zip(other, drawn, strict=True):
        if question.eligible_split != before.eligible_split:
            is_mixed = question.subset == INTERSECTION and (before.eligible_split, question.eligible_split) == (
                "train",
                None,
            )
            assert is_mixed or question.subset in (TABLE_SIMPLE, TABLE_COMPOSITION)


@pytest.mark.slow
def test_the_seed_changes_the_draw_and_the_values_that_are_compared_with(
    world: World, drawn: list[Question], tmp_path: Path
) -> None:
    run_job(_options(world, tmp_path / "other", seed="another"))

    other = [convert(row, Question) for row in rows(tmp_path / "other", "questions")]
    same = (SIMPLE, COMPOSITION, INTERSECTION, TABLE_SIMPLE)
    assert _but_drawn(other, *same) == _but_drawn(drawn, *same)
    sides, before = ({question.key: question.eligible_split for question in found} for found in (other, drawn))
    assert any(sides[key] != before[key] for key in sides.keys() & before.keys())


@pytest.mark.slow
def test_without_tables_and_with_meta_and_released_case(
    world: World, output: Path, drawn: list[Question], tmp_path: Path
) -> None:
    run_job(_options(world, tmp_path / "other", has_tables=False, with_meta=True, is_released_case=True))

    other = [convert(row, Question) for row in rows(tmp_path / "other", "questions")]
    same = (SIMPLE, COMPOSITION, INTERSECTION)
    assert [made_alone(question) for question in other] == _but_drawn(drawn, *same)
    records = [line for split in SPLITS for line in _lines(tmp_path / "other", split)]
    assert records
    assert all("meta" in record for record in records)
    texts = [proof["proof_text"] for record in records for answer in record["answer_list"] for proof in answer["proof"]]
    assert all(text[:1] == text[:1].upper() for text in texts)
    assert not any("Halvane" in text[1:] for text in texts)
    assert not any("meta" in line for split in SPLITS for line in _lines(output, split))


@pytest.mark.slow
def test_verbs_can_be_those_of_the_released_questions(world: World, drawn: list[Question], tmp_path: Path) -> None:
    run_job(_options(world, tmp_path / "made", is_released_wording=True))

    made = undrawn_questions(tmp_path / "made")
    changed = [
        (new.question_text, old.question_text) for new, old in zip(made, drawn, strict=True) if new != made_alone(old)
    ]
    assert changed
    assert all(new.replace(" that works or ", " that work or ") == old for new, old in changed)
    assert [structs.replace(question, question_text="") for question in made] == [
        structs.replace(made_alone(question), question_text="") for question in drawn
    ]


@pytest.mark.slow
def test_titles_that_lead_to_the_page_of_a_tables_answer_can_be_its_aliases(
    world: World, output: Path, drawn: list[Question], tmp_path: Path
) -> None:
    run_job(_options(world, tmp_path / "made", redirect_aliases=True))
    redirects = {page.title: page.redirects for page in open_release(world.kb)}

    n_more = 0
    for row, before in zip(rows(tmp_path / "made", "questions"), drawn, strict=True):
        for answer, old in zip(undrawn_row(row).answers, before.answers, strict=True):
            is_of_table = before.subset in (TABLE_SIMPLE, TABLE_COMPOSITION)
            more = redirects[answer.title or ""] if is_of_table else ()
            assert answer == structs.replace(old, aliases=tuple(dict.fromkeys((*old.aliases, *more))))
            n_more += answer != old
    assert n_more


@pytest.mark.slow
def test_the_command_lays_a_wrong_key_column_to_the_set_up(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (listed, *_) = [table for page in open_release(world.kb) for table in list_tables(page)[0]]
    keys, out = tmp_path / "keys.jsonl", tmp_path / "out"
    keys.write_text(json.dumps({"title": listed.title, "table": listed.number, "column": 99}))
    given = ["qampari", str(world.kb), str(world.wikidata), "--model", "none"]

    assert main([*given, "--output", str(out), "--key-columns", str(keys)]) == 2
    message = f"Key column 99 of table {listed.number} of {listed.title!r} does not exist: the table has the columns"
    assert message in capsys.readouterr().err
    assert not (out / "manifest.json").exists()


def test_the_manifest_says_what_it_was_made_from(world: World, output: Path) -> None:
    manifest, form = read_form(str(output))

    assert {name: [input_file["name"] for input_file in found] for name, found in manifest.facts["inputs"].items()} == {
        "kb": ["kb/manifest.json"],
        "wikidata": ["wikidata/manifest.json"],
    }
    assert (manifest.facts["model"], manifest.facts["options"]["answer_filter"]["least"]) == (None, 5)
    assert form._asdict() == {"host": form.host, "with_meta": False, "is_released_case": False, "seed": "qampari"}
    assert not (output / STAGING).exists()
    assert not (output / BUILDING).exists()


def test_what_was_made_is_sound(world: World, output: Path) -> None:
    assert main(["verify", str(output), "--kb", str(world.kb)]) == 0


@pytest.mark.slow
def test_the_command_shows_the_funnel_or_the_report(
    world: World, output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["qampari", str(world.kb), str(world.wikidata), "--model", "none", "--no-tables"]
    assert main([*given, "--output", str(tmp_path / "a"), "--pool-simple", "2", "--least-answers", "6", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["questions"]["answers"][SIMPLE]["questions"] <= 2
    assert shown["funnel"][SIMPLE]["queries"] == shown["funnel"][SIMPLE]["kept"] + sum(
        n for name, n in shown["funnel"][SIMPLE].items() if name.startswith("too_")
    )
    assert main(["qampari", str(world.kb), str(world.wikidata), "--output", str(output)]) == 2
    assert "never overwritten" in capsys.readouterr().err
