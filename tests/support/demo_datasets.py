"""The demo's datasets aligned to the mini-wiki; ``python -m tests.support.demo_datasets`` renews their golden files."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from kbsource.files import Folder
from kbsource.runtime.beat import Beat
from mapping.write.kilt import file_name
from pipelines.alignment.writing import file_stem
from pipelines.commands.map import read_alignments
from pipelines.jobs.map_dataset import map_all
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.map_dataset import PlannedAlignment
from pipelines.primitives.guarded_chunk import do_chunk
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.builds import build_mini
from tests.support.mini_wiki import FOLDER
from tests.support.real_data import ROOT
from tests.support.tokenisers import tokeniser

CONFIG = FOLDER / "datasets.yaml"
GOLDEN = ROOT / "tests" / "golden" / "datasets"
TOKENISING = (
    "mapping.passages.cut",
    "mapping.search.page_search",
    "mapping.write.validate",
    "pipelines.alignment.search",
    "pipelines.amber.sets",
    "pipelines.facts",
    "pipelines.jobs.age",
)
"""Modules that make a tokeniser for each job, chunk or release, of which a process needs one of a language."""


class _NoGuard:
    """Does chunks where it is."""

    def __init__(self, verdicts: Mapping[int, tuple[int, str]], *_: object, **__: object) -> None:
        self._verdicts = verdicts

    def run(self, task: Mapping[str, Any]) -> None:
        do_chunk({**json.loads(json.dumps(task)), "verdicts": self._verdicts}, Beat.unshared())

    def close(self) -> None:
        """Has nothing to close."""


@contextmanager
def chunks_in_this_process(verdicts: Mapping[int, tuple[int, str]] | None = None) -> Iterator[None]:
    """Does chunks without a process of their own, whose start takes longer than such small ones do.

    Args:
        verdicts: over rows of every chunk, see ``kbsource.runtime.chunks.Work``; none without.
    """
    with ExitStack() as patched:
        patched.enter_context(mock.patch("pipelines.primitives.guarded_map.Guard", partial(_NoGuard, verdicts or {})))
        for module in TOKENISING:
            patched.enter_context(mock.patch(f"{module}.Tokeniser", tokeniser))
        yield


def planned_demo(release: Path, output: Path, *, config: Path = CONFIG) -> list[PlannedAlignment]:
    """Gives what a configuration plans."""
    return read_alignments(str(config), str(release), str(output))


def map_demo(release: Path, output: Path, *, config: Path = CONFIG, log: io.StringIO | None = None) -> MadeRelease[Any]:
    """Aligns all that a configuration names."""
    flags = beam_flags("local", workers=None, beam_args=())
    with chunks_in_this_process():
        return map_all(
            planned_demo(release, output, config=config),
            kb=str(release),
            output=str(output),
            flags=flags,
            progress=Progress(log or io.StringIO()),
        )


def kilt_file(output: Path, planned: PlannedAlignment) -> Path:
    """Gives the KILT file of an alignment."""
    return output / planned.folder / file_name(file_stem(planned.options), planned.options.split)


def record_files(output: Path, planned: list[PlannedAlignment]) -> dict[str, Path]:
    """Gives the files of records that were written, by the golden file that each must equal."""
    folders = [(plan.name, output / plan.folder) for plan in planned]
    return {f"{name}/{path.name}": path for name, folder in folders for path in sorted(folder.glob("*-kilt.jsonl"))}


def main() -> None:
    """Writes the golden files anew."""
    with tempfile.TemporaryDirectory() as folder:
        release = Path(build_mini(Path(folder) / "release").output)
        output = Path(folder) / "aligned"
        map_demo(release, output)
        Folder.of(str(GOLDEN)).delete()
        for name, path in record_files(output, planned_demo(release, output)).items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, GOLDEN / name)


if __name__ == "__main__":
    main()
