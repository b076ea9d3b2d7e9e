"""Passage annotation as in KILT's campaign: selection of passages, tasks, import of judgements, and results.

::

    tasks.jsonl | tasks.csv | tasks.json, tasks.xml    the tasks for annotators
    passages.jsonl                                     passage_id, wikipedia_id, wikipedia_title, text
    key.jsonl                                          hidden: input, answers, which systems found each passage

    judgements.jsonl                                   the judgements, a line per highlight
    passages.jsonl, key.jsonl                          as in the tasks
    rejected/                                          lines that could not be used

Source: Petroni et al., KILT (2021), section 4: four passages from four systems, each with a tenth of the tokens of a
gold answer. The paper does not define how tokens are counted; this module does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.identity import stable_sha256
from kbsource.kilt import kilt_texts
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest, input_files
from kbsource.release.output import output_file
from mapping.annotation.tasks import (
    CAMPAIGN,
    CAMPAIGN_TASKS,
    JUDGEMENTS,
    KEY,
    N_ANNOTATIONS,
    PASSAGES,
    TASKS,
    CandidateOptions,
    Reject,
    TaskForm,
    TaskSheet,
    checked_folder,
    fleiss_kappa,
    highlight_span,
    import_annotations,
    mean_kappa,
    named_in,
    option_of,
    pair_kappas,
    passage_texts,
    write_task_folder,
)
from mapping.metrics.answers import answer_form, rouge_l
from mapping.metrics.kilt import GoldRecord, id_of, parse_kilt_gold, parse_kilt_prediction
from mapping.metrics.ranks import Provenance, Span
from mapping.passages.forms import json_line
from mapping.sources.campaign import verdict_of
from mapping.sources.raw_records import (
    Json,
    RawRecord,
    check_lines,
    check_shape,
    digits_or_text,
    iter_lines,
    iter_records,
    objects_at,
    text_at,
)
from mapping.sources.scratch import QuestionFiles

_ID_CHARS = 16


class FoundPassage(NamedTuple):
    """A passage found by a system."""

    page_id: str  # id of the page; empty if the run does not contain it
    title: str  # title of the page; empty if the run does not contain it
    paragraphs: tuple[int, int] | None  # first and last paragraph, in KILT's numbering; None if unknown
    text: str

    @property
    def page(self) -> str:
        """The id of the page, or its title if the run does not contain the id."""
        return self.page_id or self.title


class CandidatePassage(NamedTuple):
    """A passage to be shown to annotators."""

    passage_id: str  # id computed from question, page and text; does not reveal which system found the passage
    passage: FoundPassage
    systems: tuple[int, ...]  # numbers of the systems that found the passage; empty if no system did
    is_gold: bool  # true if the passage is the gold provenance
    overlap: float  # share of the tokens of a gold answer that the passage contains


def token_overlap(answers: Iterable[str], text: str, stop_words: Collection[str]) -> float:
    """Returns the highest share, over the answers, of an answer's distinct tokens that a text contains.

    Answers are normalised and tokenised, without stop words; an answer without tokens is ignored.

    >>> token_overlap(["the Lake of Miravel"], "It rises in Miravel.", {"of", "in"})
    0.5
    """
    held = set(answer_form(text).split())
    sought = (set(answer_form(answer).split()) - set(stop_words) for answer in answers)
    return max((len(tokens & held) / len(tokens) for tokens in sought if tokens), default=0.0)


def choose_candidates(
    question_id: str,
    answers: Sequence[str],
    runs: Sequence[Sequence[FoundPassage]],
    gold: FoundPassage | None,
    *,
    options: CandidateOptions,
    stop_words: Collection[str],
) -> list[CandidatePassage]:
    """Returns the passages to be shown for a question, in display order.

    The gold passage is always included. Then come the best passage of every system, the second best of every system,
    and so on, until there are enough; ``runs`` contain the passages of each system, best first. Passages that are
    already included, or contain too little of the answers, are skipped.
    """
    chosen: list[tuple[FoundPassage, list[int], bool, float]] = []
    if gold is not None:
        chosen.append((gold, [], True, token_overlap(answers, gold.text, stop_words)))
    for of_rank in zip_longest(*runs):
        for system, passage in enumerate(of_rank):
            if passage is None:
                continue
            same = next((entry for entry in chosen if is_same_passage(entry[0], passage)), None)
            if same is not None:
                if system not in same[1]:
                    same[1].append(system)
            elif len(chosen) < options.per_question:
                overlap = token_overlap(answers, passage.text, stop_words)
                if overlap >= options.least_overlap:
                    chosen.append((passage, [system], False, overlap))
    candidates = [
        CandidatePassage(
            stable_sha256(question_id, passage.page, passage.text)[:_ID_CHARS],
            passage,
            tuple(sorted(systems)),
            is_gold,
            overlap,
        )
        for passage, systems, is_gold, overlap in chosen
    ]
    return sorted(candidates, key=lambda candidate: stable_sha256(options.seed, question_id, candidate.passage_id))


def is_same_passage(first: FoundPassage, second: FoundPassage) -> bool:
    """Returns whether two passages of a page have the same text or share a paragraph; if paragraphs are unknown,
    whether one contains the other."""
    if first.page != second.page or first.text == second.text:
        return first.page == second.page
    if first.paragraphs is not None and second.paragraphs is not None:
        return first.paragraphs[0] <= second.paragraphs[1] and second.paragraphs[0] <= first.paragraphs[1]
    forms = answer_form(first.text), answer_form(second.text)
    return forms[0] in forms[1] or forms[1] in forms[0]


LABELS = ("yes", "no", "partial")
_SHEET = TaskSheet(
    TASKS,
    "Does this passage contain enough to answer the question? If so, mark the text that answers it.",
    ("question", "title"),
    "text",
    LABELS,
    further=("other_passage",),
    help="If none of the passages of a question is enough, give another passage of Wikipedia that answers it, or "
    "explain why you found none.",
)
_PARAGRAPHS = ("start_paragraph_id", "end_paragraph_id")


def write_candidates(
    gold: str,
    runs: Sequence[str],
    output: str,
    options: CandidateOptions,
    *,
    source: KnowledgeSource | None,
    reject: Reject,
) -> dict[str, int]:
    """Writes the candidates of every question, one JSON object per line; returns counts. Memory: one question.

    ``runs`` are the predictions of each system. If a location has no ``text``, the first paragraph of its page is read
    from ``source``.

    Raises:
        SetupError: a file cannot be read or is not of the expected kind; or a gold passage is requested without a
            release.
    """
    if options.with_gold and source is None:
        raise SetupError("--with-gold needs the text of the gold provenance; name the release with --kb.")
    texts = _Texts(source)
    stop_words: frozenset[str] = frozenset()
    if not options.stop_words:
        import spacy  # not needed for importing judgements

        stop_words = frozenset(spacy.blank(options.language).Defaults.stop_words)
    counts: Counter[str] = Counter(questions=0, passages=0, without_candidates=0, places_without_text=0)
    with QuestionFiles() as joined, output_file(output) as file:
        for number, run in enumerate(runs):
            for raw, record in _records(run, reject, "run"):
                with raw.rejecting(reject, stage="run"):
                    spans = parse_kilt_prediction(record).provenance or ()
                    joined.put(f"run{number}", id_of(record), raw, orjson.dumps(spans))
        for raw, record in _records(gold, reject, "gold"):
            try:
                question_id, asked = id_of(record), parse_kilt_gold(record)
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
            file.write(json_line(value))
        for number in range(len(runs)):
            for question_id, raw in joined.without_question(f"run{number}"):
                reject(raw.bad(RecordError("unknown_id", f"{question_id!r} is not in {gold}"), stage="run"))
    counts["places_without_text"] = texts.n_lacking
    return dict(counts)


def _records(path: str, reject: Reject, role: str) -> Iterator[tuple[RawRecord, Json]]:
    check_shape(
        path,
        iter_records(path),
        lambda record: "id" in record and "output" in record,
        expected=f"records of KILT with id and output ({role})",
    )
    for raw in iter_records(path):
        with raw.rejecting(reject, stage=role):
            yield raw, raw.parse()


class _Texts:
    """Makes passages from locations; missing texts are read from a release."""

    def __init__(self, source: KnowledgeSource | None) -> None:
        self._source = source
        self.n_lacking = 0  # locations without text whose page is not in the release

    def passages(self, provenance: Provenance) -> list[FoundPassage]:
        found = (self._passage(span) for span in provenance)
        return [passage for passage in found if passage is not None]

    def gold(self, record: GoldRecord) -> FoundPassage | None:
        """Returns the first gold span, extended to whole paragraphs."""
        for span in (span for output in record.outputs for span in output):
            page = self._page(span)
            paragraphs = _paragraphs(span)
            if page is not None and paragraphs is not None:
                text = " ".join(kilt_texts(page)[0][paragraphs[0] : paragraphs[1] + 1]).strip()
                if text:
                    return FoundPassage(str(page.page_id), page.title, paragraphs, text)
        return None

    def _passage(self, span: Span) -> FoundPassage | None:
        title = str(span.get("title") or span.get("wikipedia_title") or "")
        if isinstance(span.get("text"), str) and span["text"].strip():
            return FoundPassage(str(span.get("wikipedia_id") or "").strip(), title, _paragraphs(span), span["text"])
        page = self._page(span)
        texts = kilt_texts(page)[0][1:] if page is not None else []
        number = next((number for number, text in enumerate(texts, 1) if not text.startswith("Section::::")), None)
        if page is None or number is None:
            self.n_lacking += 1
            return None
        return FoundPassage(str(page.page_id), page.title, (number, number), texts[number - 1].strip())

    def _page(self, span: Span) -> Page | None:
        page_id = str(span.get("wikipedia_id", "")).strip()
        if self._source is None or not (page_id.isascii() and page_id.isdecimal()):
            return None
        return self._source.by_id(int(page_id))


def _paragraphs(span: Span) -> tuple[int, int] | None:
    first, last = (span.get(name) for name in _PARAGRAPHS)
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def _passage_json(candidate: CandidatePassage, runs: Sequence[str]) -> Json:
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


def write_campaign_tasks(
    candidates: str, output: str, form: TaskForm, *, n_annotations: int = N_ANNOTATIONS
) -> dict[str, int]:
    """Writes the tasks for a file of candidates into an empty folder, one task per passage of a question; returns
    counts.

    Each task states how many annotators should judge it.

    Raises:
        SetupError: the file is not of the expected kind, or ``output`` is not empty; a DataError for an invalid line.
    """
    check_lines(
        candidates,
        lambda record: "question_id" in record and "passages" in record,
        expected="candidates, as kbsource campaign candidates writes them",
    )
    check_output(output)
    n_tasks = Counter[str]()

    def questions() -> Iterator[tuple[Json, Json]]:
        for raw in iter_lines(candidates):
            try:
                question = raw.parse()
                yield from ((question, passage) for passage in objects_at(question, "passages"))
            except RecordError as error:
                raise SetupError(
                    f"{candidates}, line {raw.line}: {error.detail}; write the candidates again."
                ) from error

    def tasks() -> Iterator[Json]:
        for question, passage in questions():
            n_tasks["tasks"] += 1
            yield {
                "question_id": question["question_id"],
                "passage_id": passage["passage_id"],
                "question": question["input"],
                "title": passage["wikipedia_title"],
                "text": text_at(passage, "text"),
                "n_annotations": n_annotations,
            }

    shown = ("passage_id", "wikipedia_id", "wikipedia_title", "text")
    hidden = ("passage_id", "systems", "is_gold", "overlap")
    passages = ({name: passage[name] for name in shown} for _, passage in questions())
    key = (
        {"question_id": question["question_id"], "answers": question["answers"]}
        | {name: passage[name] for name in hidden}
        for question, passage in questions()
    )
    write_task_folder(
        CAMPAIGN_TASKS,
        tasks(),
        _SHEET,
        form,
        hidden={PASSAGES: map(json_line, passages), KEY: map(json_line, key)},
        facts={
            "inputs": [asdict(file) for file in input_files([candidates])],
            "options": {"form": form, "annotations": n_annotations, "about": "passages"},
            "counts": n_tasks,
        },
        output=output,
    )
    return dict(n_tasks)


LEAST_ROUGE = 0.15
"""An accepted passage with a lower ROUGE-L against every answer is listed for manual review. Source: Petroni et al.,
KILT (2021), section 4."""


def import_judgements(tasks: str, files: Sequence[str], output: str) -> dict[str, int]:
    """Writes judgements into an empty folder, each highlight with its location in the passage; returns counts.

    Files are JSON Lines, CSV, or Label Studio exports. Rows without a label, from an incomplete sheet, are skipped and
    counted. If one annotator gave two labels to a passage, the first one counts. Memory: the passages and labels of the
    campaign.

    Raises:
        SetupError: the tasks were changed after they were written, a file is not of the expected kind, or ``output`` is
            not empty.
    """
    manifest = checked_folder(CAMPAIGN_TASKS, tasks)
    texts = passage_texts(CAMPAIGN_TASKS, tasks, manifest)
    questions = {line["passage_id"]: line["question_id"] for line in CAMPAIGN_TASKS.lines(tasks, manifest, KEY)}
    for passage_id in texts:
        named_in(questions, passage_id, tasks, "passage")
    labels: dict[tuple[str, str], str] = {}
    return import_annotations(
        tasks,
        manifest,
        files,
        output,
        id_name="passage_id",
        row=lambda record: _judgement(record, texts, questions, labels),
        expected="judged passages",
        options={"annotations": _annotations(manifest), "about": "passages"},
    )


def _judgement(
    record: Json, texts: dict[str, str], questions: dict[str, str], labels_given: dict[tuple[str, str], str]
) -> dict[str, Any]:
    passage_id, worker_id = digits_or_text(record, "passage_id"), digits_or_text(record, "worker_id")
    label = text_at(record, "label").strip().lower()
    if passage_id not in texts:
        raise RecordError("unknown_passage", f"there is no passage {passage_id!r}")
    if label not in LABELS:
        raise RecordError("unknown_label", f"unknown label {label!r}; known labels are {', '.join(LABELS)}")
    if labels_given.setdefault((passage_id, worker_id), label) != label:
        raise RecordError(
            "conflicting_label", f"worker {worker_id!r} contradicts an earlier judgement of passage {passage_id!r}"
        )
    row: dict[str, Any] = {
        "question_id": questions[passage_id],
        "passage_id": passage_id,
        "worker_id": worker_id,
        "label": label,
    }
    highlight = str(record.get("highlight") or "").strip()
    if highlight:
        start, end = highlight_span(highlight, texts[passage_id])
        row |= {"highlight": texts[passage_id][start:end], "start_char": start, "end_char": end}
    for name in ("free_text", "other_passage"):
        if record.get(name):
            row[name] = str(record[name])
    return row


def _annotations(manifest: ListingManifest) -> int:
    """Returns how many annotators should judge each passage."""
    given = option_of(manifest, "annotations")
    return given if isinstance(given, int) else N_ANNOTATIONS


def report_campaign(folder: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the results of a campaign: counts and agreement as JSON; and for each question its outcome, the judged
    passages, and which of them need manual review.

    A passage is provenance if ``MIN_ACCEPTED`` annotators accept it. It is partial evidence if only one annotator
    accepts it, or if any annotator labels it partial. A question without provenance is dropped. An annotator who
    accepts no passage of a question must supply another passage, or explain why Wikipedia has no such passage. The
    report counts these annotators.

    Raises:
        SetupError: the folder is not a campaign, or was changed after it was written.
    """
    manifest = checked_folder(CAMPAIGN, folder)
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    written: defaultdict[tuple[str, str], dict[str, dict[str, None]]] = defaultdict(dict)
    for row in CAMPAIGN.lines(folder, manifest, JUDGEMENTS):
        labels[row["passage_id"]][row["worker_id"]] = row["label"]
        for name in row.keys() & {"other_passage", "free_text"}:
            written[row["question_id"], row["worker_id"]].setdefault(name, {})[row[name]] = None
    n_wanted, n_short = _annotations(manifest), 0
    accepted_by: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    texts = passage_texts(CAMPAIGN, folder, manifest)
    by_question: dict[str, dict[str, Any]] = {}
    workers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    n_fates: Counter[str] = Counter()
    none_chosen = Counter(people=0, with_other_passage=0, with_explanation=0, without_either=0)
    for line in CAMPAIGN.lines(folder, manifest, KEY):
        said = labels.get(line["passage_id"], {})
        n_short += len(said) < n_wanted
        for worker, label in said.items():
            of_question = accepted_by[line["question_id"]]
            of_question[worker] = of_question.get(worker, False) or label == "yes"
            workers[worker]["judged"] += 1
            workers[worker]["gold_judged"] += line["is_gold"]
            workers[worker]["gold_accepted"] += line["is_gold"] and label == "yes"
        verdict = verdict_of(said) if said else "unjudged"
        text = named_in(texts, line["passage_id"], folder, "passage")
        rouge = max((rouge_l(text, answer) for answer in line["answers"]), default=0.0)
        question = by_question.setdefault(line["question_id"], {"question_id": line["question_id"], "passages": []})
        question["passages"].append(
            {
                "passage_id": line["passage_id"],
                "verdict": verdict,
                "accepted_by": sum(label == "yes" for label in said.values()),
                "judged_by": len(said),
                "is_gold": line["is_gold"],
                "rouge_l": rouge,
                "check_by_hand": verdict == "accepted" and rouge < LEAST_ROUGE,
            }
        )
    for question in by_question.values():
        verdicts = Counter(passage["verdict"] for passage in question["passages"])
        kept = "kept" if verdicts["accepted"] else "dropped"
        question["fate"] = "unjudged" if verdicts["unjudged"] == verdicts.total() else kept
        n_fates[question["fate"]] += 1
        question |= {"passages_disagree": [], "explanations": [], "unexplained_by": []}
        for worker in sorted(name for name, chose in accepted_by[question["question_id"]].items() if not chose):
            own = written[question["question_id"], worker]
            question["passages_disagree"] += own.get("other_passage", {})
            question["explanations"] += own.get("free_text", {})
            question["unexplained_by"] += [] if own else [worker]
            none_chosen.update(
                people=1,
                with_other_passage="other_passage" in own,
                with_explanation="free_text" in own,
                without_either=not own,
            )
    passages = [passage for question in by_question.values() for passage in question["passages"]]
    verdicts = Counter(passage["verdict"] for passage in passages)
    binary = {name: {worker: label == "yes" for worker, label in said.items()} for name, said in labels.items()}
    pairs = pair_kappas(binary)
    summary = {
        "questions": {
            "asked": len(by_question),
            **{name: n_fates[name] for name in ("kept", "dropped", "unjudged")},
        },
        "passages": {"asked": len(passages)}
        | {name: verdicts[name] for name in ("accepted", "partial", "rejected", "unjudged")},
        "accepted_per_question": verdicts["accepted"] / n_fates["kept"] if n_fates["kept"] else None,
        "check_by_hand": sum(passage["check_by_hand"] for passage in passages),
        "annotations": {"wanted": n_wanted, "passages_with_fewer": n_short},
        "none_chosen": dict(none_chosen),
        "kappa": {
            "mean_of_pairs": mean_kappa(pairs),
            "fleiss": fleiss_kappa(binary),
            "pairs": [pair._asdict() for pair in pairs],
        },
        "workers": {name: dict(counts) for name, counts in sorted(workers.items())},
        "rejected": manifest.facts["counts"]["rejected"],
    }
    return summary, list(by_question.values())
