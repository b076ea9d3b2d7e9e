"""Questions and passages through a reader, some at a time, by one pipeline; what it answers, as predictions.

Beside the output lies, while it is made, a folder that is called after what decides its bytes: the questions with their
passages, and the answers to those that were asked, so that a run that was killed goes on behind these.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, absolute, base_name
from kbsource.identity import stable_sha256
from kbsource.records import BadRecord
from kbsource.release.manifest import code_facts
from kbsource.rows import Row
from mapping.contexts.gold import Reject
from mapping.retrieval.queries import queries_of
from mapping.retrieval.reader import (
    TOO_LONG,
    Asked,
    Context,
    Prompt,
    answered,
    asked_of,
    contexts_of,
    found_id,
    read_prompt,
)
from mapping.sources.raw_records import iter_lines
from mapping.sources.scratch import Joined
from pipelines.jobs.through_model import through_model
from pipelines.options import ReadOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count
from pipelines.runners.running import check_paths, new_pipeline

QUESTIONS_TOGETHER = 16
"""That a worker takes at once; batches are made of these alone, so that the answers depend on nothing else."""
_FOUND = "found"


class _Line(Row):
    """What a question came to: a line, or why there is none."""

    line: bytes = b""
    why: str = ""


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
    pipeline = new_pipeline(flags)
    check_paths(flags, options.output)
    prompt, opener = read_prompt(options.prompt, options.form), _generator(options)
    output, faults = absolute(options.output), list[BadRecord]()
    staging = Folder.of(f"{output}.{_job(options, prompt, opener.sha256(options.reader))}.partial")
    n_questions, read = through_model(
        pipeline,
        ([one] for one in _asked(options, faults.append)),
        Asked,
        _Line,
        name="read",
        together=QUESTIONS_TOGETHER,
        staging=staging,
        model=options.reader,
        open_model=partial(opener, options.reader),
        answer=partial(_answers, options=options, prompt=prompt),
        progress=progress,
    )
    n_bare = n_too_long = 0
    with Folder.of(output).create() as target:
        for asked, line in (pair for questions, lines in read for pair in zip(questions, lines, strict=True)):
            n_bare += options.form != "closed" and not asked.contexts
            if line.why:
                detail = f"{asked.query_id}: {line.why}"
                faults.append(BadRecord("read", asked.query_id, TOO_LONG, detail, base_name(options.questions), -1))
                n_too_long += 1
            else:
                target.write(line.line)
    staging.delete()
    return Answers(n_questions, n_bare, n_too_long, faults)


def _generator(options: ReadOptions) -> Any:
    module, _, name = options.reader.generator.partition(":")
    return getattr(importlib.import_module(module), name)


def _job(options: ReadOptions, prompt: Prompt, model: str) -> str:
    """What decides the bytes of the output."""
    files = [options.questions, *([options.retrieved] if options.retrieved else [])]
    reader = options.reader
    given = (options.form, options.passages_key, options.top, reader.precision, reader.max_tokens, reader.new_tokens)
    decides = (*(Folder.of(path).sha256() for path in files), repr(given), repr(prompt), str(reader.batch_tokens))
    return stable_sha256(*decides, model, reader.device, repr(code_facts()))[:16]


def _asked(options: ReadOptions, reject: Reject) -> Iterator[Asked]:
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
                    yield asked_of(query, found)
            except RecordError as error:
                reject(raw.bad(error))
        for query_id, raw in joined.without_question(_FOUND):
            reject(raw.bad(RecordError("unknown_question", f"{query_id!r} is not in {options.questions}")))
    if not n_questions:
        raise SetupError(f"{options.questions} has no questions that can be asked; name another file.")


def _answers(model: Any, questions: Sequence[Asked], *, options: ReadOptions, prompt: Prompt) -> Iterator[_Line]:
    if options.form == "fid" and not model.can_fuse:
        raise SetupError(f"--form fid: {options.reader.model} has no encoder; use read or pig.")
    count({"model_calls": 1, "model_questions": len(questions)})
    found = answered(questions, model, form=options.form, prompt=prompt, top=options.top)
    yield from (_Line(one) if isinstance(one, bytes) else _Line(why=one[1]) for one in found)
