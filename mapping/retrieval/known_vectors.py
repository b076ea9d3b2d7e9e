"""Vectors taken over from those of an earlier corpus: of passages with the title and text that they had there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.release.reader import check_hashes
from kbsource.release.sql import add_release, connected
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE

PASSAGES = "passages"
_MEMORY_MB = 500


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
    """Looks up vectors. Memory: a few row groups, and ``_MEMORY_MB`` at most.

    Args:
        vectors: release of vectors.
        passages: corpus that they are of.
    """

    def __init__(self, vectors: str, passages: str) -> None:
        #: some passages there were longer than the encoder takes
        self.has_cut = PASSAGE_VECTORS.read(vectors).facts["counts"]["cut"] > 0
        self._open = ExitStack()
        self._db = self._open.enter_context(connected(memory_mb=_MEMORY_MB, threads=1))
        add_release(self._db, PASSAGE_VECTORS, vectors)
        add_release(self._db, PASSAGES_CORPUS, passages)

    def find(self, page_ids: pa.Array, pairs: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The vectors of passages, of these pages and with these titles and texts, that have one; else None."""
        if not pairs:
            return []
        least, most = (one.as_py() for one in pc.min_max(page_ids).values())
        found = self._db.cursor().execute(
            # Row groups without these pages are not read.
            "select title, text, vector from passages join vectors using (page_id, number) "
            f"where page_id between {least} and {most} and page_id in (select unnest(?))",
            [page_ids.unique().to_pylist()],
        )
        known = {(title, text): vector for title, text, vector in found.fetchall()}
        return [known.get(pair) for pair in pairs]
