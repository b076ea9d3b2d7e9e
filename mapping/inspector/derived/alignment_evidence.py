"""One record of an alignment: what it asks, what is answered, and each piece of its evidence, old beside new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from mapping.decide.policy import POLICIES
from mapping.inspector.derived.alignment_records import MEANINGS, AlignedRecords, PartRecords
from mapping.inspector.derived.in_page import InPage, in_page
from mapping.inspector.derived.row_index import TableRows
from mapping.inspector.derived.word_changes import Piece, changed_words, marked_pieces
from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened
from mapping.records import PARTIAL

EVIDENCE_OUTCOMES: Mapping[str, str] = {
    "exact": "the text stands in the page, case and punctuation apart",
    "near": "the text that is most like it reaches the threshold",
    "weak": "the text that is most like it stays below the threshold",
    "page_only": "only the page was asked for, and it is there",
    "page_missing": "the page is not in the snapshot",
    "page_ambiguous": "the page is a disambiguation page",
    "empty_evidence": "the evidence has no text",
    "search_timeout": "the search took too long twice",
    "search_crash": "the search ended its process twice",
    "search_error": "the search failed twice with an error",
}
_STAGES = {"rejected": "source", "excluded": "", "merged": ""}
_PLACE = itemgetter("output", "evidence")
_CHARS = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


class Place(NamedTuple):
    """Where a text stands: page, section and paragraphs as KILT numbers them; None for what is not known."""

    page_id: str | None
    title: str | None
    section: str | None
    characters: str | None


class EvidenceShown(NamedTuple):
    """A piece of evidence, and what became of it.

    Attributes:
        outputs: of which outputs it is, with their answers where these are known.
        row: its row of ``alignments`` or ``misses``, of the first of them.
        meaning: of its outcome.
        old, new: its place in the old knowledge source, as far as the dataset says it, and in this one.
        old_text, new_text: the texts in pieces, marked where they differ; None where there is none.
        place: what is around the new text in its page, and its address there; of the page where there is no text.
    """

    outputs: Sequence[tuple[str, str | None]]
    row: Mapping[str, Any]
    meaning: str
    old: Place
    new: Place | None
    old_text: Sequence[Piece] | None
    new_text: Sequence[Piece] | None
    place: InPage


class RecordShown(NamedTuple):
    """A record, and what became of it.

    Attributes:
        row: its row of ``records``.
        part: alignment that it is of.
        meaning: of the reason why it is not written; None where there is none.
        details: what else is said of it in ``rejected``.
        kilt: the record as it is written; None where it is not.
        answers: the distinct answers, of one that is written.
        answer_of: of each output its answer, where that is known.
    """

    row: Mapping[str, Any]
    part: PartRecords
    meaning: str | None
    details: Sequence[str]
    kilt: Mapping[str, Any] | None
    answers: Sequence[str]
    answer_of: Mapping[int, str]


def record_shown(records: AlignedRecords, number: int) -> RecordShown:
    """Gives a record of alignments by its number."""
    row, part = records.row(number), records.part_of(number)
    kilt = records.kilt_record(number, row)
    outputs = [output.get("answer") for output in (kilt or {}).get("output", [])]
    # Where some are left out, or put in another order, nothing says which answer is of which output.
    is_in_order = len(outputs) == row["n_outputs"] and not _is_reordered(part)
    rejected = TableRows.of(part.opened.path, part.manifest, "rejected", part.opened.storage)
    stage = _STAGES.get(row["outcome"], "evidence")
    faults = rejected.with_value("key", row["example_id"]) if row["example_id"] is not None and stage else ()
    return RecordShown(
        row,
        part,
        MEANINGS.get(row["outcome"], {}).get(row["reason"] or ""),
        [f"{fault['reason']}: {fault['detail']}" for fault in faults if fault["stage"] == stage],
        kilt,
        list(dict.fromkeys(str(answer) for answer in outputs if answer is not None)),
        {at: str(answer) for at, answer in enumerate(outputs) if is_in_order and answer is not None},
    )


def _is_reordered(part: PartRecords) -> bool:
    policies = POLICIES.get(str(part.manifest.facts.get("dataset")), {})
    policy = next((policy for split, policy in policies.items() if split == part.split), None)
    return policy is None or policy.found_first


class Evidence(NamedTuple):
    """Pieces of evidence that are the same in all but their place in the record.

    Attributes:
        rows: of ``alignments`` or ``misses``.
        crossing: what ``crosswalk`` says of them; empty where it says nothing.
    """

    rows: list[Mapping[str, Any]]
    crossing: Mapping[str, Any]


def evidence_of(records: AlignedRecords, number: int) -> list[Evidence]:
    """Gives the evidence of a record in its order, what several outputs have in common once."""
    row = records.row(number)
    if row["ordinal"] is None:
        return []
    found = [
        evidence
        for table in ("alignments", "misses")
        for evidence in _rows_beside(records, number, table, "ordinal", row["ordinal"])
    ]
    crossings = {
        _PLACE(crossing): _without_place(crossing)
        for crossing in _rows_beside(records, number, "crosswalk", "example_id", row["example_id"])
    }
    result: dict[str, Evidence] = {}
    for evidence in sorted(found, key=_PLACE):
        crossing = crossings.get(_PLACE(evidence), {})
        same = result.setdefault(repr((_without_place(evidence), crossing)), Evidence([], crossing))
        same.rows.append(evidence)
    return list(result.values())


def _without_place(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("output", "evidence")}


def _rows_beside(records: AlignedRecords, number: int, table: str, column: str, value: Any) -> Iterator[dict[str, Any]]:
    """Gives rows of a record out of the file that was written together with that of the record."""
    part = records.part_of(number)
    rows = TableRows.of(part.opened.path, part.manifest, table, part.opened.storage)
    is_beside = len(rows.paths) == len(part.manifest.tables["records"])
    return rows.with_value(column, value, [records.file_of(number)] if is_beside else None)


def evidence_shown(evidence: Evidence, shown: RecordShown) -> EvidenceShown:
    """Gives evidence of a record as it is shown."""
    row, crossing = evidence.rows[0], evidence.crossing
    old_text, new_text = row["evidence_text"], row.get("text")
    texts: tuple[Sequence[Piece] | None, Sequence[Piece] | None]
    if old_text and new_text:
        texts = changed_words(old_text, new_text)
    else:
        texts = tuple(None if text is None else marked_pieces(text, []) for text in (old_text, new_text))  # type: ignore[assignment]  # two
    names_page = row["page_kind"] == "title"
    old = Place(
        crossing.get("old_wikipedia_id"),
        crossing.get("old_title") or (row["page_value"] if names_page else f"{row['page_kind']} {row['page_value']}"),
        crossing.get("old_section"),
        _characters(crossing, "old_"),
    )
    new = None
    if row["page_id"] is not None:
        new = Place(str(row["page_id"]), row["title"], row.get("section"), _characters(row, ""))
    outputs = dict.fromkeys(own["output"] for own in evidence.rows)
    return EvidenceShown(
        [(output_name(output), shown.answer_of.get(output)) for output in outputs],
        row,
        EVIDENCE_OUTCOMES.get(row["outcome"], row["outcome"]),
        old,
        new,
        *texts,
        _in_page(row, shown.part.opened),
    )


def _characters(row: Mapping[str, Any], prefix: str) -> str | None:
    """Gives paragraphs and characters of a span for reading.

    >>> _characters({"start_paragraph_id": 1, "start_character": 60, "end_paragraph_id": 2, "end_character": 9}, "")
    'paragraph 1, character 60, to paragraph 2, character 9'
    """
    first, start, last, end = (row.get(f"{prefix}{name}") for name in _CHARS)
    if first is None:
        return None
    if start is None or end is None:
        return f"paragraph {first}" if last in (None, first) else f"paragraphs {first} to {last}"
    if last in (None, first):
        return f"paragraph {first}, characters {start} to {end}"
    return f"paragraph {first}, character {start}, to paragraph {last}, character {end}"


def _in_page(row: Mapping[str, Any], opened: Opened) -> InPage:
    if row["page_id"] is None or opened.pages is None:
        return InPage("", "", None)
    if row.get("start_element") is None:
        return InPage("", "", opened.page_url(row["page_id"]))
    span = Span(row["start_element"], row["start_char"], row["end_element"], row["end_char"], "evidence")
    return in_page(opened, row["page_id"], span, row["text"])


def output_name(output: int) -> str:
    """Gives what an output is called.

    >>> output_name(0), output_name(-1)
    ('Output 1', 'Partial evidence')
    """
    return "Partial evidence" if output == PARTIAL else f"Output {output + 1}"
