"""Folders of tasks and campaigns as a stranger may make them: each value of a line another one in turn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from mapping.annotation.campaign import import_judgements, report_campaign, write_campaign_tasks
from mapping.annotation.crowd import TaskOptions, write_crowd_tasks
from mapping.annotation.extended_set import ExtendedOptions, export_extended, import_extended
from mapping.annotation.filter_sample import (
    AnswerFilterOptions,
    FilterSampleOptions,
    export_filter_sample,
    report_filter,
)
from mapping.annotation.revision import apply_crowd
from mapping.annotation.second_look import LookOptions, second_look
from mapping.annotation.study import import_choices, report_study
from mapping.annotation.tasks import CAMPAIGN, CAMPAIGN_TASKS, CROWD_TASKS, KEY, PASSAGES, TASKS, write_task_folder
from mapping.annotation.tasks import TaskSheet as Sheet
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from tests.support.qampari import drawn, question, write_qampari
from tests.support.strangers import entry_of_file, sealed

pytestmark = pytest.mark.slow  # every command over changed tasks

Read = Callable[[str, str], Any]
"""Reads a folder, and may write into another one that is empty."""
OTHERS: list[Any] = [
    ..., 7, -1, 2**80, 1.5, None, "", "\0", "unknown", "a__7", "a__x", "1" * 5000, True, [], [None], ["x"], {"a": 1},
]  # fmt: skip
"""What stands in place of a value; ``...`` for nothing."""


class _Certain:
    """A model to which everything follows."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        return [Verdict(1.0, None, None) for pair in pairs if pair.premise[slice(*pair.core or ())] is not None]


def _lines(path: Path, records: Iterable[Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def _campaign_tasks(at: Path) -> tuple[str, str]:
    """Tasks of two passages of a question, and what was said of them."""
    passages = [
        {"passage_id": f"p{n}", "wikipedia_id": "7", "wikipedia_title": "Lake", "text": "A lake.", "systems": ["bm25"]}
        | {"is_gold": n == 0, "overlap": 1.0}
        for n in range(2)
    ]
    asked = {"question_id": "q", "input": "What is it?", "answers": ["lake"], "passages": passages}
    write_campaign_tasks(_lines(at / "candidates.jsonl", [asked]), str(at / "tasks"), "jsonl")
    said = [
        {"passage_id": f"p{n}", "worker_id": worker, "label": "yes" if n else "no", "highlight": "lake" * n}
        | {"free_text": "It is one.", "other_passage": "Another lake."}
        for n in range(2)
        for worker in "ab"
    ]
    return str(at / "tasks"), _lines(at / "judged.jsonl", said)


def _study_tasks(at: Path) -> tuple[str, str]:
    """Tasks of a query of a study, and what was chosen."""
    shown = {"query_id": "q", "question": "Which?", "answers": ["lake"], "is_head": True, "page_ids": ["1", "2", "3"]}
    pages = [{"passage_id": n, "wikipedia_id": n, "wikipedia_title": n, "text": "A lake."} for n in "123"]
    write_task_folder(
        CAMPAIGN_TASKS,
        [{"query_id": "q"}],
        Sheet(TASKS, "Which?", (), "text", ("1", "2", "3")),
        "jsonl",
        hidden={
            PASSAGES: (json.dumps(page).encode() + b"\n" for page in pages),
            KEY: [json.dumps({**shown, "gold": 0}).encode() + b"\n"],
        },
        facts={"options": {"about": "pages"}},
        output=str(at / "study"),
    )
    said = [{"query_id": "q", "worker_id": "ann", "label": label, "highlight": "lake"} for label in "3"]
    return str(at / "study"), _lines(at / "chosen.jsonl", said)


def _question_folders(at: Path) -> Iterable[tuple[str, list[Read]]]:
    """The folders of tasks about a QAMPARI release, each with what reads it."""
    names = [f"Mill {number}" for number in range(8)]
    asked = [drawn(question(f"P50__Q{n}", names), n, "test") for n in range(3)]
    release = str(write_qampari(at / "release", asked, facts={"model": None}))
    write_crowd_tasks(release, str(at / "crowd"), TaskOptions(wrong_share=0.2, n_train_paraphrases=0))
    key = [json.loads(line) for line in (at / "crowd" / "validation_key.jsonl").read_text().splitlines()]
    verdicts = _lines(at / "verdicts.jsonl", ({"task_id": task["task_id"], "verdict": "incorrect"} for task in key))
    written = _lines(at / "written.jsonl", [{"qid": key[0]["qid"], "paraphrase": "Who?", "worker": "ann"}])
    look = LookOptions(paraphrase_share=1.0)

    def again(folder: str, output: str) -> Any:
        return second_look(
            release, folder, output, look, verdicts=[verdicts], paraphrases=[written], reject=lambda _: None
        )

    yield (
        str(at / "crowd"),
        [
            again,
            lambda folder, output: apply_crowd(release, folder, output, verdicts=[verdicts], paraphrases=[written]),
            lambda folder, output: write_crowd_tasks(release, output, TaskOptions(not_in=(folder,))),
        ],
    )
    export_extended(release, str(at / "extended"), ExtendedOptions(questions=1))
    added = _lines(at / "added.jsonl", [{"qid": asked[0].qid, "answer_text": "x", "proof_text": "x", "worker": "a"}])
    yield (
        str(at / "extended"),
        [lambda folder, output: import_extended(folder, [added], output, reject=lambda _: None)],
    )
    export_filter_sample(release, str(at / "sample"), FilterSampleOptions(answers=2))
    ids = [json.loads(line)["task_id"] for line in (at / "sample" / "filter_key.jsonl").read_text().splitlines()]
    said = _lines(at / "said.jsonl", ({"task_id": task_id, "verdict": "correct"} for task_id in ids))
    yield (
        str(at / "sample"),
        [lambda folder, _: report_filter(folder, [said], _Certain(), AnswerFilterOptions(), reject=lambda _: None)],
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[Read]]]:
    """Every folder that people's work is kept in, with what reads it."""
    at = tmp_path_factory.mktemp("made")
    tasks, judged = _campaign_tasks(at)
    import_judgements(tasks, [judged], str(at / "campaign"))
    study, chosen = _study_tasks(at)
    import_choices(study, [chosen], str(at / "studied"))
    return [
        (tasks, [lambda folder, output: import_judgements(folder, [judged], output)]),
        (str(at / "campaign"), [lambda folder, _: report_campaign(folder)]),
        (study, [lambda folder, output: import_choices(folder, [chosen], output)]),
        (str(at / "studied"), [lambda folder, _: report_study(folder, [], reject=lambda _: None)]),
        *_question_folders(at),
    ]


def test_every_file_that_is_read_is_in_one_of_the_folders(folders: list[tuple[str, list[Read]]]) -> None:
    there = {path.name for folder, _ in folders for path in Path(folder).glob("*.jsonl") if path.stat().st_size}
    assert {*CAMPAIGN.records, *CAMPAIGN_TASKS.records, *CROWD_TASKS.records} <= there


def _sealed_again(own: Path, name: str) -> None:
    manifest = json.loads((own / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        if entry["file"] == name:
            entry.update(entry_of_file(own, name))
    (own / "manifest.json").write_bytes(sealed(manifest))


@pytest.mark.parametrize("number", range(7))
def test_what_reads_a_changed_line_does_its_work_or_names_it(
    folders: list[tuple[str, list[Read]]], tmp_path: Path, number: int
) -> None:
    folder, reads = folders[number]
    known = {**CROWD_TASKS.records, **CAMPAIGN.records}
    refused = 0
    for path in sorted(path for path in Path(folder).iterdir() if path.name in known and path.stat().st_size):
        first, *others = path.read_bytes().splitlines(keepends=True)
        record = json.loads(first)
        for field in record:
            for other in OTHERS:
                changed = {name: value for name, value in record.items() if name != field}
                changed |= {} if other is ... else {field: other}
                own = tmp_path / "own"
                shutil.copytree(folder, own)
                (own / path.name).write_bytes(b"".join([json.dumps(changed).encode() + b"\n", *others]))
                _sealed_again(own, path.name)
                for read in reads:
                    fault = ""
                    try:
                        read(str(own), str(tmp_path / "out"))
                    except SetupError as error:
                        fault = str(error)
                    refused += bool(fault)
                    assert "\n" not in fault
                    assert len(fault) < 1000, fault
                    shutil.rmtree(tmp_path / "out", ignore_errors=True)
                    (tmp_path / "out").unlink(missing_ok=True)
                shutil.rmtree(own)
    assert refused


def test_a_value_of_another_type_is_named_with_file_and_line(
    folders: list[tuple[str, list[Read]]], tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(folders[1][0], own)
    lines = (own / "judgements.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = json.dumps({**json.loads(lines[2]), "label": 7}).encode() + b"\n"
    (own / "judgements.jsonl").write_bytes(b"".join(lines))
    _sealed_again(own, "judgements.jsonl")
    with pytest.raises(DataError, match=r"own/judgements\.jsonl, line 3: .*`\$\.label`"):
        report_campaign(str(own))


@pytest.mark.parametrize("line", [b"\n", b"{\n", b"[]\n", b'{"label": NaN}\n', b"\xff\n", b'{"a": "\\ud800"}\n'])
def test_lines_that_are_no_objects_are_named(
    folders: list[tuple[str, list[Read]]], tmp_path: Path, line: bytes
) -> None:
    own = tmp_path / "own"
    shutil.copytree(folders[1][0], own)
    (own / "judgements.jsonl").write_bytes(line)
    _sealed_again(own, "judgements.jsonl")
    with pytest.raises(DataError, match=r"own/judgements\.jsonl, line 1: "):
        report_campaign(str(own))


def test_a_folder_without_the_file_that_is_wanted_is_another_one(
    folders: list[tuple[str, list[Read]]], tmp_path: Path
) -> None:
    crowd, extended = folders[4][0], folders[5]
    with pytest.raises(SetupError, match=r"has no file extended_key\.jsonl"):
        extended[1][0](crowd, str(tmp_path / "out"))
