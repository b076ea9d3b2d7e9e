"""Commands for retrieval, entity linking and reading: search, rerank, read, link, and conversion to other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from kbsource.errors import SetupError, counted
from kbsource.files import absolute
from kbsource.records import BadRecord
from mapping.entity_linking.records import LinkerOptions
from mapping.options import (
    FLAT,
    AtLeast1,
    File,
    Files,
    FolderPath,
    FoundForm,
    Level,
    NewFile,
    Release,
    Releases,
    System,
    Text,
    check_ending,
)
from mapping.retrieval.system_options import SystemOptions
from mapping.retrieval.training import TrainingOptions
from mapping.sources.raw_records import RawRecord
from pipelines.commands.dumps import Run
from pipelines.options.read import ReadOptions
from pipelines.options.rerank import RerankOptions
from pipelines.options.shared import RunOptions
from pipelines.progress import Progress
from pipelines.terminal import Summary, command_line, table_text

if TYPE_CHECKING:
    from mapping.contexts.gold import Reject

Q = TypeVar("Q")
TOP, _SHOWN = 100, 10
"""Maximum number of documents for a query from a file, and for a query on the command line."""


def search(
    passages: Release,
    query: Text | None = None,
    /,
    *,
    system: System = "bm25",
    level: Level = "passage",
    queries: File | None = None,
    output: NewFile | None = None,
    top: AtLeast1 | None = None,
    form: Annotated[FoundForm | None, Parameter("--format")] = None,
    options: Annotated[SystemOptions, FLAT] = SystemOptions(),
) -> Summary:
    """Find passages or pages by words, mentions, vectors or a combination.

    Finds the best passages or pages for a query, or for every record of a file. bm25 ranks passages by their words,
    dense by their vectors. Passages with the same score are in the order of the corpus. tfidf ranks passages (or whole
    pages, with --level page) by hashed unigrams and bigrams, as DrQA does. aliases ranks the pages that the mentions in
    a query may refer to.

    Systems can be combined. aliases+bm25 returns the results of aliases, followed by the results that only bm25 has.
    bm25,dense merges the two rankings by rank, not by score. bm25:rerank reorders the results of bm25 with a
    cross-encoder.

    Args:
        passages: Folder that kbsource passages wrote.
        query: The query.
        system: Retrieval system: bm25, tfidf, aliases, dense, oracle (the gold pages of KILT and AmbER), or a
            combination. + appends the results of the next system; a comma merges rankings; :rerank at the end reranks.
        level: Rank passages, or pages. With passage, aliases returns the best passage of each page that it finds.
        queries: File of queries instead of QUERY: records in KILT's format, AmbER sets, or questions of QAMPARI, JSON
            Lines.
        output: File for the results of --queries; appears when it is complete.
        top: Maximum number of passages or pages for a query; by default 100 for a file, 10 for a QUERY.
        form: Format of the results. kilt: predictions for KILT; trec: a TREC run; ctxs: questions with passages, as
            QAMPARI, DPR and Fusion-in-Decoder use them. By default ctxs for QAMPARI, else kilt.

    Examples:
        kbsource search passages/enwiki-20261001 "Who wrote Faust?"
        kbsource search passages/enwiki-20261001 --system aliases+bm25 --linking linking/enwiki-20261001 \\
            --queries aligned/nq/nq-dev-kilt.jsonl --output nq-dev.jsonl
        kbsource search passages/enwiki-20261001 --system tfidf --level page \\
            --queries aligned/fever/fever-dev-kilt.jsonl --output tfidf-fever.jsonl
        kbsource search passages/enwiki-20261001 --system bm25,dense --model models/bge-small-en-v1.5 \\
            --queries aligned/nq/nq-dev-kilt.jsonl --output nq-dev.jsonl
        kbsource search passages/enwiki-20261001 --queries qampari/enwiki-20261001/qampari_data/dev_data.jsonl \\
            --top 200 --output bm25-dev.jsonl
    """
    from mapping.retrieval.queries import Query
    from mapping.retrieval.runs import hits_line, searched_queries
    from mapping.retrieval.systems import open_system

    if (query is None) == (queries is None) or (queries is None) != (output is None):
        raise SetupError("Give a QUERY, or --queries FILE together with --output FILE.")
    if query is not None and not query.strip():
        raise SetupError("QUERY is empty; write the words to search for.")
    if output is not None:
        _check_extension(output, form)
    note, with_texts = Progress().note, form != "trec"
    with open_system(passages, system, options, level=level, with_texts=with_texts, note=note) as opened:
        if queries is None or output is None:
            (hits,) = opened.search([Query("", query or "")], top or _SHOWN)
            return Summary(
                text="\n".join(
                    f"{hit.score:8.3f}  {hit.document}  {hit.title}" + (f"\n          {hit.text}" if hit.text else "")
                    for hit in hits
                )
                or "Nothing was found.",
                values=[{name: getattr(hit, name) for name in ("score", "document", "title", "text")} for hit in hits],
                next=command_line("search", passages, "--queries", "FILE", "--output", "PREDICTIONS"),
            )
        found = partial(searched_queries, queries, search=partial(opened.search, n_documents=top or TOP))
        line, then = partial(hits_line, form=form), _evaluated(queries, output, form)
        return _converted(found, lambda _, parts: line(*parts), output, then)


def rerank(options: Annotated[RerankOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Rerank retrieved passages with a cross-encoder.

    Scores the first passages of every query with a cross-encoder, which reads the query with the title and text of the
    passage, and sorts them by score. The other passages follow in their old order. The score of a page is that of its
    best passage by bm25. The model runs through RunInference on every runner. Run the same command again to resume a
    run that was killed. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource rerank passages/enwiki-20261001 nq-dev.jsonl --model models/ms-marco-MiniLM-L6-v2 \\
            --queries aligned/nq/nq-dev-kilt.jsonl --output nq-dev-reranked.jsonl
    """
    from mapping.retrieval.systems import open_index
    from pipelines.jobs.read import rerank_run

    _check_extension(options.output, options.form)
    index = open_index(options.passages, options.index, Progress().note)
    n_queries, faults = rerank_run(options, index, flags=run.flags(), progress=Progress())
    then = _evaluated(options.queries, options.output, options.form)
    return _written_summary(n_queries, options.output, faults, then)


def read(options: Annotated[ReadOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Answer questions with a model, with or without passages.

    Runs a transformers model that reads each question with its passages, and writes its answers as predictions. The
    provenance of an answer is the passages that the model read. A seq2seq or causal model generates the answer
    greedily; for QAMPARI, it separates several answers with #. A question-answering model marks the answer in a
    passage, and a classifier judges a claim.

    The model runs through RunInference on every runner, and the batches depend only on the questions. Run the same
    command again to resume a run that was killed. Questions that are too long for the model are reported, and the exit
    code is 1. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource read aligned/nq/nq-dev-kilt.jsonl --retrieved bm25-nq.jsonl --model models/t5-large-nq --form fid \\
            --output nq-predictions.jsonl
        kbsource read qampari_contexts/dev_data_with_contexts.jsonl --contexts positive_ctxs --model models/pig \\
            --form pig --output oracle.jsonl
        kbsource read aligned/fever/fever-dev-kilt.jsonl --retrieved dpr-fever.jsonl --model models/fever-nli \\
            --form fact-checking --top 100 --first-sentences 1 --kb releases/enwiki-20261001 --output fever.jsonl
    """
    from pipelines.jobs.read import write_predictions

    _check_extension(options.output, None)
    n_questions, n_bare, n_too_long, faults = write_predictions(options, flags=run.flags(), progress=Progress())
    then = _evaluated(options.questions, options.output, None, role="--predictions")
    summary = _written_summary(n_questions - n_too_long, options.output, faults, then)
    values = {**summary.values, "questions": n_questions, "without_passages": n_bare}
    rows = [("questions", n_questions)]
    if options.form != "closed":
        rows.append(("  without passages", n_bare))
    return replace(summary, rows=rows, values=values)


def link(release: Release, text: Text, /, *, options: Annotated[LinkerOptions, FLAT] = LinkerOptions()) -> Summary:
    """Link the mentions in a text to pages, using only an alias table.

    Finds mentions in a text and links each to the page that it most often refers to in the alias table. A mention is a
    sequence of whole words; where mentions overlap, the longest one counts. The exit code is 1 if the text has no
    mention from the table. For the records of a file, use kbsource search --system aliases.

    Args:
        release: Folder that kbsource entity-linking wrote.
        text: The text to link.

    Examples:
        kbsource link linking/enwiki-20261001 "Ada Lovelace worked with Charles Babbage in London."
    """
    import msgspec

    from mapping.entity_linking.linker import AliasTable, link_text

    with closing(AliasTable(release)) as table:
        found = list(link_text(text, table, options))
    rows = [("mention", "page", "page id", "prior", "links", "link probability")]
    rows += [
        (
            alias.mention,
            alias.title,
            str(alias.page_id),
            f"{alias.prior:.3f}",
            f"{alias.count:,}",
            f"{alias.link_probability:.3f}",
        )
        for alias in (linked.alias for linked in found)
    ]
    return Summary(
        text=table_text(rows) if found else "The text contains no mention from the alias table.",
        values=[
            {
                "start_char": found_mention.start_char,
                "end_char": found_mention.end_char,
                **msgspec.to_builtins(found_mention.alias),
            }
            for found_mention in found
        ],
        is_ok=bool(found),
        next=command_line("inspect", release) if found else "",
    )


def beir(alignment: Release, passages: Release, /, *, output: FolderPath, level: Level = "passage") -> Summary:
    """Write an aligned dataset and its passages in BEIR's format.

    Writes a corpus, queries and qrels for BEIR's GenericDataLoader, and a second copy of the qrels in TREC's format.

    Args:
        alignment: Folder that kbsource map wrote for one dataset.
        passages: Passages of the same release.
        output: Empty folder.
        level: Which passages are relevant. passage: those that contain a part of the evidence; page: all passages of
            its page.

    Examples:
        kbsource beir aligned/nq passages/enwiki-20261001 --output beir/nq
        kbsource beir aligned/wned passages/enwiki-20261001 --output beir/wned --level page
    """
    from mapping.retrieval.beir import make_beir

    counts = make_beir(alignment, passages, absolute(output), level=level).facts["counts"]
    return Summary(
        rows=[(name.replace("_", " "), n) for name, n in counts.items()],
        values=counts,
        next=command_line("verify", output),
    )


def training_data(
    datasets: Releases,
    /,
    *,
    passages: Release,
    output: FolderPath,
    retrieved: Files = (),
    options: Annotated[TrainingOptions, FLAT],
) -> Summary:
    """Write training data for retrievers and readers.

    Writes examples for training the retrievers and readers of KILT, QAMPARI and AmbER: questions with passages that
    contain evidence, passages that do not, and targets. The examples are written as a table, and as JSON Lines in the
    format that each trainer reads. A second table, rejected, lists the questions that got no example and the lines of a
    run that cannot be used, each with the reason.

    Args:
        datasets: Folders that kbsource map wrote, each for one dataset and split, or QAMPARI releases.
        passages: Passages of the same release.
        output: Empty folder.
        retrieved: Results of kbsource search for each dataset, in the same order. Without them, --for seq2seq makes
            closed-book examples.

    Examples:
        kbsource training-data aligned/nq/train --for dpr --passages passages/enwiki-20261001 \\
            --retrieved bm25-nq-train.jsonl --output training/dpr
        kbsource training-data qampari/enwiki-20261001 aligned/nq/train --for pig \\
            --passages passages/enwiki-20261001 --retrieved bm25-qampari.jsonl bm25-nq-train.jsonl --output training/pig
        kbsource training-data aligned/trex/train --for amber --passages passages/enwiki-20261001 \\
            --retrieved tfidf-trex-train.jsonl --output training/amber-trex
    """
    from mapping.retrieval.training_data import make_training_data

    facts = make_training_data(datasets, passages, retrieved, absolute(output), options).facts
    rows = [(f"examples of {dataset['name']}", dataset["examples"]) for dataset in facts["datasets"]]
    counts = facts["counts"]
    rows += [(name, counts[name]) for name in ("queries", "passages", "rejected")]
    return Summary(
        rows=rows,
        values={"datasets": facts["datasets"], **counts},
        next=command_line("verify", output, "--passages", passages),
    )


def trec(file: File, /, *, output: NewFile, queries: File | None = None) -> Summary:
    """Convert TREC runs to KILT predictions, and back.

    Writes a run as predictions for kbsource evaluate kilt, or predictions as a run for trec_eval, ranx or ir_measures.
    Documents are passages or pages, identified by their ids.

    Args:
        file: A run (query, Q0, document, rank, score, name), or predictions in KILT's format or with ctxs.
        output: File in the other format; appears when it is complete.
        queries: Records as for kbsource search. Use them only to convert a run; their inputs are copied into the
            predictions.

    Examples:
        kbsource trec run.trec --queries aligned/nq/nq-dev-kilt.jsonl --output predictions.jsonl
        kbsource trec predictions.jsonl --output run.trec
    """
    from mapping.retrieval.queries import read_queries
    from mapping.retrieval.runs import is_run, ranked_queries, run_prediction_line, trec_lines

    ranked = partial(ranked_queries, file)
    _check_extension(output, None if is_run(file) else "trec")
    if not is_run(file):
        if queries is not None:
            raise SetupError(f"--queries works only for a run, and {file} has predictions; leave it out.")
        return _converted(ranked, trec_lines, output, "")
    texts = {} if queries is None else {query.query_id: query.input for query in read_queries(queries)}
    evaluated = command_line("evaluate", "kilt", queries or "GOLD", output)
    return _converted(ranked, partial(run_prediction_line, texts=texts), output, evaluated)


def _check_extension(output: str, form: FoundForm | None) -> None:
    """Checks that the extension of a file does not belong to another format than the requested one."""
    if form == "trec":
        check_ending("--output", output, "runs of TREC", fitting=["trec", "text", "other"])
    else:
        check_ending("--output", output, "JSON Lines", fitting=["jsonl"])


def _evaluated(queries: str, output: str, form: FoundForm | None, *, role: str = "--retrieved") -> str:
    """Returns the command that evaluates the answers to a file of queries; an empty string if the answers have the
    format of another benchmark. For QAMPARI, ``role`` is the option for the answers.
    """
    from mapping.retrieval.queries import benchmark_of_file

    match benchmark_of_file(queries), form:
        case "qampari", None | "ctxs":
            return command_line("evaluate", "qampari", queries, role, output)
        case ("kilt" | "amber") as benchmark, None | "kilt":
            return command_line("evaluate", benchmark, queries, output)
        case _:
            return ""


def _converted(
    queries: Callable[[Reject], Iterable[tuple[RawRecord, str, Q]]],
    line_of: Callable[[str, Q], bytes],
    output: str,
    then: str,
) -> Summary:
    """Writes the converted queries, and reports the lines that could not be used."""
    from kbsource.release.output import output_file
    from mapping.retrieval.runs import of_queries

    faults: list[BadRecord] = []
    n_records = 0
    with output_file(output) as target:
        for content in of_queries(queries(faults.append), faults.append, line_of):
            target.write(content)
            n_records += 1
    # Keys are like "line 12": some lines are read before others are written.
    faults.sort(key=lambda fault: (len(fault.key), fault.key))
    return _written_summary(n_records, output, faults, then)


def _written_summary(n_records: int, output: str, faults: Sequence[BadRecord], then: str) -> Summary:
    return Summary(
        f"{counted(n_records, 'queries')} written to {output}; {counted(len(faults), 'lines')} could not be used.",
        values={"output": output, "queries": n_records, "rejected": len(faults)},
        faults=faults,
        next=then,
    )
