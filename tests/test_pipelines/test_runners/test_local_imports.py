"""A local build imports nothing that it does not use."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.runners.presets import KnownSignatures
from tests.support.mini_wiki import MAX_REJECTS, MULTISTREAM

# Packages that Beam, pyarrow or an extra of kbsource imports, or could, and that a build has no use for.
UNUSED = {"boto3", "botocore", "google.cloud.storage", "hdfs", "pandas", "pymongo", "requests", "spacy", "torch"}
# Nor for the kinds of release that it does not make.
UNUSED |= {"mapping.kinds", "mapping.write.kind", "mapping.qampari.kind", "mapping.passages.corpus"}
# Nor for functions of Beam that are not called.
UNUSED |= {"absl", "beartype", "google.api_core", "httplib2"}
_BUILD = """
import json, sys
from pipelines.cli import main

code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules), "IPython" in sys.modules and sys.modules["IPython"] is not None]))
"""


@pytest.mark.slow  # a build in a new interpreter
def test_a_local_build_imports_neither_clouds_nor_pandas_nor_a_notebook(tmp_path: Path) -> None:
    command = ["build", str(MULTISTREAM), "--output", str(tmp_path / "release"), "--max-rejects", str(MAX_REJECTS)]
    given = [sys.executable, "-c", _BUILD, *command, "--runner", "local"]
    done = subprocess.run(given, check=True, stdout=subprocess.PIPE, text=True)
    code, modules, is_notebook = json.loads(done.stdout.splitlines()[-1])

    assert code == 0
    assert "apache_beam" in modules
    assert not UNUSED & {*modules}
    assert not is_notebook


_STOOD_IN = """
import json, sys, typing
from pipelines.runners.presets import import_local_beam

import_local_beam()
from apache_beam.runners.portability import stager
from apache_beam.typehints.typehints import is_consistent_with

at_first = [name in sys.modules for name in ("beartype", "httplib2")]
pairs = [(int, object), (object, int), (typing.Callable[[int], str], typing.Callable), (..., int)]
answers = [is_consistent_with(*pair) for pair in pairs]
client = type(stager.get_new_http()).__name__
print(json.dumps([at_first, answers, client, [name in sys.modules for name in ("beartype", "httplib2")]]))
"""


def test_what_beam_rarely_calls_is_imported_when_it_is_called() -> None:
    done = subprocess.run([sys.executable, "-c", _STOOD_IN], check=True, stdout=subprocess.PIPE, text=True)

    assert json.loads(done.stdout) == [[False, False], [True, False, True, False], "Http", [True, True]]


class _Step:
    def process(self, element: int, side: int = 1) -> None: ...

    def other(self) -> None: ...


def test_a_method_is_inspected_once_whatever_object_it_is_of() -> None:
    inspected: list[Any] = []

    def look(function: Any) -> inspect.Signature:
        inspected.append(function)
        return inspect.signature(function)

    known = KnownSignatures(look)
    for _ in range(3):
        step = _Step()
        assert known(step.process) == inspect.signature(step.process)
        assert known(step.other) == inspect.signature(step.other)
        assert known(_Step.process) == inspect.signature(_Step.process)  # with ``self``

    assert len(inspected) == 2 + 3
