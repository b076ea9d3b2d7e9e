"""Commands around retrieval and linking: search, the linker, runs, datasets for BEIR."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from kbsource.errors import SetupError, counted
from kbsource.files import Folder
from mapping.entity_linking.records import LinkerOptions
from mapping.options import FLAT, AtLeast1, File, FolderPath, FoundForm, Release, Text
from pipelines.terminal import Summary, command_line, table_text

if TYPE_CHECKING:
    from kbsource.records import BadRecord
    from mapping.contexts.gold import Reject
    from mapping.retrieval.queries import Query
    from mapping.sources.raw_records import RawRecord

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
    form: FoundForm | None = None,
    negatives: AtLeast1 | None = None,
) -> Summary:
    """Find passages by BM25: candidates, baselines, negatives.

    Indexes passages where that was not done yet, and finds those that are best for a query by BM25, or for every record
    of a file. Passages of one score stand in the order of the corpus.

    Args:
        passages: passages, as kbsource passages makes them.
        query: what is looked for.
        index: folder of their index; made where there is none.
        queries: records of KILT's form, AmbER sets, or questions of QAMPARI, JSON Lines, in place of QUERY.
        output: what is found for --queries; appears when it is complete.
        top: most passages of a query; by default 100 for a file, 10 for a QUERY.
        form: kilt: predictions of KILT; trec: a run of TREC; ctxs: questions with passages, as QAMPARI, DPR and
            Fusion-in-Decoder have them. By default ctxs for QAMPARI, kilt for all others.
        negatives: write lines that retrievers are trained on: found passages of gold pages, and N that are of none and
            name no answer.

    Examples:
        kbsource search passages/enwiki-20261001 "Who wrote Faust?" --index bm25/enwiki-20261001
        kbsource search passages/enwiki-20261001 --index bm25/enwiki-20261001 \\
            --queries aligned/nq/nq-dev-kilt.jsonl --output bm25-nq-dev.jsonl
        kbsource search passages/enwiki-20261001 --index bm25/enwiki-20261001 \\
            --queries qampari/enwiki-20261001/qampari_data/dev_data.jsonl --top 200 --output bm25-dev.jsonl
    """
    from kbsource.release.layout import MANIFEST
    from mapping.retrieval.index import PassageIndex, make_index
    from mapping.retrieval.runs import answered, found_line, training_line
    from pipelines.progress import Progress

    _check_asked(query, queries, output, "QUERY")
    if negatives is not None and (queries is None or form is not None):
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

    def line_of(asked: Query) -> bytes:
        hits = found_in.search(asked.text, top or _TOP, with_texts=form != "trec")
        return found_line(asked, hits, form) if negatives is None else training_line(asked, hits, n_negatives=negatives)

    then = "" if negatives else _evaluated(queries or "", output or "", form)
    return _converted(queries or "", output or "", partial(answered, line_of=line_of), then)


def link(
    release: Release,
    text: Text | None = None,
    /,
    *,
    queries: File | None = None,
    output: File | None = None,
    top: AtLeast1 = _TOP,
    form: FoundForm | None = None,
    options: Annotated[LinkerOptions, FLAT] = LinkerOptions(),
) -> Summary:
    """Link the mentions of a text to pages, by an alias table alone.

    Finds the longest mentions of a text that the alias table of entity-linking data knows, whole words, and gives each
    the page that it leads to most often; exit code 1 when there is none. Of every record of a file it gives all pages
    that its mentions may mean, the likeliest first.

    Args:
        release: folder that kbsource entity-linking wrote.
        text: the text.
        queries: records of KILT's form, AmbER sets, or questions of QAMPARI, JSON Lines, in place of TEXT.
        output: what is found for --queries; appears when it is complete.
        top: most pages of a query.
        form: kilt: predictions of KILT; trec: a run of TREC; ctxs: questions with pages, as QAMPARI has passages. By
            default ctxs for QAMPARI, kilt for all others.

    Examples:
        kbsource link linking/enwiki-20261001 "Ada Lovelace worked with Charles Babbage in London."
        kbsource link linking/enwiki-20261001 --queries amber/enwiki-20261001/human/qa/amber_sets.jsonl \\
            --output linked-qa.jsonl
    """
    from contextlib import closing

    import msgspec

    from mapping.entity_linking.aliases import AliasTable, link_text, rank_pages
    from mapping.retrieval.index import Hit
    from mapping.retrieval.runs import answered, found_line

    _check_asked(text, queries, output, "TEXT")
    with closing(AliasTable(release)) as table:
        if text is None:

            def line_of(asked: Query) -> bytes:
                pages = rank_pages(asked.text, table, options, most=top)
                return found_line(asked, [Hit("", one.page_id, one.title, "", score) for one, score in pages], form)

            then = _evaluated(queries or "", output or "", form)
            return _converted(queries or "", output or "", partial(answered, line_of=line_of), then)
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
        file: a run (query, Q0, document, rank, score, name), or predictions as KILT has them, or with ctxs.
        output: the other form; appears when it is complete.
        queries: for a run: records as kbsource search takes them, whose inputs predictions then have too.

    Examples:
        kbsource trec run.trec --queries aligned/nq/nq-dev-kilt.jsonl --output predictions.jsonl
        kbsource trec predictions.jsonl --output run.trec
    """
    from itertools import islice

    from mapping.retrieval.queries import read_queries
    from mapping.retrieval.runs import converted, predictions_of, run_line
    from mapping.sources.raw_records import iter_lines

    first = next(islice(iter_lines(file), 1), None)
    if first is not None and first.data.lstrip().startswith(b"{"):
        if queries is not None:
            raise SetupError(f"--queries: {file} has predictions, of which no more is needed; leave it out.")
        return _converted(file, output, partial(converted, lines_of=lambda record: [run_line(record)]), "")
    texts = {} if queries is None else {query.query_id: query.text for query in read_queries(queries)}
    evaluated = command_line("evaluate", "kilt", queries or "GOLD", output)
    return _converted(file, output, partial(predictions_of, texts=texts), evaluated)


def _check_asked(text: str | None, queries: str | None, output: str | None, name: str) -> None:
    if (text is None) == (queries is None) or (queries is None) != (output is None):
        raise SetupError(f"Give a {name}, or --queries FILE with --output FILE.")


def _evaluated(queries: str, output: str, form: FoundForm | None) -> str:
    """What scores the answers to a file of queries; nothing where they have the form of another benchmark."""
    from mapping.retrieval.queries import benchmark_of_file

    match benchmark_of_file(queries), form:
        case "qampari", None | "ctxs":
            return command_line("evaluate", "qampari", queries, "--retrieved", output)
        case ("kilt" | "amber") as benchmark, None | "kilt":
            return command_line("evaluate", benchmark, queries, output)
        case _:
            return ""


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
