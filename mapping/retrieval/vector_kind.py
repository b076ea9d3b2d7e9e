"""The kind of release for vectors of passages, and for the graph of an approximate search.

::

    vectors/vectors-00000-of-00012.parquet    a vector a passage, in the order of the passages
    manifest.json                             the encoder by the hashes of its files, written last

``kbsource search --approximate`` makes the graph from the vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from kbsource.columns import schema_of
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.manifest import ListingManifest, SourceFacts, counts_shape, shape
from kbsource.rows import Int32, Row
from mapping.passages.kind import PASSAGES_CORPUS

VectorPrecision = Literal["float16", "int8", "bits"]
TABLE = "vectors"
Dimension = Annotated[int, Meta(ge=1, le=1 << 16)]
_BITS: dict[VectorPrecision, int] = {"float16": 16, "int8": 8, "bits": 1}


class PassageVector(Row):
    """One row per passage, in the order of the passages."""

    page_id: Annotated[int, "page of the passage"]
    number: Annotated[Int32, "position among the passages of its page, from 0"]
    vector: Annotated[
        bytes,
        "numbers of the vector, in the `precision` of the manifest: float16 in little-endian order, "
        "`numpy.frombuffer(vector, '<f2')`; int8, scaled to a largest magnitude of 127; or bits, 1 for numbers "
        "above 0, the first number in the highest bit",
    ]


VECTORS = schema_of(PassageVector)


def vector_bytes(facts: Mapping[str, Any]) -> int:
    """Returns the bytes of each vector, according to the manifest."""
    return int(facts["encoder"]["dimension"]) * _BITS[facts["precision"]] // 8


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.retrieval.vector_forms import check_vectors  # needs numpy, which reading does not

    return check_vectors(checking, TABLE, vector_bytes(checking.manifest.facts))


PASSAGE_VECTORS = ListingKind(
    name="release of vectors of passages",
    format="kbsource-vectors-3",
    facts=shape(
        "facts",
        passages=SourceFacts,
        encoder=shape("encoder", name=str, dimension=Dimension, normalisation=str, form=str),
        precision=VectorPrecision,
        computed=dict[str, Any],
        counts=counts_shape("truncated"),
    ),
    made_by="kbsource vectors",
    card=CardText(
        title="Vectors of passages",
        summary=(
            "One vector per passage, in the order of the passages, computed by a sentence encoder. For kbsource "
            "search, which also needs the passages."
        ),
        main="vectors",
        holds=("wikipedia",),
        tasks=("text-retrieval", "feature-extraction"),
        tags=("wikipedia", "retrieval", "embeddings"),
        limits=("Queries must be encoded by the encoder that the manifest names by the hashes of its files.",),
    ),
    shown_by=(("vectors", "page_id__number"), ("vectors", "page_id")),
    tables={TABLE: VECTORS},
    required=(TABLE,),
    invariants=(
        Invariant(
            "invalid_vector",
            "a vector does not have the encoder's dimension or length, or contains a value that is not a number",
            """case when octet_length(vector) <> (select n from settings where name = 'vector_bytes')
                then [page_id || '__' || number || ': ' || octet_length(vector) || ' bytes'] end""",
            table=TABLE,
        ),
        Invariant(
            "passages_disagree",
            "there is not exactly one vector for each passage, in the order of the passages",
            """select own._file, coalesce(own.id, 'none') || ' where the passage is ' || coalesce(corpus.id, 'none')
            from (
                select _file, page_id || '__' || number as id,
                    row_number() over (order by _file_number, _row) as place from vectors
            ) as own full join (
                select passage_id as id, row_number() over (order by _file_number, _row) as place from passages.passages
            ) as corpus using (place) where own.id is distinct from corpus.id""",
            needs=(TABLE, "passages"),
        ),
    ),
    counts=(TableCount("counts.passages", "select count(*) from vectors", summary="vectors"),),
    settings=lambda manifest: {"vector_bytes": vector_bytes(manifest.facts)},
    check=_check,
    made_from={"passages": MadeFrom(PASSAGES_CORPUS, "passages", ("passages",))},
)

GRAPH = "usearch"
VECTORS_GRAPH = ListingKind(
    name="graph of nearest vectors",
    format="kbsource-graph-1",
    facts=shape("facts", vectors=SourceFacts, recall=dict[str, float], counts=counts_shape("vectors")),
    made_by="kbsource search",
    card=CardText(
        title="Graph of vectors of passages",
        summary="A graph of nearest neighbours over vectors of passages, for approximate search with kbsource search.",
        holds=("wikipedia",),
        tasks=("text-retrieval",),
        tags=("wikipedia", "retrieval", "embeddings"),
        limits=(
            (
                "The graph can only be used together with its vectors. The search is approximate and may miss some "
                "nearest vectors."
            ),
        ),
    ),
    tables={},
    files=(GRAPH,),
)
