"""Questions and passages through a reader, some at a time, by one pipeline; what it answers, as predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder
from kbsource.records import BadRecord
from mapping.contexts.gold import Reject
from mapping.retrieval.queries import Context, Query, queries_of
from mapping.retrieval.reader import Prompt, answered, contexts_of, read_prompt
from mapping.retrieval.runs import found_id
from mapping.sources.raw_records import iter_lines
from mapping.sources.scratch import Joined
from pipelines.jobs.through_model import through_model
from pipelines.options import ReadOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count

QUESTIONS_TOGETHER = 16
"""That a worker takes at once; batches are made of these alone, so that the answers depend on nothing else."""
_FOUND = "found"


class Answers(NamedTuple):
    """What became of questions."""

    n_questions: int
    n_without_passages: int
    n_too_long: int  # that the model cannot take
    faults: list[BadRecord]  # lines that cannot be used, questions that cannot be asked


def read_questions(options: ReadOptions, *, flags: Sequence[str], progress: Progress) -> Answers:
    """Writes predictions.

    Raises:
        SetupError: a file, the prompt or the model is wrong, or the model has no encoder for ``fid``.
    """
    prompt, opener = read_prompt(options.prompt, options.form), resolve_name(options.reader.generator)
    faults, n_bare = list[BadRecord](), 0

    def asked() -> Iterator[Query]:
        nonlocal n_bare
        for one in _asked(options, faults.append):
            n_bare += options.form != "closed" and not one.contexts
            yield one

    n_questions, refused = through_model(
        asked(),
        options.output,
        source=options.questions,
        name="read",
        together=QUESTIONS_TOGETHER,
        decides=_decides(options, prompt, opener.sha256(options.reader)),
        model=options.reader,
        open_model=partial(opener, options.reader),
        answer=partial(_answers, options=options, prompt=prompt),
        flags=flags,
        progress=progress,
    )
    return Answers(n_questions, n_bare, len(refused), [*faults, *refused])


def _decides(options: ReadOptions, prompt: Prompt, model: str) -> Iterator[str]:
    yield from (Folder.of(path).sha256() for path in (options.questions, options.retrieved) if path is not None)
    reader = options.reader
    given = (options.form, options.passages_key, options.top, reader.precision, reader.max_tokens, reader.new_tokens)
    yield from (repr(given), repr(prompt), str(reader.batch_tokens), model, reader.device)


def _asked(options: ReadOptions, reject: Reject) -> Iterator[Query]:
    """The questions of a file with their passages; memory holds one."""
    with Joined() as joined:
        for raw in iter_lines(options.retrieved) if options.retrieved else ():
            try:
                record = raw.parse()
                own = [(one.document, one.page_id, one.title, one.text) for one in contexts_of(record)]
                joined.put(_FOUND, found_id(record), raw, orjson.dumps(own))
            except RecordError as error:
                reject(raw.bad(error))
        n_questions = 0
        for raw in iter_lines(options.questions):
            try:
                record = raw.parse()
                given = contexts_of(record, options.passages_key) if options.passages_key in record else []
                for query in queries_of(record):
                    joined.open_question(query.query_id)
                    content = joined.get(_FOUND, query.query_id)
                    found = given if content is None else [Context(*one) for one in orjson.loads(content)]
                    n_questions += 1
                    yield replace(query, contexts=tuple(found))
            except RecordError as error:
                reject(raw.bad(error))
        for query_id, raw in joined.without_question(_FOUND):
            reject(raw.bad(RecordError("unknown_question", f"{query_id!r} is not in {options.questions}")))
    if not n_questions:
        raise SetupError(f"{options.questions} has no questions that can be asked; name another file.")


def _answers(
    model: Any, questions: Sequence[Query], *, options: ReadOptions, prompt: Prompt
) -> Iterator[bytes | RecordError]:
    if options.form == "fid" and not model.can_fuse:
        raise SetupError(f"--form fid: {options.reader.model} has no encoder; use read or pig.")
    count({"model_calls": 1, "model_questions": len(questions)})
    return answered(questions, model, form=options.form, prompt=prompt, top=options.top)
