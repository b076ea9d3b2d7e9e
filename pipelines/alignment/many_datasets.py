"""Every dataset of a configuration aligned to one release, with one report.

::

    fever/dev/, fever/test/, nq/dev/ …      an alignment each, with its own manifest
    report.json, report.txt                 all of them side by side
    manifest.json                           written last: without it not everything is done

All inputs are looked at before anything runs. A dataset that fails later does not stop the others; the same command
goes on with what is not done, and what is done is kept where it was made from the same inputs with the same options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, join, read_json
from kbsource.release.intact import file_fault
from kbsource.release.layout import EXTRA, MANIFEST, MARKS, STAGING, stored_files
from kbsource.release.output import commit
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.writer import write_lines
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, REPORT, TEXT_REPORT
from mapping.write.overview import Aligned, overview_text, overview_values, page_values
from pipelines.alignment.dataset_part import alignment_facts, input_facts
from pipelines.options.map import MapOptions
from pipelines.progress import Progress


class Planned(NamedTuple):
    """One alignment of many.

    Attributes:
        name: of the dataset.
        options: its ``output`` is ``name/split`` below the folder of all.
        where: where it was asked for, for messages.
    """

    name: str
    options: MapOptions
    where: str

    @property
    def folder(self) -> str:
        """Folder of the alignment, relative to that of all."""
        return f"{self.name}/{self.options.split}"


@dataclass(frozen=True, slots=True)
class AllSummary:
    """What was made.

    Attributes:
        output: folder of all alignments.
        report: as written to ``report.json``.
        kept: folders that were done before.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    kept: tuple[str, ...]
    seconds: float


def failure(failed: Sequence[tuple[Planned, SetupError]], n_planned: int) -> SetupError:
    """Gives what says of all datasets that failed why."""
    kind = DataError if any(isinstance(error, DataError) for _, error in failed) else SetupError
    return kind(
        f"{len(failed)} of {n_planned} could not be aligned; the others are done and will be kept. Mend them "
        "and run the same command again:\n" + "\n".join(f"  {one.folder}: {error}" for one, error in failed)
    )


def check_all(
    planned: Sequence[Planned],
    release: PagesManifest,
    output: str,
    storage: Storage,
    *,
    check: Callable[[MapOptions], None],
    known: dict[str, list[dict[str, Any]]],
    progress: Progress,
) -> list[str]:
    """Gives the folders that are done, after looking at everything that will be read or written.

    Args:
        planned: all alignments.
        release: that they are made to.
        output: folder of all.
        storage: of the folder.
        check: looks at the files of one that is not done.
        known: see ``facts.input_facts``.
        progress: shows what is done.

    Raises:
        SetupError: lists all that is wrong.
    """
    faults = _odd_files(planned, output, storage)
    done = []
    for number, one in enumerate(planned, 1):
        try:
            if storage.exists(join(one.options.output, MANIFEST)):
                _check_done(one.options, release, storage, known)
                progress.note(f"{one.folder} ({number} of {len(planned)}): done before, kept")
                done.append(one.folder)
            else:
                check(one.options)
        except SetupError as error:
            faults.append(f"{one.where}: {error}")
    if storage.exists(join(output, MANIFEST)) and len(done) < len(planned) and not faults:
        faults.append(f"{output} is finished and has fewer datasets; choose another folder.")
    if faults:
        raise SetupError("nothing was run, because of:\n" + "\n".join(f"  {fault}" for fault in faults))
    return done


def _odd_files(planned: Sequence[Planned], output: str, storage: Storage) -> list[str]:
    """Gives a fault for a file in the folder of all that belongs to none of the alignments."""
    own = (*ALIGNMENTS.owned, *EXTRA, MANIFEST, *MARKS)
    folders = (f"{STAGING}/", *(f"{part.folder}/" for part in planned))
    odd = [file for file in stored_files(output, storage) if file not in own and not file.startswith(folders)]
    return [f"{output} holds {odd[0]}, which is no part of these datasets; choose another folder."] if odd else []


def _check_done(
    options: MapOptions, release: PagesManifest, storage: Storage, known: dict[str, list[dict[str, Any]]]
) -> None:
    """Raises SetupError for a finished alignment that is not what would be made now, or is not whole."""
    manifest = ALIGNMENT.read(options.output, storage)
    facts = orjson.loads(orjson.dumps(alignment_facts(options, release, input_facts(options, known))))
    if differing := [name for name in facts if manifest.facts.get(name) != facts[name]]:
        raise SetupError(
            f"{options.output} is finished, and was made with other {', '.join(differing)}; remove it to make it again."
        )
    for entry in manifest.entries():
        if file_fault(options.output, entry, storage, hashes=False) is not None:
            path = join(options.output, entry.file)
            raise SetupError(f"{path} is not as it was written; remove {options.output} to make it again.")


def write_reports(planned: Sequence[Planned], release: PagesManifest, output: str, storage: Storage) -> dict[str, Any]:
    """Writes the report on all alignments and the manifest that ends the job, and gives the report."""
    aligned, manifests = [], []
    for part in planned:
        manifest = ALIGNMENT.read(part.options.output, storage)
        manifests.append({"folder": part.folder, "manifest_sha256": manifest.sha256})
        names = tuple(entry.file for entry in manifest.files if entry.file.endswith("-kilt.jsonl"))
        aligned.append(Aligned(part.name, part.folder, read_json(storage, join(part.options.output, REPORT)), names))
    report = overview_values(
        aligned, page_values(aligned, output=output, n_pages=release.n_rows("pages"), storage=storage)
    )
    contents = {
        REPORT: orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        TEXT_REPORT: f"{overview_text(report)}\n".encode(),
    }
    written = (write_lines([content], name, output=output, storage=storage) for name, content in contents.items())
    files = [replace(entry, rows=None) for entry in written]
    facts = {"release": release.facts(), "alignments": manifests}
    commit(ALIGNMENTS, ALIGNMENTS.listing(files, facts), output, storage, kept=[part.folder for part in planned])
    return report
