"""Datasets read beside golden files, and records that no reader takes."""

from __future__ import annotations

import bz2
import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kbsource.errors import SetupError
from mapping.sources import all_sources
from tests.support.dataset_sources import DATA, read_source
from tests.support.readings import CASES, GOLDEN, shown
from tests.support.real_data import ROOT

REFERENCES = {
    "fever": DATA / "fever" / "wiki-pages",
    "hotpotqa": DATA / "hotpotqa" / "abstracts",
    "kilt": DATA / "kilt" / "knowledgesource.jsonl",
}
FORMS = {"hotpotqa": "[{}]", "wow": "[{}]", "triviaqa": '{{"Data": [{}], "Domain": "Wikipedia"}}'}
BAD: dict[str, dict[str, Any]] = yaml.safe_load((GOLDEN / "bad_records.yaml").read_text("utf-8"))
WRONG: dict[str, list[dict[str, Any]]] = yaml.safe_load((GOLDEN / "wrong_inputs.yaml").read_text("utf-8"))
EACH_WRONG = [(dataset, case) for dataset, cases in WRONG.items() for case in cases]
EACH_BAD = [(dataset, case) for dataset, cases in BAD.items() for case in cases["bad"]]


@pytest.mark.parametrize("case", CASES)
def test_readings_are_those_of_the_golden_files(case: str) -> None:
    assert shown(case) == (GOLDEN / f"{case}.jsonl").read_text("utf-8")


@pytest.mark.parametrize("case", [case for case, given in CASES.items() if "options" not in given])
@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_packed_inputs_are_read_as_they_are(
    tmp_path: Path, pack: Callable[[bytes], bytes], ending: str, case: str
) -> None:
    def packed(path: Path) -> Path:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                copy = tmp_path / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.with_name(copy.name + ending).write_bytes(pack(file.read_bytes()))
        if (path.parent / "RawText").is_dir():
            shutil.copytree(path.parent / "RawText", copy.parent / "RawText")
        whole = tmp_path / path.relative_to(ROOT)
        return whole if path.is_dir() else whole.with_name(whole.name + ending)

    assert shown(case, packed).replace(ending, "") == (GOLDEN / f"{case}.jsonl").read_text("utf-8")


@pytest.mark.parametrize(("dataset", "case"), EACH_BAD, ids=[f"{dataset}: {case['why']}" for dataset, case in EACH_BAD])
def test_a_bad_record_is_rejected_with_its_place_and_the_rest_goes_on(
    tmp_path: Path, dataset: str, case: dict[str, str]
) -> None:
    first, last = BAD[dataset]["good"]
    written = [first, case["record"], last]
    text = FORMS[dataset].format(", ".join(written)) if dataset in FORMS else "\n".join(written) + "\n"
    (tmp_path / "dev.json").write_text(text, "utf-8")
    references = [REFERENCES[dataset]] if dataset in REFERENCES else []
    reading = read_source(dataset, tmp_path / "dev.json", *references)
    assert [example.line for example in reading.examples] == [1, 3]
    assert reading.reasons == [("source", case["key"], case["reason"])]
    (rejected,) = reading.rejected
    assert (rejected.file, rejected.detail[:8]) == ("dev.json", "line 2: ")
    assert text.encode()[rejected.offset :].startswith(case["record"].encode())


@pytest.mark.parametrize(
    ("dataset", "case"), EACH_WRONG, ids=[f"{dataset}: {case['why']}" for dataset, case in EACH_WRONG]
)
def test_the_wrong_input_altogether_stops_at_once(tmp_path: Path, dataset: str, case: dict[str, Any]) -> None:
    for name, text in case.get("written", {}).items():
        (tmp_path / name).write_text(text, "utf-8")
    roots = {"data": DATA, "demo": ROOT / "kbsource" / "demo" / "datasets", "written": tmp_path}
    records, references = (
        [roots[path.partition("/")[0]] / path.partition("/")[2] for path in case.get(field, ())]
        for field in ("records", "references")
    )
    options = all_sources()[dataset].options_type(**case.get("options", {}))
    with pytest.raises(SetupError, match=re.escape(case["says"])):
        read_source(dataset, records, *references, split=case.get("split", "dev"), options=options)
