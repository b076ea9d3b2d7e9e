"""Alignments to the mini-wiki for end-to-end tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.jobs.map_dataset import map_dataset
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.map_dataset import MapOptions
from tests.support.builds import rows, run_job

"""A process needs one of a language, which takes a fifth of a second."""
BROKEN = ("--max-rejects", "0.5")
"""Flags for datasets of few records, some of which are broken on purpose."""


def map_mini(
    output: Path,
    release: Path,
    dataset: str,
    *inputs: Path,
    runner: str = "local",
    workers: int | None = None,
    beam_args: Sequence[str] = (),
    **options: Any,
) -> MadeRelease[Any]:
    """Aligns a dataset to a release, dev unless told otherwise."""
    given = {"split": "dev", "max_rejects": float(BROKEN[1]), **options}
    own = MapOptions(str(release), dataset=dataset, inputs=tuple(map(str, inputs)), output=str(output), **given)
    return run_job(map_dataset, own, runner=runner, workers=workers, beam_args=beam_args)


def evidence(text: str | None, **page: Any) -> dict[str, Any]:
    """Gives an evidence of the project's own format."""
    return {**page, **({} if text is None else {"text": text})}


def record(record_id: str, *sets: list[dict[str, Any]], answer: str = "yes") -> dict[str, Any]:
    """Gives a record of the project's own format with one output for each evidence set."""
    return {
        "id": record_id,
        "input": "?",
        "output": [{"answer": answer, "evidence": answer_set} for answer_set in sets],
    }


def write_records(path: Path, records: Iterable[Any]) -> Path:
    """Writes records, a line each; strings as they are."""
    lines = [json_record if isinstance(json_record, str) else json.dumps(json_record) for json_record in records]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Gives the records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


table = rows
"""The rows of a table of an alignment."""
