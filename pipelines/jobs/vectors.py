"""Vectors of passages: one pipeline encodes them, row group by row group.

The vectors of each row group are written to a file at once, so a run that was killed resumes after them. One worker
finally writes the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import DataError, SetupError
from kbsource.files import absolute, join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.sql import with_counts
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, chunk_path, once, read_chunk_report, write_chunk
from mapping.passages.corpus import GROUP_ROWS
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.encoder import Encoder, open_encoder
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE, VECTORS, VectorPrecision
from mapping.retrieval.vectors import COLUMNS, KnownVectors, check_known, check_precision, encode_batch
from pipelines.jobs.shared_inputs import MadeRelease, output_folder
from pipelines.options.vectors import VectorsOptions
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Progress, chunks_done
from pipelines.runners.counters import count
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import do
from pipelines.transforms.tables import ReadTable, WriteTable, by_name
from pipelines.transforms.verify_entailment import ListHandler, RunModel

_known_vectors = lru_cache(maxsize=1)(KnownVectors)  # opened once per process


def make_vectors(options: VectorsOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Makes the vectors of a corpus of passages.

    Raises:
        SetupError: a file, the encoder or the output folder is wrong; it is a DataError if passages have changed.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    check_paths(flags, options.passages, options.output)
    passages, output = absolute(options.passages), output_folder(options.output)
    corpus = PASSAGES_CORPUS.read(passages)
    entries = corpus.tables["passages"]
    check_hashes(passages, entries)
    opened = open_encoder(options.encoder)
    encoder = opened.facts
    check_precision(options.precision, encoder)
    facts = {
        "release": corpus.facts["release"],
        "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
        "encoder": encoder,
        "precision": options.precision,
        "computed": opened.computed,
        "lang": corpus.facts["lang"],
    }
    if options.query_model is not None:
        facts["query_encoder"] = _query_facts(options.query_model, options.encoder, encoder)
    base = [absolute(folder) for folder in (options.base, options.base_passages) if folder is not None]
    if len(base) == 1:
        raise SetupError(
            "Give --base and --base-passages together: the vectors, and the passages that they were made from."
        )
    if base:
        check_known(base[0], base[1], facts)
    with ReleaseFolder(output, kind=PASSAGE_VECTORS, job=facts) as out:
        folder = join(out.staging, "encoded")
        encoded = (
            pipeline
            | "passages" >> ReadTable([join(passages, entry.file) for entry in entries], COLUMNS, chunk_rows=1)
            | "encode"
            >> RunModel(
                ListHandler(
                    partial(open_encoder, options.encoder),
                    partial(_encode, precision=options.precision, folder=folder, base=base),
                ),
                options.encoder,
            )
        )
        n_cut = encoded | "cut" >> beam.Map(itemgetter(2)) | "all cut" >> beam.CombineGlobally(sum)
        _ = (
            encoded
            | "vectors" >> beam.Map(itemgetter(0, 1))
            | "write" >> WriteTable(TABLE, output, kind=PASSAGE_VECTORS)
            | "by name" >> beam.Map(by_name)
            | "written" >> CollectSorted()
            | "commit"
            >> do(_commit, beam.pvalue.AsSingleton(n_cut), output=output, facts=facts, n=corpus.n_rows("passages"))
        )
        sizes = [entry.rows or 0 for entry in entries]
        done = chunks_done(out.staging, folder, sizes, unit="passages", chunk_size=GROUP_ROWS)
        with progress.stage("vectors", done):
            steps = run_pipeline(pipeline, "vectors", counts=(counts := Counter[str]()))
    report = {"taken_over": counts["taken_over"]} if counts and base else {}
    return MadeRelease(options.output, PASSAGE_VECTORS.read(output), time.monotonic() - started, steps, report)


def _query_facts(model: str, options: EncoderOptions, passages: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the manifest's facts about the query encoder, which has the pooling and text form of the passage encoder.

    Raises:
        SetupError: it cannot be opened, or its vectors are not comparable with passage vectors.
    """
    has_default = passages["form"] == "static" or passages["pooling"] == "model"
    pooling, text_form = None if has_default else passages["pooling"], passages["text_form"]
    facts = open_encoder(replace(options, model=model, pooling=pooling, text_form=text_form)).facts
    for name in ("dimension", "normalisation"):
        if facts[name] != passages[name]:
            raise SetupError(
                f"--query-model {model}: its vectors have {name} {facts[name]}, but the vectors of the passages have "
                f"{passages[name]}; give two encoders that were trained together."
            )
    return facts


def _encode(
    encoder: Encoder,
    element: tuple[ChunkKey, pa.RecordBatch],
    *,
    precision: VectorPrecision,
    folder: str,
    base: Sequence[str],
) -> tuple[ChunkKey, BatchRef, int]:
    """Returns the number of a row group, the file of its vectors, and the number of truncated passages. Writes the file
    if it does not exist."""
    key, passages = ChunkKey(*element[0]), element[1]

    def make() -> None:
        known = _known_vectors(*base) if base else None
        batch, n_cut, n_known = encode_batch(passages, encoder, precision, known)
        n_new = passages.num_rows - n_known
        count({"model_calls": int(n_new > 0), "model_passages": n_new, "taken_over": n_known})
        write_chunk([batch], VECTORS, Report(Counter(cut=n_cut)), path=chunk_path(folder, key), is_packed=False)

    stored, report = once(chunk_path(folder, key), make, read_chunk_report)
    return key, stored, report.counts["cut"]


def _commit(
    written: list[tuple[str, FileEntry]], n_cut: int, *, output: str, facts: dict[str, Any], n: int
) -> Iterator[str]:
    """Finally writes the manifest. Raises DataError if the numbers of vectors and passages differ."""
    entries = [entry for _, entry in written]
    facts = {**facts, "counts": {"truncated": n_cut}, "code": code_facts()}
    facts = with_counts(PASSAGE_VECTORS, entries, facts, output)
    if (n_written := facts["counts"]["passages"]) != n:
        raise DataError(f"The counts do not add up, so no release was made: {n_written} vectors of {n} passages.")
    commit(PASSAGE_VECTORS, PASSAGE_VECTORS.listing(entries, facts), output)
    yield output
