"""Search by the vectors of published sentence encoders, which ``make models`` fetches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pipelines.cli import main
from tests.support.builds import contents
from tests.support.demo_datasets import GOLDEN
from tests.support.encoder_kit import ENCODERS
from tests.support.passages import cut_release
from tests.support.tiny_encoder import encode_corpus
from tests.support.verified import verified

MODELS = os.environ.get("KBSOURCE_MODELS")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(MODELS is None, reason="make retrieval-test")]
LEAST = {"all-MiniLM-L6-v2": 0.70, "bge-small-en-v1.5": 0.69}
"""Page R-precision over the demo's questions, a question below what was seen."""


def _questions() -> Iterator[dict[str, Any]]:
    """The demo's questions with a gold page, without mentions to link."""
    for path in sorted(GOLDEN.rglob("*-kilt.jsonl")):
        if "without_answers" in path.name or "_id-" in path.name or path.name.startswith(("wned", "aida", "cweb")):
            continue
        for number, line in enumerate(path.read_bytes().splitlines()):
            record = orjson.loads(line)
            if any(output.get("provenance") for output in record["output"]):
                yield {**record, "id": f"{path.stem}-{number}"}


def _precision(record: dict[str, Any], found: dict[str, Any]) -> float:
    ranked = [span["wikipedia_id"] for span in found["output"][0]["provenance"]]
    gold = ({span["wikipedia_id"] for span in output.get("provenance", ())} for output in record["output"])
    return max(len(pages.intersection(ranked[: len(pages)])) / len(pages) for pages in gold if pages)


@pytest.mark.parametrize("name", [span.name for span in ENCODERS])
def test_questions_are_answered_from_any_number_of_workers(tmp_path: Path, release: Path, name: str) -> None:
    corpus, model = tmp_path / "corpus", Path(MODELS or "") / name
    cut_release(corpus, release)
    encode_corpus(corpus, model, tmp_path / "corpus-vectors")
    encode_corpus(corpus, model, tmp_path / "two", workers=2)
    assert contents(tmp_path / "corpus-vectors") == contents(tmp_path / "two")
    assert verified(tmp_path / "two", passages=corpus).is_sound

    questions = list(_questions())
    (tmp_path / "questions.jsonl").write_bytes(b"".join(orjson.dumps(question) + b"\n" for question in questions))
    flags = ["search", str(corpus), "--model", str(model), "--level", "page"]
    means = {}
    for system in ("dense", "bm25,dense"):
        run = tmp_path / f"{system}.jsonl"
        given = ["--queries", str(tmp_path / "questions.jsonl"), "--system", system, "--output", str(run)]
        assert main([*flags, *given]) == 0
        found = [orjson.loads(line) for line in run.read_bytes().splitlines()]
        means[system] = sum(map(_precision, questions, found)) / len(questions)
    assert len(questions) == 86
    assert means["dense"] >= LEAST[name]
    assert means["bm25,dense"] >= means["dense"]
