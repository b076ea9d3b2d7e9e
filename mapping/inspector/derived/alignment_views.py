"""Views of alignments: what became of their records, the list of these, and each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kbsource.release.manifest import ListingManifest
from mapping.inspector.derived.alignment_counts import (
    RECORD_OUTCOMES,
    dataset_row,
    evidence_steps,
    record_steps,
    score_bins,
)
from mapping.inspector.derived.alignment_evidence import evidence_of, evidence_shown, record_shown
from mapping.inspector.derived.alignment_records import MEANINGS, SORTS, AlignedRecords, Choice, records_of
from mapping.inspector.derived.asked import asked_number, asked_sort, asked_text, neighbours
from mapping.inspector.frame import Crumb, Tab, View, Views, paging, render
from mapping.inspector.opened import Opened
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

_EVIDENCE_A_PAGE = 20


def show_outcomes(request: Request, opened: Opened) -> Response:
    """Shows what became of the records and the evidence of an alignment, or of all alignments of a folder."""
    if opened.parts:
        return _show_datasets(request, opened)
    facts = _facts(opened)
    bins = score_bins(facts)
    return render(
        request,
        opened,
        "alignment/outcomes.html",
        title="Outcomes",
        record_steps=list(record_steps(facts)),
        evidence_steps=list(evidence_steps(facts)),
        bins=bins,
        highest=max(n for _, n in bins),
        row=dataset_row(facts),
    )


def _show_datasets(request: Request, opened: Opened) -> Response:
    rows = [(part, dataset_row(_facts(part.opened))) for part in records_of(opened).parts]
    total: Counter[str] = Counter()
    for _, row in rows:
        total.update(row.by_outcome)
    return render(
        request,
        opened,
        "alignment/datasets.html",
        title="Outcomes",
        rows=rows,
        outcomes=RECORD_OUTCOMES,
        n_read=sum(row.read for _, row in rows),
        total=total,
    )


def show_records(request: Request, opened: Opened) -> Response:
    """Shows the records of an alignment that are asked for, a page of them."""
    records, choice = records_of(opened), _choice(request)
    numbers = records.chosen(choice)
    pages = paging(request, len(numbers))
    return render(
        request,
        opened,
        "alignment/records.html",
        title="Records",
        choice=choice,
        paging=pages,
        rows=list(records.listed(numbers[pages.start : pages.end].tolist())),
        facets=_facets(records, choice),
        sorts=SORTS,
        has_parts=bool(opened.parts),
    )


def _facets(records: AlignedRecords, choice: Choice) -> Mapping[str, list[tuple[str, int | None]]]:
    """Gives what can be chosen of each kind, with the number of records."""
    outcomes = records.index.counts("outcome")
    reasons = records.index.counts("reason")
    known = MEANINGS.get(choice.outcome)
    return {
        "dataset": [(name, None) for name in dict.fromkeys(part.dataset for part in records.parts)],
        "split": [(name, None) for name in dict.fromkeys(part.split for part in records.parts)],
        "outcome": [(name, outcomes[name]) for name in RECORD_OUTCOMES if outcomes.get(name)],
        "reason": [(name, reasons[name]) for name in sorted(reasons) if known is None or name in known],
    }


def show_record(request: Request, opened: Opened) -> Response:
    """Shows one record of an alignment."""
    records, choice = records_of(opened), _choice(request)
    number = int(request.path_params["number"])
    if number >= len(records):
        raise HTTPException(404, f"There is no record {number:,}: the tables have {len(records):,}.")
    shown = record_shown(records, number)
    evidence = evidence_of(records, number)
    pages = paging(request, len(evidence), n_rows=_EVIDENCE_A_PAGE)
    return render(
        request,
        opened,
        "alignment/record.html",
        title=shown.row["example_id"] or f"number {number:,}",
        crumbs=[Crumb("Records", opened.url("records", **choice.query()))],
        number=number,
        shown=shown,
        evidences=[evidence_shown(own, shown) for own in evidence[pages.start : pages.end]],
        paging=pages,
        choice=choice,
        near=neighbours(records.chosen(choice), number),
        made_from=shown.part.manifest.facts.get("release") or {},
        raw=orjson.dumps(shown.kilt, option=orjson.OPT_INDENT_2).decode(),
    )


def _choice(request: Request) -> Choice:
    return Choice(
        dataset=asked_text(request, "dataset"),
        split=asked_text(request, "split"),
        outcome=asked_text(request, "outcome"),
        reason=asked_text(request, "reason"),
        id=asked_text(request, "id"),
        least=asked_number(request, "least"),
        most=asked_number(request, "most"),
        sort=asked_sort(request, SORTS),
    )


def _facts(opened: Opened) -> Mapping[str, object]:
    assert isinstance(opened.manifest, ListingManifest)
    return opened.manifest.facts


ALIGNMENT_VIEWS = Views(
    kinds=(ALIGNMENT, ALIGNMENTS),
    views=(
        View("/outcomes", show_outcomes),
        View("/records", show_records),
        View("/records/{number:int}", show_record),
    ),
    tabs=(Tab("Outcomes", "outcomes"), Tab("Records", "records")),
)
