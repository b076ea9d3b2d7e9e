"""Candidates of every question of a gold file, and the tasks that people are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import orjson
import spacy

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, atomic_write
from kbsource.kilt import kilt_texts
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord, Page
from kbsource.release.layout import check_output
from kbsource.release.manifest import code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_lines
from mapping.campaign.candidates import Candidate, CandidateOptions, Passage, choose_candidates
from mapping.campaign.kind import CAMPAIGN_TASKS, KEY, PASSAGES, TASKS
from mapping.metrics.kilt.provenance import Provenance, Span
from mapping.metrics.kilt.records import GoldRecord, id_of, parse_gold, parse_prediction
from mapping.sources.forms.task_files import TaskForm, TaskSheet, write_tasks
from mapping.sources.reading.fields import Json, objects_at, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_lines
from mapping.sources.reading.joined import Joined
from mapping.sources.reading.labels import iter_labels

LABELS = ("yes", "no", "partial")
_SHEET = TaskSheet(
    TASKS,
    "Does this passage hold enough to answer the question? Mark what does.",
    ("question", "title"),
    "text",
    LABELS,
)
_PARAGRAPHS = ("start_paragraph_id", "end_paragraph_id")

Reject = Callable[[BadRecord], None]


def write_candidates(
    gold: str,
    runs: Sequence[str],
    output: str,
    storage: Storage,
    options: CandidateOptions,
    *,
    source: KnowledgeSource | None,
    reject: Reject,
    scratch_folder: str | None = None,
) -> dict[str, int]:
    """Writes the candidates of every question, a JSON object a line, and gives counts. Memory: one question.

    Args:
        gold: KILT file with the questions.
        runs: predictions of each system. A place without a ``text`` stands for the first paragraph of its page.
        output: file to write.
        storage: of all files.
        options: which passages are taken.
        source: release with the texts of pages; None where every place has a text.
        reject: called with every line that cannot be used.
        scratch_folder: where runs are kept meanwhile; None for the system's.

    Raises:
        SetupError: a file cannot be read or is another one; a gold passage is wanted, and there is no release.
    """
    if options.with_gold and source is None:
        raise SetupError("--with-gold needs the text of the gold provenance: give the release with --kb.")
    texts = _Texts(source)
    stop_words = frozenset() if options.stop_words else frozenset(spacy.blank(options.language).Defaults.stop_words)
    counts: Counter[str] = Counter(questions=0, passages=0, without_candidates=0, places_without_text=0)
    with Joined(scratch_folder) as joined, atomic_write(storage, output) as file:
        for number, run in enumerate(runs):
            for raw, record in _records(run, storage, reject, "run"):
                try:
                    spans = parse_prediction(record).provenance or ()
                    joined.put(f"run{number}", id_of(record), raw, orjson.dumps(spans))
                except RecordError as error:
                    reject(raw.bad(error, stage="run"))
        for raw, record in _records(gold, storage, reject, "gold"):
            try:
                question_id, asked = id_of(record), parse_gold(record)
                joined.open_question(question_id)
            except RecordError as error:
                reject(raw.bad(error, stage="gold"))
                continue
            found = [joined.get(f"run{number}", question_id) for number in range(len(runs))]
            passages = [texts.passages(orjson.loads(content)) if content else [] for content in found]
            right = texts.gold(asked) if options.with_gold else None
            candidates = choose_candidates(
                question_id, asked.answers, passages, right, options=options, stop_words=stop_words
            )
            counts["questions"] += 1
            counts["passages"] += len(candidates)
            counts["without_candidates"] += not candidates
            value = {
                "question_id": question_id,
                "input": asked.text,
                "answers": asked.answers,
                "passages": [_passage_json(candidate, runs) for candidate in candidates],
            }
            file.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
        for number in range(len(runs)):
            for question_id, raw in joined.without_question(f"run{number}"):
                reject(raw.bad(RecordError("unknown_id", f"{question_id!r} is not in {gold}"), stage="run"))
    counts["places_without_text"] = texts.n_lacking
    return dict(counts)


def _records(path: str, storage: Storage, reject: Reject, role: str) -> Iterator[tuple[RawRecord, Json]]:
    check_shape(
        path,
        iter_labels(storage, path),
        lambda record: "id" in record and "output" in record,
        expected=f"records of KILT with id and output ({role})",
    )
    for raw in iter_labels(storage, path):
        try:
            yield raw, raw.parse()
        except RecordError as error:
            reject(raw.bad(error, stage=role))


class _Texts:
    """Passages of places, with texts out of a release where they have none.

    Attributes:
        n_lacking: places that have no text, and no page in the release.
    """

    def __init__(self, source: KnowledgeSource | None) -> None:
        self._source = source
        self.n_lacking = 0

    def passages(self, provenance: Provenance) -> list[Passage]:
        found = (self._passage(span) for span in provenance)
        return [passage for passage in found if passage is not None]

    def gold(self, record: GoldRecord) -> Passage | None:
        """Gives the first gold place as its whole paragraphs."""
        for span in (span for output in record.outputs for span in output):
            page = self._page(span)
            paragraphs = _paragraphs(span)
            if page is not None and paragraphs is not None:
                text = " ".join(kilt_texts(page)[0][paragraphs[0] : paragraphs[1] + 1]).strip()
                if text:
                    return Passage(str(page.page_id), page.title, paragraphs, text)
        return None

    def _passage(self, span: Span) -> Passage | None:
        title = str(span.get("title") or span.get("wikipedia_title") or "")
        if isinstance(span.get("text"), str) and span["text"].strip():
            return Passage(str(span.get("wikipedia_id", "")).strip(), title, _paragraphs(span), span["text"])
        page = self._page(span)
        texts = kilt_texts(page)[0][1:] if page is not None else []
        number = next((number for number, text in enumerate(texts, 1) if not text.startswith("Section::::")), None)
        if page is None or number is None:
            self.n_lacking += 1
            return None
        return Passage(str(page.page_id), page.title, (number, number), texts[number - 1].strip())

    def _page(self, span: Span) -> Page | None:
        page_id = str(span.get("wikipedia_id", "")).strip()
        if self._source is None or not (page_id.isascii() and page_id.isdecimal()):
            return None
        return self._source.by_id(int(page_id))


def _paragraphs(span: Span) -> tuple[int, int] | None:
    first, last = (span.get(name) for name in _PARAGRAPHS)
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _passage_json(candidate: Candidate, runs: Sequence[str]) -> Json:
    passage = candidate.passage
    return {
        "passage_id": candidate.passage_id,
        "wikipedia_id": passage.page_id,
        "wikipedia_title": passage.title,
        "text": passage.text,
        "systems": [runs[system] for system in candidate.systems],
        "is_gold": candidate.is_gold,
        "overlap": candidate.overlap,
    }


def write_campaign_tasks(candidates: str, output: str, storage: Storage, form: TaskForm) -> dict[str, int]:
    """Writes the tasks of a file of candidates into an empty folder, a passage of a question each; gives counts.

    Raises:
        SetupError: the file is another one, or ``output`` is not empty; a DataError for a line that is none of it.
    """
    check_shape(
        candidates,
        iter_lines(storage, candidates),
        lambda record: "question_id" in record and "passages" in record,
        expected="candidates, as kbsource campaign candidates writes them",
    )
    check_output(output, storage)
    n_tasks = Counter[str]()

    def asked() -> Iterator[tuple[Json, Json]]:
        for raw in iter_lines(storage, candidates):
            try:
                question = raw.parse()
                yield from ((question, passage) for passage in objects_at(question, "passages"))
            except RecordError as error:
                raise SetupError(
                    f"{candidates}, line {raw.line}: {error.detail}; write the candidates again."
                ) from error

    def tasks() -> Iterator[Json]:
        for question, passage in asked():
            n_tasks["tasks"] += 1
            yield {
                "question_id": question["question_id"],
                "passage_id": passage["passage_id"],
                "question": question["input"],
                "title": passage["wikipedia_title"],
                "text": text_at(passage, "text"),
            }

    shown = ("passage_id", "wikipedia_id", "wikipedia_title", "text")
    hidden = ("passage_id", "systems", "is_gold", "overlap")
    passages = ({name: passage[name] for name in shown} for _, passage in asked())
    key = (
        {"question_id": question["question_id"], "answers": question["answers"]}
        | {name: passage[name] for name in hidden}
        for question, passage in asked()
    )
    with ReleaseFolder(output, storage, kind=CAMPAIGN_TASKS):
        entries = write_tasks(tasks(), _SHEET, form, output=output, storage=storage)
        for name, records in ((PASSAGES, passages), (KEY, key)):
            lines = (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)
            entries.append(write_lines(lines, name, output=output, storage=storage))
        facts = {
            "inputs": [asdict(file) for file in input_files([candidates], storage)],
            "options": {"form": form},
            "counts": dict(n_tasks),
            "code": asdict(code_facts()),
        }
        commit(CAMPAIGN_TASKS, CAMPAIGN_TASKS.listing(entries, facts), output, storage)
    return dict(n_tasks)
