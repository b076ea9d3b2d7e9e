"""What the guarded processes of a release of Wikidata need to know: ranges and hashes of the dump, and what is wanted.

Without Beam, whose import would cost each of them two seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from kbsource.dump.digests import CheckedStorage, HashedFile, read_hashes, write_hashes
from kbsource.dump.lines import LineRange
from kbsource.files import Storage, atomic_write, join
from kbsource.wikidata.entity import EntityReader
from kbsource.wikidata.parts import PartFiles
from pipelines.stores.storage import storage_for


@dataclass(frozen=True, slots=True)
class MakeFiles:
    """Gives what reads ranges into files, for ``GuardedMap``.

    Attributes:
        staging: folder with what ``write_plan`` wrote.
        reader: reads the entities.
    """

    staging: str
    reader: EntityReader

    def __call__(self) -> PartFiles:
        own = storage_for(self.staging)
        with own.open_read(_plan_path(self.staging)) as file:
            ranges = [LineRange(**one) for one in orjson.loads(file.read())]
        hashed = read_hashes(_hashes_path(self.staging), own)
        source = CheckedStorage(storage_for(*hashed), hashed)
        return PartFiles(ranges, self.reader, source=source, storage=own, staging=self.staging)


def write_plan(ranges: Sequence[LineRange], hashed: Mapping[str, HashedFile], staging: str, storage: Storage) -> None:
    """Writes the ranges of the dump, and the hashes of its files by path, into the staging folder."""
    with atomic_write(storage, _plan_path(staging)) as file:
        file.write(orjson.dumps(ranges))
    write_hashes(hashed, _hashes_path(staging), storage)


def _plan_path(staging: str) -> str:
    return join(staging, "plan.json")


def _hashes_path(staging: str) -> str:
    return join(staging, "hashes.json")
