"""What a guarded process does for a release of Wikidata: one range of the dump becomes files of the tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from kbsource.files import Storage, base_name, join
from kbsource.staging import read_json, write_json
from kbsource.wikidata.entity import EntityReader
from kbsource.wikidata.lines import LineRange, read_lines
from kbsource.wikidata.parts import write_part
from pipelines.storage import storage_for

ENTITIES = "entities"
RUN_TASK = f"{__name__}:run_task"
"""What does a task, for ``kbsource.guard``."""


@dataclass(frozen=True, slots=True)
class WikidataJob:
    """What all tasks share.

    Attributes:
        output: folder of the release.
        ranges: of the dump.
        languages, sites, qualifiers: as ``EntityReader`` takes them.
    """

    output: str
    ranges: tuple[LineRange, ...]
    languages: tuple[str, ...]
    sites: tuple[str, ...] | None
    qualifiers: tuple[str, ...] | None

    def write(self, staging: str, storage: Storage) -> None:
        """Writes the description into the staging folder."""
        write_json(storage, join(staging, "job.json"), asdict(self))

    @classmethod
    def read(cls, staging: str, storage: Storage) -> WikidataJob:
        """Gives back what ``write`` wrote."""
        value = read_json(storage, join(staging, "job.json"))
        lists = {
            name: None if value[name] is None else tuple(value[name]) for name in ("languages", "sites", "qualifiers")
        }
        return cls(**{**value, **lists, "ranges": tuple(LineRange(**one) for one in value["ranges"])})

    def reader(self) -> EntityReader:
        """Gives what reads the entities as asked."""
        return EntityReader(
            languages=self.languages,
            sites=None if self.sites is None else frozenset(self.sites),
            qualifiers=None if self.qualifiers is None else frozenset(self.qualifiers),
        )


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does one task; all that comes of it is in files.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    staging = task["staging"]
    job = _job(staging)
    line_range = job.ranges[task["number"]]
    lines = read_lines(
        line_range,
        storage_for(line_range.path),
        on_progress=lambda n_bytes: beat.done(pages=0, n_bytes=n_bytes),
    )
    write_part(
        lines,
        storage_for(job.output, staging),
        output=job.output,
        staging=staging,
        part=line_range.index,
        file=base_name(line_range.path),
        reader=job.reader(),
        skipped=frozenset(task["skipped"]),
        verdicts={int(ordinal): verdict for ordinal, verdict in task.get("verdicts", {}).items()},
        beat=beat,
    )


@lru_cache(maxsize=1)
def _job(staging: str) -> WikidataJob:
    return WikidataJob.read(staging, storage_for(staging))
