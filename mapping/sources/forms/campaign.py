"""Evidence that annotators chose: passages shown beside a question, and whether they hold enough to answer it.

Three forms of file are read, plain or packed, and told apart by their fields:

- judgements, JSON lines, CSV with a head or an export of Label Studio: ``question_id``, ``passage_id``, ``worker_id``,
  ``label`` (``yes``, ``no`` or ``partial``), ``highlight``, ``free_text``; a row for each highlight. Without
  ``passage_id`` the worker accepted
  none of the passages.
- the passages that judgements name, JSON lines: ``passage_id``, ``wikipedia_title`` or ``wikipedia_id``, ``text``.
- a published KILT file: its spans with ``meta.evidence_span`` are what was accepted, ``meta.partial_evidence`` what was
  held to be part of the evidence. A passage without its highlight, of which the file has the place alone, is rejected.

Source: section 4 of the KILT paper (a passage is provenance where two of three annotators accept it) and the published
files of Natural Questions and ELI5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.records import Evidence, PageKey
from mapping.sources.forms.judgement_rows import judgement_rows
from mapping.sources.reading.base import EVIDENCE_SPAN, PARTIAL_EVIDENCE, Tally, references_option
from mapping.sources.reading.fields import Json, digits_or_text, objects_at, optional_object, optional_text, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape
from mapping.sources.reading.scratch import Scratch

MIN_ACCEPTED = 2
"""Annotators who must accept a passage. Source: section 4 of the KILT paper."""

CAMPAIGN = references_option(
    "--campaign",
    "what annotators found: judgements and their passages, or a KILT file with evidence_span; without it eli5 has "
    "every question of dev and test with its answers alone",
    "FILE",
)

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


class CampaignFindings(NamedTuple):
    """What annotators found for one question.

    Attributes:
        accepted: one evidence for each passage that is provenance, in the order in which passages were first judged.
        partial: the same for passages that hold part of the evidence: accepted by one annotator alone, or said to be.
    """

    accepted: tuple[Evidence, ...]
    partial: tuple[Evidence, ...]


def check_campaign(paths: Sequence[str], storage: Storage) -> None:
    """Looks at the beginning of every file.

    Raises:
        SetupError: a file is of none of the forms, or judgements come without their passages.
    """
    forms = {_form(path, storage) for path in paths}
    if "judgements" in forms and "passages" not in forms:
        raise SetupError(
            "the judgements of a campaign name passages by their ids: give the file with the passages too (JSON lines"
            " with passage_id, wikipedia_title and text)."
        )


def keep_campaign(paths: Sequence[str], *, storage: Storage, scratch: Scratch, tally: Tally) -> Iterator[BadRecord]:
    """Reads a campaign into the index and gives the rows that cannot be used; all count as references.

    A repeated judgement is kept: it is another highlight of its worker.
    """
    forms = {path: _form(path, storage) for path in paths}
    # Judgements are held against the passages that they name.
    for path in sorted(paths, key=lambda path: forms[path] == "judgements"):
        for raw in judgement_rows(path, storage):
            tally.references += 1
            try:
                _keep(forms[path], raw, scratch)
            except RecordError as error:
                tally.rejected_references[error.reason] += 1
                yield raw.bad(error, stage="reference")


def findings(scratch: Scratch, question_id: str) -> CampaignFindings | None:
    """Gives what was found for a question, None for one that nobody was shown."""
    rows = [orjson.loads(row) for row in scratch.rows(_question_key(question_id))]
    if not rows:
        return None
    accepted: list[Evidence] = []
    partial: list[Evidence] = []
    judged: dict[str, list[_Judgement]] = {}
    for kind, *fields in rows:
        if kind == "judgement":
            passage_id, worker_id, label, highlight = fields
            if passage_id:
                judged.setdefault(passage_id, []).append(_Judgement(worker_id, label, highlight))
        else:
            page, highlights = fields
            evidence = _evidence(PageKey(*page), highlights, "")
            (accepted if kind == "accepted" else partial).append(evidence)
    for passage_id, judgements in judged.items():
        verdict = _verdict(judgements)
        if verdict is None:
            continue
        (row,) = scratch.rows(_passage_key(passage_id))
        page, text = orjson.loads(row)
        labels = ("yes",) if verdict == "accepted" else ("yes", "partial")
        highlights = [
            judgement.highlight for judgement in judgements if judgement.label in labels and judgement.highlight.strip()
        ]
        evidence = _evidence(PageKey(*page), highlights, text)
        (accepted if verdict == "accepted" else partial).append(evidence)
    return CampaignFindings(tuple(accepted), tuple(partial))


class _Judgement(NamedTuple):
    worker_id: str
    label: str
    highlight: str


def _verdict(judgements: list[_Judgement]) -> Literal["accepted", "partial"] | None:
    labels = {judgement.worker_id: judgement.label for judgement in judgements}
    n_accepted = sum(label == "yes" for label in labels.values())
    if n_accepted >= MIN_ACCEPTED:
        return "accepted"
    return "partial" if n_accepted or "partial" in labels.values() else None


def _evidence(page: PageKey, highlights: list[str], text: str) -> Evidence:
    """Gives an evidence that is looked for by its longest highlight, which holds most of the others."""
    sought = max(highlights, key=len, default=text).strip()
    return Evidence(page, sought, {EVIDENCE_SPAN: highlights})


def _keep(form: Form, raw: RawRecord, scratch: Scratch) -> None:
    record = raw.parse()
    if form == "passages":
        _keep_passage(record, scratch)
    elif form == "judgements":
        _keep_judgement(record, scratch)
    else:
        _keep_spans(record, scratch)


def _keep_passage(record: Json, scratch: Scratch) -> None:
    key = _passage_key(digits_or_text(record, "passage_id"))
    page, text = _page(record, "wikipedia_title"), text_at(record, "text")
    if scratch.rows(key):
        raise RecordError("duplicate_id", f"passage {record['passage_id']!r}")
    scratch.add(key, orjson.dumps((page, text)))


def _keep_judgement(record: Json, scratch: Scratch) -> None:
    key = _question_key(digits_or_text(record, "question_id"))
    passage_id = digits_or_text(record, "passage_id") if record.get("passage_id") is not None else ""
    worker_id, label, highlight = digits_or_text(record, "worker_id"), "", ""
    if passage_id:
        label = text_at(record, "label")
        highlight = text_at(record, "highlight") if record.get("highlight") is not None else ""
        if label not in _LABELS:
            raise RecordError("unknown_label", f"{label!r}; known are {', '.join(_LABELS)}")
        if not scratch.rows(_passage_key(passage_id)):
            raise RecordError("unknown_passage", f"there is no passage {passage_id!r}")
        earlier = (orjson.loads(row) for row in scratch.rows(key))
        if any(row[:3] == ["judgement", passage_id, worker_id] and row[3] != label for row in earlier):
            raise RecordError("conflicting_label", f"worker {worker_id!r} said otherwise of passage {passage_id!r}")
    scratch.add(key, orjson.dumps(("judgement", passage_id, worker_id, label, highlight)))


def _keep_spans(record: Json, scratch: Scratch) -> None:
    key = _question_key(digits_or_text(record, "id"))
    rows = [
        orjson.dumps((kind, _page(span, "title"), highlights))
        for kind, span in _spans(record)
        if (highlights := _highlights(span))
    ]
    if rows and scratch.rows(key):
        raise RecordError("duplicate_id", f"question {record['id']!r}")
    for row in rows:
        scratch.add(key, row)


def _spans(record: Json) -> Iterator[tuple[str, Json]]:
    for output in objects_at(record, "output"):
        for span in objects_at(output, "provenance") if "provenance" in output else []:
            if "answer" not in output and "meta" not in span:
                raise RecordError(
                    "no_highlight", "a passage is named by its place alone; see: kbsource map kilt --from-kb"
                )
            yield "accepted", span
    meta = optional_object(record, "meta") or {}
    for span in objects_at(meta, PARTIAL_EVIDENCE) if PARTIAL_EVIDENCE in meta else []:
        yield "partial", span


def _has_highlight(record: Json) -> bool:
    return any(kind == "accepted" and _highlights(span) for kind, span in _spans(record))


def _highlights(span: Json) -> list[str]:
    written = (optional_object(span, "meta") or {}).get(EVIDENCE_SPAN, [])
    if not isinstance(written, list) or not all(isinstance(text, str) for text in written):
        raise RecordError("wrong_type", f"{EVIDENCE_SPAN!r}: expected a list of strings, found {repr(written)[:80]}")
    return [text for text in written if text.strip()]


def _page(record: Json, title_key: str) -> tuple[str, str]:
    """Gives how a page is named: by its title, whose redirects lead on when it was renamed; else by its id."""
    if title := optional_text(record, title_key):
        return "title", title
    return "page_id", digits_or_text(record, "wikipedia_id")


def _form(path: str, storage: Storage) -> Form:
    """Gives the form of a file by the fields of its first records.

    Raises:
        SetupError: it has none.
    """
    found: list[Form] = []

    def fits(record: Json) -> bool:
        for form, fields in _FORMS.items():
            if fields <= record.keys() and (form != "kilt" or _has_highlight(record)):
                found.append(form)
        return bool(found)

    check_shape(path, judgement_rows(path, storage), fits, expected=_EXPECTED)
    return found[0]


def _question_key(question_id: str) -> str:
    return f"question {question_id}"


def _passage_key(passage_id: str) -> str:
    return f"passage {passage_id}"
