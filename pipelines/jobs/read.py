"""Runs a model over questions and their search results, in one pipeline: a cross-encoder reranks the results, or a
reader answers the questions, and its answers are predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

import msgspec
from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import Folder
from kbsource.records import BadRecord
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.contexts.gold import Reject
from mapping.entail.signal import model_folder, model_sha256
from mapping.options import FoundForm
from mapping.passages.cut import passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.fact_checker import check_claims
from mapping.retrieval.index import PassageIndex
from mapping.retrieval.page_lookup import PageLookup
from mapping.retrieval.queries import Hit, Query, queries_of, read_queries
from mapping.retrieval.reader import (
    RAG_FORMS,
    Prompt,
    answer_questions,
    contexts_of,
    read_prompt,
    with_template_question,
)
from mapping.retrieval.reader_models import opener_of, reader_form
from mapping.retrieval.runs import RankedDocument, hits_line, of_queries, page_and_number, prediction_id, ranked_queries
from mapping.retrieval.span_reader import extract_answers
from mapping.retrieval.system_options import ReaderOptions, ReadForm
from mapping.retrieval.systems import Reranker
from mapping.sources.raw_records import iter_records
from mapping.sources.scratch import QuestionFiles
from pipelines.jobs.through_model import through_model
from pipelines.options.read import ReadOptions
from pipelines.options.rerank import RerankOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count
from pipelines.runners.running import check_paths

QUERIES_TOGETHER = 8
"""Number of questions that a worker reranks at once. With a hundred passages each, this takes a small model some
seconds on one core."""
QUESTIONS_TOGETHER = 16
"""Number of questions that a worker reads at once. A batch contains only these questions, so their answers do not
depend on other questions.
"""
_FOUND = "found"


def rerank_run(
    options: RerankOptions, index: PassageIndex, *, flags: Sequence[str], progress: Progress
) -> tuple[int, list[BadRecord]]:
    """Writes a run in the new order. Returns the number of queries, and the lines that cannot be used.

    Raises:
        SetupError: a file, the model or the index is wrong.
    """
    Reranker(options.reranker)  # reports errors of the model at once
    queries = {query.query_id: query for query in read_queries(options.queries)}
    faults: list[BadRecord] = []
    model = options.reranker.model_options()

    def found(query_id: str, documents: Sequence[RankedDocument]) -> Query:
        if (query := queries.get(query_id)) is None:
            raise RecordError("unknown_question", query_id)
        return replace(query, contexts=tuple(_context(document, query, index) for document, _ in documents))

    n_queries, refused = through_model(
        of_queries(ranked_queries(options.ranked, faults.append), faults.append, found),
        options.output,
        source=options.queries,
        name="rerank",
        together=QUERIES_TOGETHER,
        decides=(
            *(Folder.of(path).sha256() for path in (options.ranked, options.queries)),
            PASSAGES_CORPUS.read(options.passages).sha256,
            model_sha256(model_folder(model), model.backend),
            f"{options.reranker.depth} {options.form}",
        ),
        model=options.reranker,
        open_model=partial(Reranker, options.reranker),
        answer=partial(_reranked, form=options.form),
        flags=flags,
        progress=progress,
    )
    return n_queries - len(refused), [*faults, *refused]


def _context(document: str, query: Query, index: PassageIndex) -> Hit:
    """Returns a passage, or a page with the text of its best passage; None for a page without passages."""
    page_id, number = page_and_number(document)
    name = str(page_id) if number is None else passage_id(page_id, number)
    hit = index.best_of_page(page_id, query.text) if number is None else index.find(page_id, number)
    if hit is None and number is not None:
        raise RecordError("unknown_passage", name)
    return Hit(name, str(page_id), *(("", "") if hit is None else (hit.title, hit.text)))


def _reranked(
    reranker: Reranker, questions: Sequence[Query], *, form: FoundForm | None
) -> Iterator[bytes | RecordError]:
    for asked in questions:
        count({"model_calls": 1, "model_pairs": min(len(asked.contexts), reranker.depth)})
        try:
            yield hits_line(asked, reranker.rerank(asked.input, asked.contexts), form)
        except RecordError as error:
            yield error


def write_predictions(
    options: ReadOptions, *, flags: Sequence[str], progress: Progress
) -> tuple[int, int, int, list[BadRecord]]:
    """Writes predictions. Returns the numbers of questions, of questions without passages, and of questions too long
    for the model, and the lines and questions that cannot be used.

    Raises:
        SetupError: a file, the prompt or the model is wrong, or the model has no encoder for ``fid``.
    """
    reader, form = options.reader, options.form or reader_form(options.reader)
    _check_form(options, form)
    prompt, opener = read_prompt(options.prompt, form), resolve_name(reader.opener or opener_of(form))
    faults, n_bare, n_untemplated = list[BadRecord](), 0, 0

    def read_questions() -> Iterator[Query]:
        nonlocal n_bare, n_untemplated
        for question in _questions(options, faults.append):
            n_bare += form != "closed" and not question.contexts
            n_untemplated += options.template_seed is not None and not question.template_question
            yield question

    given = (form, options.passages_key, options.top, reader.precision, reader.max_tokens, reader.new_tokens)
    chosen = (options.template_seed, options.redirects, options.first_sentences, reader.labels)
    pages = () if options.kb is None else (PAGES_RELEASE.read(options.kb).sha256,)
    check_paths(flags, *filter(None, (options.kb,)))
    n_questions, refused = through_model(
        read_questions(),
        options.output,
        source=options.questions,
        name="read",
        together=QUESTIONS_TOGETHER,
        decides=(
            *(Folder.of(path).sha256() for path in (options.questions, options.retrieved) if path is not None),
            *(repr(given), repr(prompt), str(reader.batch_tokens), opener.sha256(reader), reader.device),
            *(repr(chosen), *pages),
        ),
        model=reader,
        open_model=partial(_open, options, opener),
        answer=partial(_answers, options=options, form=form, prompt=prompt),
        flags=flags,
        progress=progress,
    )
    if n_untemplated:
        progress.note(
            f"{counted(n_untemplated, 'question')} without template_questions: the field input is read instead."
        )
    return n_questions, n_bare, len(refused), [*faults, *refused]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _OpenReader:
    """A model and the release for looking up titles."""

    model: Any
    pages: PageLookup | None


def _open(options: ReadOptions, opener: Callable[[ReaderOptions], Any]) -> _OpenReader:
    pages = None if options.kb is None else PageLookup(options.kb, accepts_redirects=options.redirects)
    return _OpenReader(opener(options.reader), pages)


def _questions(options: ReadOptions, reject: Reject) -> Iterator[Query]:
    """Reads the questions of a file with their passages. Memory: one question."""
    with QuestionFiles() as joined:
        for raw in iter_records(options.retrieved) if options.retrieved else ():
            with raw.rejecting(reject):
                record = raw.parse()
                own = contexts_of(record)
                joined.put(_FOUND, prediction_id(record), raw, msgspec.json.encode(own))
        n_questions = 0
        for raw in iter_records(options.questions):
            with raw.rejecting(reject):
                record = raw.parse()
                given = contexts_of(record, options.passages_key) if options.passages_key in record else []
                for query in queries_of(record):
                    if options.template_seed is not None:
                        query = with_template_question(query, record, options.template_seed)
                    joined.open_question(query.query_id)
                    found = joined.get(_FOUND, query.query_id)
                    contexts = given if found is None else msgspec.json.decode(found, type=list[Hit])
                    n_questions += 1
                    yield replace(query, contexts=tuple(contexts))
        for query_id, raw in joined.without_question(_FOUND):
            reject(raw.bad(RecordError("unknown_question", f"{query_id!r} is not in {options.questions}")))
    if not n_questions:
        raise SetupError(f"{options.questions} has no questions that the model can read; name another file.")


def _check_form(options: ReadOptions, form: ReadForm) -> None:
    """Raises SetupError if an option does not fit the form."""
    for value, flag in ((options.first_sentences, "--first-sentences"), (options.reader.labels, "--label-names")):
        if value is not None and form != "fact-checking":
            raise SetupError(f"{flag} works only with --form fact-checking, not with {form}; leave it out.")


def _answers(
    reader: _OpenReader, questions: Sequence[Query], *, options: ReadOptions, form: ReadForm, prompt: Prompt
) -> Iterator[bytes | RecordError]:
    model, pages = reader.model, reader.pages
    count({"model_calls": 1, "model_questions": len(questions)})
    find_page = None if pages is None else pages.titled
    if form == "fact-checking":
        n_sentences = options.first_sentences
        return check_claims(questions, model, prompt=prompt, top=options.top, pages=pages, n_sentences=n_sentences)
    if form == "extractive":
        return extract_answers(questions, model, prompt=prompt, top=options.top, find_page=find_page)
    if (form == "fid" or form in RAG_FORMS) and not model.can_fuse:
        raise SetupError(
            f"--form {form}: {options.reader.model} has no encoder, which this form needs; use read, pig or best."
        )
    return answer_questions(questions, model, form=form, prompt=prompt, top=options.top, find_page=find_page)
