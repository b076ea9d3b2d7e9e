"""AmbER's user study: people choose which of three pages of a set a query is about, and mark the answer in that page.

A query is shown with its gold page and the pages of two other entities of its set. Annotators choose a page and mark
the answer in it. Systems are scored over the same three pages, in the order of their runs.

::

    tasks.jsonl | tasks.csv | tasks.json, tasks.xml    query_id, question and the pages, numbered
    passages.jsonl                                     the pages: passage_id, wikipedia_id, wikipedia_title, text
    key.jsonl                                          hidden: answers, pages, gold page, head or tail

Returned files have ``query_id``, ``worker_id``, ``label`` (the number of a page, or ``none``) and ``highlight``.

Source: Chen et al. (2021), who describe their study in words: queries of AmbER-H, each with three pages of its set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from statistics import fmean
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import base_name
from kbsource.identity import stable_sha256
from kbsource.kilt import kilt_texts
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import check_output
from kbsource.release.manifest import input_files
from mapping.amber.sets import N_TOKENS
from mapping.annotation.tasks import (
    CAMPAIGN,
    CAMPAIGN_TASKS,
    JUDGEMENTS,
    KEY,
    N_PAGES,
    PASSAGES,
    STUDY,
    TASKS,
    Reject,
    TaskForm,
    TaskSheet,
    checked_folder,
    highlight_span,
    import_annotations,
    named_in,
    passage_texts,
    write_task_folder,
)
from mapping.metrics.amber import parse_amber_prediction
from mapping.metrics.answers import answer_form
from mapping.options import AtLeast1, Checked, Name
from mapping.passages.forms import json_line
from mapping.sources.raw_records import (
    Json,
    check_shape,
    digits_or_text,
    iter_records,
    object_at,
    objects_at,
    text_at,
)

NONE = "none"
LABELS = (*(str(number) for number in range(1, N_PAGES + 1)), NONE)
_SHEET = TaskSheet(
    TASKS,
    "Which of the pages is the question about? Choose its number, and mark the answer in it.",
    ("question",),
    "pages",
    LABELS,
)


@dataclass(frozen=True, slots=True)
class StudyOptions(Checked):
    """Options of the study."""

    queries: Annotated[AtLeast1, Parameter("--sample")] = 100
    """Number of queries to sample."""
    words: AtLeast1 = N_TOKENS
    """Number of words shown of each page, from its beginning."""
    seed: Name = "amber"
    """Seed of every draw."""


class StudyQuery(NamedTuple):
    """A query with the pages that are shown."""

    query_id: str
    question: str
    answers: tuple[str, ...]
    is_head: bool
    page_ids: tuple[str, ...]  # ids of the pages, in display order
    gold: int  # position of the gold page among them


def queries_of_set(record: Json, seed: str) -> Iterator[StudyQuery | None]:
    """Reads the queries of an AmbER set, each with three of the set's pages; None for a query whose set has too few.

    Raises:
        RecordError: the record is not an AmbER set, or a query is a claim, which no words of a page answer.
    """
    named = object_at(record, "qids")
    pages = {qid: _page_ids(object_at(named, qid), "wikipedia") for qid in named}
    for qid, entity in named.items():
        for query in objects_at(entity, "queries"):
            query_id, output = text_at(query, "id"), query.get("output")
            output = output[0] if isinstance(output, list) and output else output
            if not isinstance(output, dict) or not isinstance(output.get("answer"), list):
                raise RecordError("wrong_type", f"{query_id!r} has no answers; give questions or slots, not claims")
            gold = _page_ids(output, "provenance")
            others = [own[0] for other, own in pages.items() if other != qid and own and own[0] not in gold]
            others = sorted(dict.fromkeys(others), key=lambda page: stable_sha256(seed, "page", query_id, page))
            if not gold or len(others) < N_PAGES - 1:
                yield None
                continue
            shown = sorted(
                [gold[0], *others[: N_PAGES - 1]], key=lambda page: stable_sha256(seed, "order", query_id, page)
            )
            answers = tuple(dict.fromkeys(map(str, output["answer"])))
            is_head = bool(entity.get("is_head"))
            yield StudyQuery(query_id, text_at(query, "input"), answers, is_head, tuple(shown), shown.index(gold[0]))


def _page_ids(record: Json, key: str) -> list[str]:
    return [digits_or_text(page, "wikipedia_id") for page in objects_at(record, key)]


def write_study(
    sets: str, source: KnowledgeSource, output: str, options: StudyOptions, form: TaskForm, *, reject: Reject
) -> dict[str, int]:
    """Writes the tasks of a study into an empty folder; returns counts.

    Args:
        sets: file of AmbER sets, of questions or slots.
        source: contains the pages.

    Raises:
        SetupError: the file is not of the expected kind, no query can be shown, or ``output`` is not empty.
    """
    check_output(output)
    check_shape(
        sets, iter_records(sets), lambda record: record.keys() >= {"name", "qids"}, expected="AmbER sets (name, qids)"
    )
    counts = Counter[str](queries=0, too_few_pages=0, page_not_in_release=0, sampled=0)

    def every() -> Iterator[StudyQuery]:
        for raw in iter_records(sets):
            with raw.rejecting(reject, stage="set"):
                for asked in queries_of_set(raw.parse(), options.seed):
                    counts["queries"] += 1
                    if asked is None:
                        counts["too_few_pages"] += 1
                    elif any(_shown_page(source, page_id, 1) is None for page_id in asked.page_ids):
                        counts["page_not_in_release"] += 1
                    else:
                        yield asked

    drawn = nsmallest(options.queries, every(), key=lambda asked: stable_sha256(options.seed, "query", asked.query_id))
    if not drawn:
        raise SetupError(
            f"{sets}: no query can be shown with {N_PAGES} pages: {counted(counts['queries'], 'queries')}, of which "
            f"{counts['too_few_pages']:,} with fewer pages in their sets, and {counts['page_not_in_release']:,} with a "
            "page that the release lacks."
        )
    counts["sampled"] = len(drawn)
    texts: dict[str, tuple[str, str]] = {}
    for page_id in (page_id for asked in drawn for page_id in asked.page_ids):
        found = _shown_page(source, page_id, options.words)
        assert found is not None
        texts[page_id] = found
    tasks = (
        {
            "query_id": asked.query_id,
            "question": asked.question,
            "pages": [
                {"number": str(number), "title": texts[page_id][0], "text": texts[page_id][1]}
                for number, page_id in enumerate(asked.page_ids, 1)
            ],
        }
        for asked in drawn
    )
    passages = (
        {"passage_id": page_id, "wikipedia_id": page_id, "wikipedia_title": title, "text": text}
        for page_id, (title, text) in sorted(texts.items())
    )
    write_task_folder(
        CAMPAIGN_TASKS,
        tasks,
        _SHEET,
        form,
        hidden={PASSAGES: map(json_line, passages), KEY: (json_line(asked._asdict()) for asked in drawn)},
        facts={
            "inputs": [asdict(file) for file in input_files([sets])],
            "options": {**asdict(options), "form": form, "about": STUDY},
            "counts": dict(counts),
        },
        output=output,
    )
    return dict(counts)


def _shown_page(source: KnowledgeSource, page_id: str, n_words: int) -> tuple[str, str] | None:
    """Returns title and beginning of a page; None if the release does not have it, or if it has no text."""
    page = source.by_id(int(page_id)) if page_id.isascii() and page_id.isdecimal() else None
    if page is None:
        return None
    words = " ".join(
        text.replace("Section::::", "").replace("BULLET::::", "") for text in kilt_texts(page)[0][1:]
    ).split()
    return (page.title, " ".join(words[:n_words])) if words else None


def import_choices(tasks: str, files: Sequence[str], output: str) -> dict[str, int]:
    """Writes the annotators' choices into an empty folder; returns counts. See ``campaign.import_judgements``."""
    manifest = checked_folder(CAMPAIGN_TASKS, tasks)
    texts = passage_texts(CAMPAIGN_TASKS, tasks, manifest)
    shown = {line["query_id"]: line["page_ids"] for line in CAMPAIGN_TASKS.lines(tasks, manifest, KEY)}
    for page_id in (page_id for pages in shown.values() for page_id in pages):
        named_in(texts, page_id, tasks, "page")
    labels: dict[tuple[str, str], str] = {}
    return import_annotations(
        tasks,
        manifest,
        files,
        output,
        id_name="query_id",
        row=lambda record: _choice(record, texts, shown, labels),
        expected="choices of pages (query_id, worker_id, label, highlight)",
        options={"about": STUDY},
    )


def _choice(
    record: Json, texts: Mapping[str, str], shown: Mapping[str, Sequence[str]], said: dict[tuple[str, str], str]
) -> dict[str, Any]:
    query_id, worker_id = text_at(record, "query_id"), digits_or_text(record, "worker_id")
    label = digits_or_text(record, "label").strip().lower()
    if query_id not in shown:
        raise RecordError("unknown_question", f"there is no query {query_id!r}")
    if label not in LABELS:
        raise RecordError("unknown_label", f"unknown label {label!r}; known labels are {', '.join(LABELS)}")
    if said.setdefault((query_id, worker_id), label) != label:
        raise RecordError("conflicting_label", f"worker {worker_id!r} contradicts an earlier choice for {query_id!r}")
    page_id = None if label == NONE else shown[query_id][int(label) - 1]
    row: dict[str, Any] = {"query_id": query_id, "worker_id": worker_id, "label": label, "page_id": page_id}
    highlight = str(record.get("highlight") or "").strip()
    if highlight and page_id is not None:
        start, end = highlight_span(highlight, texts[page_id])
        row |= {"highlight": texts[page_id][start:end], "start_char": start, "end_char": end}
    return row


class _Scores:
    """Document accuracy and exact match, over all queries, those about heads and those about tails."""

    def __init__(self) -> None:
        self._means: defaultdict[str, defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))

    def add(self, query: Mapping[str, Any], page_id: str | None, answer: str | None) -> None:
        """Counts the choice for a query."""
        gold = query["page_ids"][query["gold"]]
        for part in ("all", "head" if query["is_head"] else "tail"):
            self._means["document_accuracy"][part].append(page_id == gold)
            if answer is not None:
                self._means["em"][part].append(is_answer(answer, query["answers"]))

    def values(self) -> dict[str, dict[str, float]]:
        """Returns means by metric and part, 0 to 1."""
        return {
            metric: {part: fmean(values) for part, values in sorted(parts.items())}
            for metric, parts in self._means.items()
        }


def is_answer(text: str, answers: Iterable[str]) -> bool:
    """Returns whether a text is an answer, in the normal form of AmbER's evaluation.

    >>> is_answer("the Vietnam-War", ["Vietnam War"]), is_answer("", ["The"])
    (True, False)
    """
    form = answer_form(text.replace("-", " "))
    return bool(form) and any(form == answer_form(answer.replace("-", " ")) for answer in answers)


def report_study(folder: str, runs: Sequence[str], *, reject: Reject) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the scores of annotators and systems over the same pages, as JSON, and the choices for each query.

    A judgement without a highlight does not count as an exact match. A system's choice is the first of the three pages
    in its run. If the run contains none of the three pages, the choice counts as wrong, and the report counts the
    query.

    Args:
        folder: of an imported study.
        runs: files of predictions.
    """
    manifest = checked_folder(CAMPAIGN, folder)
    key = {line["query_id"]: line for line in CAMPAIGN.lines(folder, manifest, KEY)}
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for row in CAMPAIGN.lines(folder, manifest, JUDGEMENTS):
        named_in(key, row["query_id"], folder, "query")
        chosen.setdefault((row["query_id"], row["worker_id"]), row)
    people, workers = _Scores(), defaultdict[str, _Scores](_Scores)
    by_query: dict[str, dict[str, Any]] = {
        query_id: {"query_id": query_id, "is_head": query["is_head"], "chosen": {}, "systems": {}}
        for query_id, query in key.items()
    }
    for (query_id, worker), row in sorted(chosen.items()):
        for scores in (people, workers[worker]):
            scores.add(key[query_id], row["page_id"], row.get("highlight", ""))
        is_right = row["page_id"] == key[query_id]["page_ids"][key[query_id]["gold"]]
        by_query[query_id]["chosen"][worker] = {"is_right": is_right, "highlight": row.get("highlight")}
    systems = {base_name(run): _score_run(run, key, by_query, reject) for run in runs}
    n_judged = sum(bool(judgement["chosen"]) for judgement in by_query.values())
    summary = {
        "queries": {"asked": len(key), "judged": n_judged, "unjudged": len(key) - n_judged},
        "people": {"judgements": len(chosen), **people.values()},
        "workers": {name: scores.values() for name, scores in sorted(workers.items())},
        "systems": systems,
        "rejected": manifest.facts["counts"]["rejected"],
    }
    return summary, list(by_query.values())


def _score_run(
    run: str, key: Mapping[str, Mapping[str, Any]], by_query: Mapping[str, dict[str, Any]], reject: Reject
) -> dict[str, Any]:
    check_shape(
        run, iter_records(run), lambda record: record.keys() >= {"id", "output"}, expected="predictions (id, output)"
    )
    found: dict[str, tuple[str | None, str | None]] = {}
    for raw in iter_records(run):
        with raw.rejecting(reject, stage="run"):
            record = raw.parse()
            query_id = digits_or_text(record, "id")
            if query_id in key and query_id not in found:
                given = parse_amber_prediction(record)
                page_id = next((page for page in given.pages if page in key[query_id]["page_ids"]), None)
                found[query_id] = page_id, given.answer
    scores = _Scores()
    has_answers = any(answer is not None for _, answer in found.values())
    for query_id, query in key.items():
        page_id, answer = found.get(query_id, (None, None))
        scores.add(query, page_id, (answer or "") if has_answers else None)
        is_right = page_id == query["page_ids"][query["gold"]]
        by_query[query_id]["systems"][base_name(run)] = {"is_right": is_right, "answer": answer}
    n_found = sum(page_id is not None for page_id, _ in found.values())
    return {"found_a_page": n_found, "without_prediction": len(key) - len(found), **scores.values()}
