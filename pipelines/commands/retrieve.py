"""Commands around retrieval and linking: search, the linker, runs, datasets for BEIR."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from kbsource.errors import SetupError, counted
from kbsource.files import Folder
from mapping.entity_linking.records import LinkerOptions
from mapping.options import FLAT, AtLeast1, File, FolderPath, Release, Text
from pipelines.terminal import Summary, command_line, table_text

if TYPE_CHECKING:
    from kbsource.records import BadRecord
    from mapping.contexts.gold import Reject
    from mapping.sources.raw_records import Json, RawRecord

_TOP, _SHOWN = 100, 10


def search(
    passages: Release,
    query: Text | None = None,
    /,
    *,
    index: FolderPath,
    queries: File | None = None,
    output: File | None = None,
    top: AtLeast1 | None = None,
    form: Literal["kilt", "trec"] = "kilt",
    negatives: AtLeast1 | None = None,
) -> Summary:
    """Find passages by BM25: candidates, baselines, negatives.

    Indexes passages where that was not done yet, and finds those that are best for a query by BM25, or for every record
    of a file. Passages of one score stand in the order of the corpus.

    Args:
        passages: passages, as kbsource passages makes them.
        query: what is looked for.
        index: folder of their index; made where there is none.
        queries: JSON Lines with id and input, as KILT has them, in place of QUERY.
        output: what is found for --queries; appears when it is complete.
        top: most passages of a query; by default 100 for a file, 10 for a QUERY.
        form: predictions of KILT, or a run of TREC.
        negatives: write lines that retrievers are trained on: found passages of gold pages, and N that are of none and
            name no answer.

    Examples:
        kbsource search passages/enwiki-20261001 "Who wrote Faust?" --index bm25/enwiki-20261001
        kbsource search passages/enwiki-20261001 --index bm25/enwiki-20261001 \\
            --queries aligned/nq/nq-dev-kilt.jsonl --output bm25-nq-dev.jsonl
    """
    from kbsource.release.layout import MANIFEST
    from mapping.retrieval.index import PassageIndex, make_index
    from mapping.retrieval.runs import RankedDocument, converted, prediction_line, query_of, training_line, trec_lines
    from pipelines.progress import Progress

    if (query is None) == (queries is None) or (queries is None) != (output is None):
        raise SetupError("Give a QUERY, or --queries FILE with --output FILE.")
    if negatives is not None and (queries is None or form != "kilt"):
        raise SetupError("--negatives makes lines of their own form out of --queries; leave --form and QUERY out.")
    if not os.path.exists(os.path.join(index, MANIFEST)):
        progress = Progress()
        progress.note(f"indexing {passages} into {index}")
        progress.note(f"{make_index(passages, index):,} passages indexed")
    found_in = PassageIndex(passages, index)
    if query is not None:
        hits = list(found_in.search(query, top or _SHOWN))
        return Summary(
            text="\n".join(f"{one.score:8.3f}  {one.passage_id}  {one.title}\n          {one.text}" for one in hits),
            values=[
                {"score": one.score, "passage_id": one.passage_id, "title": one.title, "text": one.text} for one in hits
            ],
            next=command_line("search", passages, "--index", index, "--queries", "FILE", "--output", "PREDICTIONS"),
        )
    n_asked = top or _TOP

    def line_of(record: Json) -> bytes:
        asked = query_of(record)
        found = found_in.search(asked.text, n_asked, with_texts=form != "trec")
        if negatives is not None:
            return training_line(asked, found, n_negatives=negatives)
        if form == "trec":
            return trec_lines(asked.query_id, (RankedDocument(hit.passage_id, hit.score) for hit in found))
        return prediction_line(asked, found)

    evaluated = "" if form == "trec" or negatives else command_line("evaluate", "kilt", queries or "", output or "")
    return _converted(queries or "", output or "", partial(converted, line_of=line_of), evaluated)


def link(
    release: Release,
    text: Text,
    /,
    *,
    options: Annotated[LinkerOptions, FLAT] = LinkerOptions(),
) -> Summary:
    """Link the mentions of a text to pages, by an alias table alone.

    Finds the longest mentions of a text that the alias table of entity-linking data knows, whole words, and gives each
    the page that it leads to most often. Exit code 1 when there is none.

    Args:
        release: folder that kbsource entity-linking wrote.
        text: the text.

    Examples:
        kbsource link linking/enwiki-20261001 "Ada Lovelace worked with Charles Babbage in London."
    """
    from contextlib import closing

    import msgspec

    from mapping.entity_linking.aliases import AliasTable, link_text

    with closing(AliasTable(release)) as table:
        found = list(link_text(text, table, options))
    rows = [("mention", "page", "page id", "prior", "links", "link probability")]
    rows += [
        (one.mention, one.title, str(one.page_id), f"{one.prior:.3f}", f"{one.count:,}", f"{one.link_probability:.3f}")
        for one in (linked.alias for linked in found)
    ]
    return Summary(
        text=table_text(rows) if found else "No mention of the alias table stands in the text.",
        values=[
            {"start_char": one.start_char, "end_char": one.end_char, **msgspec.to_builtins(one.alias)} for one in found
        ],
        is_ok=bool(found),
        next=command_line("inspect", release) if found else "",
    )


def beir(
    alignment: Release, passages: Release, /, *, output: FolderPath, level: Literal["passage", "page"] = "passage"
) -> Summary:
    """Write an aligned dataset over passages as BEIR has datasets.

    Writes corpus, queries and qrels, which BEIR's GenericDataLoader reads, and qrels as TREC has them.

    Args:
        alignment: folder that kbsource map wrote for one dataset.
        passages: passages of the same release.
        output: empty folder.
        level: relevant is a passage that has a part of the evidence, or every passage of its page.

    Examples:
        kbsource beir aligned/nq passages/enwiki-20261001 --output beir/nq
        kbsource beir aligned/wned passages/enwiki-20261001 --output beir/wned --level page
    """
    from kbsource.files import absolute
    from mapping.retrieval.beir import make_beir

    counts = make_beir(alignment, passages, absolute(output), level=level).facts["counts"]
    return Summary(
        rows=[(name.replace("_", " "), n) for name, n in counts.items()],
        values=counts,
        next=command_line("verify", output),
    )


def trec(file: File, /, *, output: File, queries: File | None = None) -> Summary:
    """Turn runs of TREC into predictions of KILT, and back.

    Writes a run as the predictions that kbsource evaluate kilt takes, or predictions as a run for trec_eval, ranx or
    ir_measures. Documents are passages, by their ids, or pages.

    Args:
        file: a run (query, Q0, document, rank, score, name), or predictions as KILT has them.
        output: the other form; appears when it is complete.
        queries: for a run: records with id and input, which predictions then have too.

    Examples:
        kbsource trec run.trec --queries aligned/nq/nq-dev-kilt.jsonl --output predictions.jsonl
        kbsource trec predictions.jsonl --output run.trec
    """
    from itertools import islice

    from mapping.retrieval.runs import converted, found_of, predictions_of, read_queries, trec_lines
    from mapping.sources.raw_records import iter_lines

    first = next(islice(iter_lines(file), 1), None)
    if first is not None and first.data.lstrip().startswith(b"{"):
        if queries is not None:
            raise SetupError(f"--queries: {file} has predictions, of which no more is needed; leave it out.")
        return _converted(file, output, partial(converted, line_of=lambda record: trec_lines(*found_of(record))), "")
    texts = {} if queries is None else read_queries(queries)
    evaluated = command_line("evaluate", "kilt", queries or "GOLD", output)
    return _converted(file, output, partial(predictions_of, texts=texts), evaluated)


def _converted(
    source: str, output: str, convert: Callable[[Iterable[RawRecord], Reject], Iterator[bytes]], then: str
) -> Summary:
    """Writes what the lines of a file become, and tells what could not be used."""
    from mapping.sources.raw_records import iter_lines

    faults: list[BadRecord] = []
    n_records = 0
    with Folder.of(output).create() as target:
        for content in convert(iter_lines(source), faults.append):
            target.write(content)
            n_records += 1
    return Summary(
        f"{counted(n_records, 'queries')} written to {output}; {counted(len(faults), 'lines')} could not be used.",
        values={"output": output, "queries": n_records, "rejected": len(faults)},
        faults=faults,
        next=then,
    )
