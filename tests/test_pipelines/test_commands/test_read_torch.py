"""``kbsource read`` by a model of every kind that reads: the same bytes by one worker and by two."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from mapping.retrieval.system_options import ReaderOptions
from pipelines.cli import main
from pipelines.jobs.read import write_predictions
from pipelines.options.read import ReadOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support import tiny_readers
from tests.support.alignments import read_lines, write_records

CLASSES = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
PASSAGES = ("Ada was born in Arlin.", "Bruno lives in Corvo. Nobody knows why.", "Ada lives. Bruno was born in Corvo.")
QUESTIONS = [
    {"id": f"q{number}", "input": f"{'Where was Ada born?' if number % 2 else 'Who lives in Corvo?'} {number}"}
    for number in range(20)
]
FOUND = [
    {
        "id": f"q{number}",
        "output": [
            {
                "provenance": [
                    {
                        "wikipedia_id": str(place),
                        "passage_id": f"{place}__{number}",
                        "title": "T",
                        "text": PASSAGES[(number + place) % 3],
                        "score": str(3 - place),
                    }
                    for place in (0, 1, 2)[: number % 4]
                ]
            }
        ],
    }
    for number in range(20)
]


def _model(name: str, folder: Path) -> Path:
    kind, _, head = name.partition(" ")
    if head:
        labels = CLASSES if head == "SequenceClassification" else ("a", "b")
        return getattr(tiny_readers, kind)(folder, head, labels=labels)
    return tiny_readers.rag(folder, kind[4:]) if kind.startswith("rag-") else getattr(tiny_readers, kind)(folder)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("bert QuestionAnswering", None),
        ("bert SequenceClassification", None),
        ("bart", None),
        ("bart", "closed"),
        ("bart", "fid"),
        ("t5", "best"),
        ("t5", "pig"),
        ("llama", "pig"),
        ("rag-Sequence", None),
        ("rag-Token", None),
    ],
)
def test_one_worker_and_two_write_the_same(tmp_path: Path, name: str, form: Any) -> None:
    model = _model(name, tmp_path / "model")
    questions, found = (str(write_records(tmp_path / f"{n}.jsonl", x)) for n, x in (("q", QUESTIONS), ("f", FOUND)))
    reader = ReaderOptions(str(model), device="cpu", new_tokens=4)
    for workers in (1, 2):
        output = str(tmp_path / f"{workers}.jsonl")
        options = ReadOptions(questions, output=output, reader=reader, form=form, retrieved=found)
        flags = beam_flags("local", workers=workers, beam_args=())
        made = write_predictions(options, flags=flags, progress=Progress(io.StringIO()))
        assert made == (20, 0 if form == "closed" else 5, 0, [])
    lines = read_lines(tmp_path / "1.jsonl")
    assert [line["id"] for line in lines] == [question["id"] for question in QUESTIONS]
    answers = {line["output"][0]["answer"] for line in lines}
    assert answers <= {"SUPPORTS", "REFUTES"} if "Classification" in name else len(answers) > 1
    n_passages = [0 if form == "closed" else number % 4 for number in range(20)]
    assert [len(line["output"][0]["provenance"]) for line in lines] == n_passages
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_a_model_that_cannot_read_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_readers.bert(tmp_path / "model", "TokenClassification")
    questions = str(write_records(tmp_path / "q.jsonl", QUESTIONS))
    assert main(["read", questions, "--model", str(model), "--output", str(tmp_path / "out.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "is a BertForTokenClassification; --form read needs a model that writes text, seq2seq or causal." in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.jsonl").exists()
    (model / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertForX"]})[:-5])
    assert main(["read", questions, "--model", str(model), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert "config.json" in capsys.readouterr().err
