"""``kbsource verify`` finds each way to tamper with a release, and nothing besides."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kbsource.release.verify import VerifyReport, verify
from mapping.kinds import KINDS
from tests.support.tampered.edits import Edit, Released, Tampered, numbered
from tests.support.tampered.table import GROUPS

pytestmark = pytest.mark.usefixtures("module_in_this_process")

_KINDS = [replace(kind, invariants=numbered(kind)) for kind in KINDS]
TESTED_ELSEWHERE = {
    "kbsource-release-5": "its pages are tampered with field by field, in test_release/test_verify.py",
    "kbsource-alignments-1": "its invariants are those of the alignments in its folders",
    "kbsource-tfidf-1": "made from a corpus with its index, in test_retrieval/test_tfidf.py",
    "kbsource-vectors-3": "needs an encoder, in test_build/test_vectors.py",
    "kbsource-amber-2": "made by its job from a world of names, in test_amber/test_amber.py",
    "kbsource-facts-2": "made by its job from two builds of the mini-wiki, in test_build/test_facts.py",
    "kbsource-entity-linking-1": "made by its job from a build of the mini-wiki, in test_build/test_linking_data.py",
    "kbsource-benchmark-1": "needs a search engine, in test_commands/test_benchmark.py",
    "kbsource-training-data-1": "needs a search engine, in test_commands/test_training_data.py",
}
"""Why the tests of a kind tamper with its releases themselves, by format: each release takes seconds to make, and the
tests of its job have it already.
"""


class _Untampered:
    """The releases of the table, each made when a case first needs it."""

    def __init__(self, folder: Path, release: Path) -> None:
        self._folder, self._release = folder, release
        self._made: dict[str, Released] = {}

    def __getitem__(self, name: str) -> Released:
        if name not in self._made:
            (self._folder / name).mkdir()
            self._made[name] = GROUPS[name].make(self._folder / name, self._release)
        return self._made[name]


@pytest.fixture(scope="module")
def untampered(tmp_path_factory: pytest.TempPathFactory, release: Path) -> _Untampered:
    return _Untampered(tmp_path_factory.mktemp("untampered"), release)


def _verify(folder: Path, sources: dict[str, Path]) -> VerifyReport:
    return verify(str(folder), _KINDS, sources={name: str(path) for name, path in sources.items()})


def _examples(folder: Path, sources: dict[str, Path]) -> dict[tuple[str, str], str]:
    return {(finding.file, finding.rule): finding.example for finding in _verify(folder, sources).findings}


@pytest.mark.parametrize("name", list(GROUPS))
def test_untampered_releases_have_no_findings(untampered: _Untampered, name: str) -> None:
    folder, sources = untampered[name]
    assert _verify(folder, {}).findings == ()
    assert _verify(folder, sources).findings == ()


_CASES = [pytest.param(name, case, id=f"{name}: {case.what}") for name, group in GROUPS.items() for case in group.rows]


@pytest.mark.parametrize(("name", "case"), _CASES)
def test_tampering_has_exactly_its_findings(untampered: _Untampered, tmp_path: Path, name: str, case: Tampered) -> None:
    original, sources = untampered[name]
    folder = shutil.copytree(original, tmp_path / "release")
    edits = (case.edit,) if isinstance(case.edit, Edit) else case.edit
    for edit in edits:
        edit.apply(folder)
    key = case.file or edits[0].file, case.invariant
    found = _examples(folder, sources if case.is_compared else {})
    assert found.keys() == {key, *case.also}
    assert case.text in found[key]
    assert not case.is_compared or case.text not in _examples(folder, {}).get(key, "")


def test_each_invariant_is_broken_by_a_case() -> None:
    broken = {(group.kind.format, case.invariant) for group in GROUPS.values() for case in group.rows}
    formats = {kind.format for kind in KINDS if kind.invariants}
    assert formats > TESTED_ELSEWHERE.keys()
    assert not TESTED_ELSEWHERE.keys() & {group.kind.format for group in GROUPS.values()}
    wanted = {
        (kind.format, invariant.slug)
        for kind in _KINDS
        for invariant in kind.invariants
        if kind.format not in TESTED_ELSEWHERE
    }
    assert wanted - broken == set()
