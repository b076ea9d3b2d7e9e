"""A local build imports nothing that it does not use, and Beam in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.mini_wiki import MAX_REJECTS, MULTISTREAM

# Packages that Beam, pyarrow or an extra of kbsource imports, or could, and that a build has no use for.
UNUSED = {"boto3", "botocore", "google.cloud.storage", "hdfs", "pandas", "pymongo", "requests", "spacy", "torch"}
_BUILD = """
import json, sys
from pipelines.cli import main

code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules), "IPython" in sys.modules and sys.modules["IPython"] is not None]))
"""


def test_a_local_build_imports_neither_clouds_nor_pandas_nor_a_notebook(tmp_path: Path) -> None:
    command = ["build", str(MULTISTREAM), "--output", str(tmp_path / "release"), "--max-rejects", str(MAX_REJECTS)]
    given = [sys.executable, "-c", _BUILD, *command, "--runner", "local"]
    done = subprocess.run(given, check=True, stdout=subprocess.PIPE, text=True)
    code, modules, is_notebook = json.loads(done.stdout.splitlines()[-1])

    assert code == 0
    assert "apache_beam" in modules
    assert not UNUSED & {*modules}
    assert not is_notebook


_NOTE_START = """
import os, sys
with open(os.path.join(os.environ["STARTS"], str(os.getpid())), "w") as file:
    file.write(" ".join(sys.orig_argv))
"""


def test_workers_are_forks_of_the_command(tmp_path: Path) -> None:
    site, starts = tmp_path / "site", tmp_path / "starts"
    site.mkdir()
    starts.mkdir()
    (site / "sitecustomize.py").write_text(_NOTE_START)
    command = ["build", str(MULTISTREAM), "--output", str(tmp_path / "release"), "--max-rejects", str(MAX_REJECTS)]
    given = [sys.executable, "-m", "pipelines.cli", *command, "--runner", "local-multi", "--workers", "2"]
    subprocess.run(given, check=True, env={**os.environ, "PYTHONPATH": str(site), "STARTS": str(starts)})

    commands = [path.read_text() for path in starts.iterdir()]
    parsers = [command for command in commands if "kbsource.runtime.guarded" in command]
    assert len(parsers) >= 1
    assert [command for command in commands if command not in parsers] == [" ".join(given)]


_FORK = """
import json
from pipelines.runners.fork_server import fork_early, fork_server
from pipelines.runners.presets import import_local_beam

import_local_beam()
fork_early()
server = fork_server()
seen = [server.run({}), server.is_gone]  # the worker is not told where its driver is
server._process.kill()
seen += [server.run({}), server.is_gone, fork_server() is server]
print(json.dumps(seen))
"""


def test_a_forked_server_tells_how_a_worker_ended_and_another_one_takes_its_place() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], check=True, stdout=subprocess.PIPE)

    assert json.loads(done.stdout) == [1, False, -9, True, False]
