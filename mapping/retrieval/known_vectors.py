"""Vectors taken over from those of an earlier corpus: of passages with the title and text that they had there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import check_hashes, opened_table
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE

PASSAGES = "passages"
_KEY = ("page_id", "number")
_GROUPS_KEPT = 8


def check_known(vectors: str, passages: str, facts: Mapping[str, Any]) -> None:
    """Finds out whether vectors may be taken over.

    Args:
        vectors: release that they are taken from.
        passages: corpus that these are of.
        facts: of the vectors to be made, as for their manifest.

    Raises:
        SetupError: the vectors may be others than the encoder would make, or are of another corpus.
    """
    known, corpus = PASSAGE_VECTORS.read(vectors), PASSAGES_CORPUS.read(passages)
    if known.facts["passages"]["manifest_sha256"] != corpus.sha256:
        raise SetupError(f"{vectors} are vectors of other passages than {passages}; name theirs with --base-passages.")
    if facts["computed"]["texts_at_once"] != 1:
        raise SetupError(
            "A GPU computes passages together, so that the last digits of a vector depend on its neighbours; leave out "
            "--base, or run it with --device cpu."
        )
    for name in ("encoder", "precision", "computed"):
        if (old := known.facts.get(name)) != facts[name]:
            raise SetupError(
                f"{vectors} were made with another {name} ({old!r}, here {facts[name]!r}), so their numbers may be "
                "others than this run would make; leave out --base."
            )
    for folder, manifest, table in ((vectors, known, TABLE), (passages, corpus, PASSAGES)):
        check_hashes(folder, manifest.tables[table])


@lru_cache(maxsize=1)
def known_vectors(vectors: str, passages: str) -> KnownVectors:
    """The vectors, opened once in a process."""
    return KnownVectors(vectors, passages)


class KnownVectors:
    """Looks up vectors. Memory: ``_GROUPS_KEPT`` row groups.

    Args:
        vectors: release of vectors.
        passages: corpus that they are of.
    """

    def __init__(self, vectors: str, passages: str) -> None:
        manifest = PASSAGE_VECTORS.read(vectors)
        self.has_cut = manifest.facts["counts"]["cut"] > 0  #: some passages there were longer than the encoder takes
        self._vectors = _Rows(vectors, manifest, TABLE, ("vector",))
        self._passages = _Rows(passages, PASSAGES_CORPUS.read(passages), PASSAGES, ("title", "text"))

    def find(self, page_ids: pa.Array, pairs: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The vectors of passages, of these pages and with these titles and texts, that have one; else None."""
        if not pairs:
            return []
        vectors = {key: vector for key, (vector,) in self._vectors.of(page_ids)}
        known = {pair: vectors[key] for key, pair in self._passages.of(page_ids)}
        return [known.get(pair) for pair in pairs]


class _Rows:
    """Rows of a table by page."""

    def __init__(self, folder: str, manifest: ListingManifest, table: str, columns: Sequence[str]) -> None:
        self._paths = [join(folder, entry.file) for entry in manifest.tables[table]]
        self._columns = [*_KEY, *columns]
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self._group = lru_cache(maxsize=_GROUPS_KEPT)(self._read)

    def of(self, page_ids: pa.Array) -> Iterator[tuple[tuple[int, int], tuple[Any, ...]]]:
        """Page and number, and the other columns, of the rows of pages. Row groups without them are not read."""
        least, most = (one.as_py() for one in pc.min_max(page_ids).values())
        for path in self._paths:
            for number, (low, high) in enumerate(self._ranges_of(path)):
                if low <= most and least <= high:
                    group = self._group(path, number)
                    rows = group.filter(pc.is_in(group["page_id"], pc.unique(page_ids)))
                    for page_id, place, *values in zip(*(one.to_pylist() for one in rows.columns), strict=True):
                        yield (page_id, place), tuple(values)

    def _ranges_of(self, path: str) -> list[tuple[int, int]]:
        if path not in self._ranges:
            with opened_table(path) as file:
                place = [leaf.path for leaf in file.schema].index("page_id")
                groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
                statistics = [group.column(place).statistics for group in groups]
            self._ranges[path] = [(one.min, one.max) for one in statistics]
        return self._ranges[path]

    def _read(self, path: str, number: int) -> pa.Table:
        with opened_table(path) as file:
            return file.read_row_group(number, columns=self._columns, use_threads=False).select(self._columns)
