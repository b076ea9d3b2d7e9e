"""Reads evidence that annotators chose: passages that were shown with a question, and judgements whether they contain
the answer.

Three forms of file are read, plain or compressed, and distinguished by their fields:

- judgements, as JSON lines, CSV with a header or a Label Studio export: ``question_id``, ``passage_id``, ``worker_id``,
  ``label`` (``yes``, ``no`` or ``partial``), ``highlight``, ``free_text``; one row per highlight. A row without
  ``passage_id`` means that the worker accepted none of the passages.
- the passages that judgements refer to, as JSON lines: ``passage_id``, ``wikipedia_title`` or ``wikipedia_id``,
  ``text``.
- a published KILT file: spans with ``meta.evidence_span`` were accepted, and ``meta.partial_evidence`` was judged part
  of the evidence. A passage without highlight is rejected, since the file has only its location.

Source: section 4 of the KILT paper (a passage is provenance if two of three annotators accept it) and the published
files of Natural Questions and ELI5.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import base_name
from kbsource.records import BadRecord
from mapping.records import Evidence, PageKey
from mapping.sources.examples import Labels, RecordSource, read_references
from mapping.sources.raw_records import (
    Json,
    RawRecord,
    check_shape,
    digits_or_text,
    iter_records,
    objects_at,
    open_decompressed,
    optional_object,
    optional_objects,
    optional_text,
    text_at,
)
from mapping.sources.scratch import Scratch
from mapping.sources.source import EVIDENCE_SPAN, PARTIAL_EVIDENCE, Options, Tally, references_option

MIN_ACCEPTED = 2
"""Number of annotators who must accept a passage. Source: section 4 of the KILT paper."""
Form = Literal["judgements", "passages", "kilt"]
_FORMS: dict[Form, frozenset[str]] = {
    "judgements": frozenset({"question_id", "passage_id", "worker_id", "label"}),
    "passages": frozenset({"passage_id", "text"}),
    "kilt": frozenset({"id", "output"}),
}
_LABELS = ("yes", "no", "partial")
_EXPECTED = (
    "judgements of an annotation campaign (question_id, passage_id, worker_id, label, highlight, free_text), the"
    " passages that they name (passage_id, wikipedia_title, text), or a KILT file whose spans have meta.evidence_span"
)


def judgement_rows(path: str) -> Iterator[RawRecord]:
    """Reads annotations as flat objects: the question with ``worker_id``, ``label``, ``highlight`` and ``free_text``.

    A task of a Label Studio export yields a row for each highlight of each annotation, or one row without a highlight;
    cancelled annotations are skipped. A record that cannot be interpreted is yielded unchanged.

    Raises:
        SetupError: as ``open_decompressed``; the file is not CSV in UTF-8.
    """
    if ".csv" in base_name(path).lower():
        yield from _csv_rows(path)
        return
    for raw in iter_records(path):
        if b'"annotations"' not in raw.data:
            yield raw
            continue
        try:
            rows = list(_annotation_rows(raw.parse()))
        except (RecordError, AttributeError, KeyError, TypeError, IndexError):
            yield raw
        else:
            yield from (raw._replace(data=orjson.dumps(row)) for row in rows)


def _annotation_rows(task: Json) -> Iterator[Json]:
    """Reads the rows of a task. Source: the task format of Label Studio, https://labelstud.io/guide/task_format, seen
    November 2026."""
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        worker = annotation["completed_by"]
        row: Json = {**task["data"], "worker_id": str(worker["id"] if isinstance(worker, dict) else worker)}
        highlights: list[Any] = []
        for part in annotation["result"]:
            value = part.get("value")  # absent for a relation
            if part["type"] == "choices":
                row["label"] = value["choices"][0]
            elif part["type"] == "textarea":
                name = "other_passage" if part.get("from_name") == "other_passage" else "free_text"
                row[name] = "\n".join(value["text"])
            elif part["type"] == "labels":
                highlights.append(value.get("text") or str(task["data"].get("text", ""))[value["start"] : value["end"]])
        for highlight in highlights or [None]:
            yield row if highlight is None else {**row, "highlight": highlight}


def _csv_rows(path: str) -> Iterator[RawRecord]:
    """Reads the rows of a CSV file as JSON objects keyed by its header. The line of a row is its last line.

    Raises:
        SetupError: as ``open_decompressed``; the file is not CSV in UTF-8.
    """
    with open_decompressed(path) as (file, _):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        rows = csv.reader(text)
        try:
            head = next(rows, [])
            for row in rows:
                if row:
                    record = dict(zip(head, row, strict=True)) if len(row) == len(head) else row
                    yield RawRecord(base_name(path), rows.line_num, -1, orjson.dumps(record))
        except (csv.Error, UnicodeDecodeError) as error:
            raise SetupError(f"{path}, line {rows.line_num}: {error}. Give a CSV in UTF-8, with a head.") from error
        finally:
            text.detach()


class CampaignFindings(NamedTuple):
    """The evidence that annotators found for a question: one piece per passage, in the order in which the passages were
    first judged.
    """

    accepted: tuple[Evidence, ...]
    partial: tuple[
        Evidence, ...
    ]  # passages with a part of the evidence: accepted by only one annotator, or labelled partial


class CampaignSource(RecordSource[Options]):
    """A dataset whose dev and test splits may have an annotation campaign, passed as references."""

    train_has: ClassVar[str]  # beginning of the message that a campaign is not for train
    references = references_option(
        "--campaign",
        "Judgements and their passages, or a KILT file with evidence_span. Without it, eli5 writes every question of "
        "dev and test with its answers only.",
        "FILE",
    )

    def check_references(self) -> None:
        if self.inputs.references and self.split == "train":
            raise SetupError(
                f"the train split of {self.name} has {self.train_has} is for dev and test. Leave --campaign out."
            )
        check_campaign(self.inputs.references)

    def read_references(self, labels: Labels | None) -> Iterator[BadRecord]:
        return keep_campaign(self.inputs.references, scratch=self.scratch, tally=self.tally)


def check_campaign(paths: Sequence[str]) -> None:
    """Checks the beginning of every file.

    Raises:
        SetupError: a file has an unknown form, or judgements come without their passages.
    """
    forms = {_form(path) for path in paths}
    if "judgements" in forms and "passages" not in forms:
        raise SetupError(
            "the judgements of a campaign name passages by their ids: also give the file of passages (JSON lines"
            " with passage_id, wikipedia_title and text)."
        )


def keep_campaign(paths: Sequence[str], *, scratch: Scratch, tally: Tally) -> Iterator[BadRecord]:
    """Reads a campaign into the index and yields the rows that cannot be used; all rows are counted as references.

    Several judgements of a worker about one passage are kept, because each has another highlight.
    """
    forms = {path: _form(path) for path in paths}
    # Judgements are checked against the passages that they name.
    for path in sorted(paths, key=lambda path: forms[path] == "judgements"):
        yield from read_references(judgement_rows(path), partial(_KEEP[forms[path]], scratch), tally)


def findings(scratch: Scratch, question_id: str) -> CampaignFindings | None:
    """Returns the findings for a question; None if it was never shown to annotators."""
    rows = [orjson.loads(row) for row in scratch.rows(_question_key(question_id))]
    if not rows:
        return None
    accepted: list[Evidence] = []
    partly: list[Evidence] = []
    judged: dict[str, list[tuple[str, str, str]]] = {}
    for kind, *fields in rows:
        if kind == "judgement":
            passage_id, worker_id, label, highlight = fields
            if passage_id:
                judged.setdefault(passage_id, []).append((worker_id, label, highlight))
        else:
            page, highlights = fields
            evidence = _evidence(PageKey(*page), highlights, "")
            (accepted if kind == "accepted" else partly).append(evidence)
    for passage_id, judgements in judged.items():
        verdict = verdict_of({worker_id: label for worker_id, label, _ in judgements})
        if verdict == "rejected":
            continue
        (row,) = scratch.rows(_passage_key(passage_id))
        page, text = orjson.loads(row)
        labels = ("yes",) if verdict == "accepted" else ("yes", "partial")
        highlights = [highlight for _, label, highlight in judgements if label in labels and highlight.strip()]
        evidence = _evidence(PageKey(*page), highlights, text)
        (accepted if verdict == "accepted" else partly).append(evidence)
    return CampaignFindings(tuple(accepted), tuple(partly))


def verdict_of(labels: Mapping[str, str]) -> Literal["accepted", "partial", "rejected"]:
    """Returns the verdict on a passage from its labels by annotator."""
    n_accepted = sum(label == "yes" for label in labels.values())
    if n_accepted >= MIN_ACCEPTED:
        return "accepted"
    return "partial" if n_accepted or "partial" in labels.values() else "rejected"


def _evidence(page: PageKey, highlights: list[str], text: str) -> Evidence:
    """Returns evidence that is searched for by its longest highlight, which contains most of the others."""
    sought = max(highlights, key=len, default=text).strip()
    return Evidence(page, sought, {EVIDENCE_SPAN: highlights})


def _keep_passage(scratch: Scratch, raw: RawRecord) -> None:
    record = raw.parse()
    key = _passage_key(digits_or_text(record, "passage_id"))
    page, text = _page(record, "wikipedia_title"), text_at(record, "text")
    if scratch.rows(key):
        raise RecordError("duplicate_id", f"passage {record['passage_id']!r}")
    scratch.add(key, orjson.dumps((page, text)))


def _keep_judgement(scratch: Scratch, raw: RawRecord) -> None:
    record = raw.parse()
    key = _question_key(digits_or_text(record, "question_id"))
    passage_id = digits_or_text(record, "passage_id") if record.get("passage_id") is not None else ""
    worker_id, label, highlight = digits_or_text(record, "worker_id"), "", ""
    if passage_id:
        label = text_at(record, "label")
        highlight = text_at(record, "highlight") if record.get("highlight") is not None else ""
        if label not in _LABELS:
            raise RecordError("unknown_label", f"unknown label {label!r}; known labels are {', '.join(_LABELS)}")
        if not scratch.rows(_passage_key(passage_id)):
            raise RecordError("unknown_passage", f"there is no passage {passage_id!r}")
        earlier = (orjson.loads(row) for row in scratch.rows(key))
        if any(row[:3] == ["judgement", passage_id, worker_id] and row[3] != label for row in earlier):
            raise RecordError(
                "conflicting_label", f"worker {worker_id!r} contradicts an earlier judgement of passage {passage_id!r}"
            )
    scratch.add(key, orjson.dumps(("judgement", passage_id, worker_id, label, highlight)))


def _keep_spans(scratch: Scratch, raw: RawRecord) -> None:
    record = raw.parse()
    key = _question_key(digits_or_text(record, "id"))
    rows = [
        orjson.dumps((kind, _page(span, "title"), found))
        for kind, span in _spans(record)
        if (found := highlights_of(span))
    ]
    if rows and scratch.rows(key):
        raise RecordError("duplicate_id", f"question {record['id']!r}")
    for row in rows:
        scratch.add(key, row)


_KEEP: dict[Form, Callable[[Scratch, RawRecord], None]] = {
    "passages": _keep_passage,
    "judgements": _keep_judgement,
    "kilt": _keep_spans,
}


def _spans(record: Json) -> Iterator[tuple[str, Json]]:
    for output in objects_at(record, "output"):
        for span in optional_objects(output, "provenance"):
            if "answer" not in output and "meta" not in span:
                raise RecordError(
                    "no_highlight",
                    "a passage has a position in KILT's knowledge source but no text to search for; map the file with "
                    "kbsource map kilt --from-kb",
                )
            yield "accepted", span
    for span in optional_objects(optional_object(record, "meta") or {}, PARTIAL_EVIDENCE):
        yield "partial", span


def _has_highlight(record: Json) -> bool:
    return any(kind == "accepted" and highlights_of(span) for kind, span in _spans(record))


def highlights_of(span: Json) -> list[str]:
    """Returns the texts that annotators highlighted in a span, from its ``meta``. Raises RecordError (``wrong_type``)
    if they are not a list of texts."""
    written = (optional_object(span, "meta") or {}).get(EVIDENCE_SPAN, [])
    if not isinstance(written, list) or not all(isinstance(text, str) for text in written):
        raise RecordError("wrong_type", f"{EVIDENCE_SPAN!r}: expected a list of strings, found {repr(written)[:80]}")
    return [text for text in written if text.strip()]


def _page(record: Json, title_key: str) -> tuple[str, str]:
    """Returns the key of a page: its title if it has one, because redirects resolve old titles; otherwise its id."""
    if title := optional_text(record, title_key):
        return "title", title
    return "page_id", digits_or_text(record, "wikipedia_id")


def _form(path: str) -> Form:
    """Returns the form of a file, by the fields of its first records; raises SetupError if the form is unknown."""
    found: list[Form] = []

    def fits(record: Json) -> bool:
        for form, fields in _FORMS.items():
            if fields <= record.keys() and (form != "kilt" or _has_highlight(record)):
                found.append(form)
        return bool(found)

    check_shape(path, judgement_rows(path), fits, expected=_EXPECTED)
    return found[0]


def _question_key(question_id: str) -> str:
    return f"question {question_id}"


def _passage_key(passage_id: str) -> str:
    return f"passage {passage_id}"
