"""locked.txt: the versions of constraints.txt with the hashes of their files, and the bill of materials of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

from tests.support.real_data import ROOT

LOCKED = (ROOT / "locked.txt").read_text("utf-8")
EXTRAS = ("hadoop", "nli-onnx", "serve")
"""Extras that ``make lock`` names."""


def pins(text: str) -> dict[str, str]:
    return {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)
    }


def test_the_locked_versions_are_those_that_the_tests_run_with() -> None:
    locked, tested = pins(LOCKED), pins((ROOT / "constraints.txt").read_text("utf-8"))

    assert len(locked) > 100
    assert {name: version for name, version in locked.items() if tested.get(name, version) != version} == {}
    untested = locked.keys() - tested.keys()
    assert {name for name in untested if not re.search(rf"^{name}==\S+ ;", LOCKED, re.M)} == set()  # of other systems


def test_everything_has_a_hash_and_no_address() -> None:
    parts = re.split(r"^(?=[A-Za-z0-9])", LOCKED, flags=re.MULTILINE)[1:]

    assert [part for part in parts if not re.search(r"--hash=sha256:[0-9a-f]{64}", part)] == []
    assert "://" not in LOCKED
    assert "index-url" not in LOCKED


def test_what_the_extras_need_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed, left = set[str](), [*project["dependencies"], *(f"kbsource[{extra}]" for extra in EXTRAS)]
    while left:
        name, _, extras = re.match(r"([\w.-]+)(\[([\w,-]+)\])?", left.pop()).groups()  # type: ignore[union-attr]
        if name == "kbsource":
            left += [
                requirement for extra in extras.split(",") for requirement in project["optional-dependencies"][extra]
            ]
        else:
            needed.add(re.sub(r"[-_.]+", "-", name).lower())

    assert needed - pins(LOCKED).keys() == set()
    (line,) = (line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "uv pip compile" in line)
    assert tuple(re.findall(r"--extra (\S+)", (ROOT / "Makefile").read_text("utf-8"))) == EXTRAS, line


def test_the_bill_of_materials_names_what_is_locked_and_is_the_same_every_time() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "sbom.py")]
    first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    bill = json.loads(first)

    assert first == second
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {component["name"]: component["version"] for component in bill["components"]} == pins(LOCKED)
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(set(references)) == len(references)
    assert bill["dependencies"][0]["dependsOn"] == references
    assert all(component["hashes"] for component in bill["components"])
