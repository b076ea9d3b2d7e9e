"""Measures vectors of passages: encoding compared with the model by itself, and exact search of a million vectors
compared with NumPy.

Encoding is measured on passages of generated words with ``--model`` (a folder from ``make models``). The processor time
of the step of ``kbsource vectors`` for a row group is compared with the time of ONNX Runtime for the same batches.
Search is measured on random vectors of 384 numbers. It is compared with NumPy's product of queries and all vectors: in
float32, which take 1.5 GB for a million vectors, and in float16, which are converted block by block. Search and product
run in separate processes with one thread, and so does approximate search with a graph (``--graph``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from itertools import product as product_of
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bm25 import _peak_mb, made_up_texts
from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.slices import REPOSITORY
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.writer import TableFile
from mapping.retrieval.vector_forms import FORMS
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE, VECTORS, VectorPrecision
from mapping.retrieval.vectors import StoredVectors

N_VECTORS, DIMENSION, TOP = 1_000_000, 384, 100
N_QUERIES = (1, 100, 1_024)
GROUP_ROWS, N_ENCODED, N_TURNS = 2_048, 128, 3
BAR_RATIO, BAR_MB, BAR_ENCODING = 1.2, 1_000, 0.8


def drawn(n_vectors: int, directions: int, seed: int = 1) -> Iterator[Any]:
    """Yields random vectors of length 1, one row group at a time. They lie in a subspace with this number of dimensions
    at most.
    """
    seeded = np.random.default_rng(seed)
    base = np.random.default_rng(0).standard_normal((directions, DIMENSION), dtype=np.float32)
    for start in range(0, n_vectors, GROUP_ROWS):
        block = seeded.standard_normal((min(GROUP_ROWS, n_vectors - start), directions), dtype=np.float32)
        block = block if directions == DIMENSION else block @ base
        yield block / np.linalg.norm(block, axis=1, keepdims=True)


def write_vectors(folder: Path, n_vectors: int, directions: int, precision: VectorPrecision) -> None:
    """Writes vectors in the format of a release."""
    with TableFile(str(folder), shard_path(TABLE, 0, 1), TABLE, schema=VECTORS) as target:
        for block in drawn(n_vectors, directions):
            rows = np.arange(target.n_rows, target.n_rows + len(block))
            cells = pa.array([row.tobytes() for row in FORMS[precision].pack(block)], pa.binary())
            columns = [pa.array(rows // 10), pa.array((rows % 10).astype(np.int32)), cells]
            target.write(pa.RecordBatch.from_arrays(columns, schema=VECTORS))
    encoder = {"dimension": DIMENSION, "normalisation": "l2"}
    facts = {"encoder": encoder, "precision": precision, "counts": {"passages": n_vectors}}
    (folder / MANIFEST).write_bytes(PASSAGE_VECTORS.listing([target.entry], facts).to_bytes())


def cpu_of(work: Callable[[], object]) -> float:
    """Returns the minimum processor seconds of a few rounds."""
    seconds = []
    for _ in range(N_TURNS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def search(folder: Path, directions: int) -> dict[str, float]:
    """Searches the vectors in this process."""
    result = {}
    for precision in FORMS:
        index = StoredVectors(str(folder / precision))
        named = "" if precision == "float16" else f"_{precision}"
        result[f"read_s{named}"] = cpu_of(partial(_read, index))
        for n_queries in N_QUERIES:
            queries = next(drawn(n_queries, directions, seed=2))
            for level in ("passage", "page"):
                result[f"search_s_{n_queries}_{level}{named}"] = cpu_of(partial(index.best, queries, TOP, level))
    return {**result, "search_resident_mb": _peak_mb()}


def _read(index: StoredVectors) -> None:
    deque(index.blocks(), maxlen=0)


def graph(folder: Path, directions: int) -> dict[str, float]:
    """Makes the graph of the vectors in this process, and searches it."""
    from mapping.retrieval.vectors import Neighbours, make_neighbours, recall_of

    vectors, made = str(folder / "float16"), folder / "graph"
    shutil.rmtree(made, ignore_errors=True)
    start = time.process_time()
    own = make_neighbours(vectors, str(made))["found"]
    result = {"graph_s": time.process_time() - start, "graph_made_in_mb": _peak_mb(), "graph_recall_of_stored": own}
    stored, found = StoredVectors(vectors), Neighbours(vectors, str(made))
    queries = next(drawn(N_QUERIES[1], directions, seed=2))
    for top in (10, TOP):
        recall = recall_of(stored.best(queries, top, "passage"), found.best(queries, top, "passage"))
        result[f"graph_recall_of_queries_{top}"] = recall
    seconds = cpu_of(partial(found.best, queries, TOP, "passage"))
    return {**result, f"graph_search_s_{len(queries)}": seconds}


def product(folder: Path, directions: int) -> dict[str, float]:
    """Computes the product in this process: in float32 as stored in memory, or in float16 that NumPy converts block by
    block.
    """
    n_vectors = json.loads((folder / "n_vectors.json").read_text())
    vectors = np.empty((n_vectors, DIMENSION), np.float32)
    for number, block in enumerate(drawn(n_vectors, directions)):
        vectors[number * GROUP_ROWS :][: len(block)] = block
    result = {}
    for name, held in (("float32", vectors), ("float16", vectors.astype(np.float16))):
        for n_queries in N_QUERIES:
            work = partial(_multiply, next(drawn(n_queries, directions, seed=2)), held)
            result[f"product_s_{n_queries}_{name}"] = cpu_of(work)
    return {**result, "product_resident_mb": _peak_mb()}


def _multiply(queries: Any, vectors: Any) -> None:
    for start in range(0, len(vectors), GROUP_ROWS):
        np.matmul(queries, vectors[start : start + GROUP_ROWS].astype(np.float32, copy=False).T)


STEPS = {"search": search, "product": product, "graph": graph}


def encoding(model: str) -> dict[str, float]:
    """Encodes passages with the step, and the same batches with ONNX Runtime only."""
    from mapping.retrieval.encoder import open_encoder
    from mapping.retrieval.system_options import EncoderOptions
    from mapping.retrieval.vectors import encode_batch

    encoder = open_encoder(EncoderOptions(model, device="cpu"))
    texts = list(islice(made_up_texts(7, 75), N_ENCODED))
    columns = {"page_id": range(N_ENCODED), "number": [0] * N_ENCODED, "title": [""] * N_ENCODED, "text": texts}
    schema = pa.schema([("page_id", pa.int64()), ("number", pa.int32()), ("title", pa.string()), ("text", pa.string())])
    passages = pa.RecordBatch.from_pydict({name: list(values) for name, values in columns.items()}, schema=schema)
    computer: Any = getattr(encoder._compute, "__self__")  # noqa: B009
    session, batches = computer._session, []

    class Watched:
        """The session, whose batches are kept."""

        def run(self, names: Any, arrays: Any) -> Any:
            batches.append(arrays)
            return session.run(names, arrays)

    computer._session = Watched()
    encode_batch(passages, encoder, "float16")
    computer._session = session
    step = cpu_of(lambda: encode_batch(passages, encoder, "float16"))
    alone = cpu_of(lambda: [session.run(None, arrays) for arrays in batches[:N_ENCODED]])
    return {"encode_s": step, "model_s": alone, "encoding_of_model": alone / step}


def measure(
    *, n_vectors: int = N_VECTORS, directions: int = DIMENSION, model: str | None = None, with_graph: bool = False
) -> dict[str, Any]:
    """Measures encoding if a model is given, then search and product, and a graph if requested, each in a separate
    process.
    """
    folder = WORK / f"vector-releases-{n_vectors}-{directions}"
    if not (folder / "n_vectors.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for precision in FORMS:
            write_vectors(folder / precision, n_vectors, directions, precision)
        (folder / "n_vectors.json").write_text(json.dumps(n_vectors))
    result: dict[str, Any] = {"machine": machine(), "vectors": n_vectors, "directions": directions}
    if model is not None:
        result |= encoding(model)
    for step in STEPS if with_graph else ("search", "product"):
        command = [sys.executable, "-m", "benchmarks.vectors", "--step", step, "--folder", str(folder)]
        command += ["--directions", str(directions)]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # threads that wait for each other cost time, too
        done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True, env=alone)
        result |= json.loads(done.stdout)
    for n_queries, level, name in product_of(N_QUERIES, ("passage", "page"), ("float32", "float16")):
        ratio = result[f"search_s_{n_queries}_{level}"] / result[f"product_s_{n_queries}_{name}"]
        result[f"search_of_{name}_{n_queries}_{level}"] = ratio
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(
        f"\nExact search of {result['vectors']:,} vectors, processor seconds by queries at once; bars: {BAR_RATIO} of "
        f"the product, {BAR_MB} MB; encoding {BAR_ENCODING} of the model alone"
    )
    print(table(("figure", "value"), [(name, value) for name, value in result.items() if isinstance(value, float)]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description=__doc__)
    parser.add_argument("--vectors", type=int, default=N_VECTORS)
    parser.add_argument(
        "--directions",
        type=int,
        default=DIMENSION,
        help="dimensions of the subspace of the vectors; vectors of an encoder use few",
    )
    parser.add_argument("--model", help="folder of an encoder; without it, encoding is not measured")
    parser.add_argument(
        "--graph", action="store_true", help="also measure approximate search with a graph (takes hours)"
    )
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    if args.step:
        print(json.dumps(STEPS[args.step](args.folder, args.directions)))
        return
    result = measure(n_vectors=args.vectors, directions=args.directions, model=args.model, with_graph=args.graph)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
