"""Why records of datasets are left out or rejected: every reason, and what it means."""

from __future__ import annotations

REJECTED: dict[str, str] = {
    "ambiguous_page": "an evidence of the project's own format that names its page in more than one way",
    "bad_encoding": "text that is not Unicode",
    "bad_tag": "a line of a TSV whose second column is neither B nor I",
    "duplicate_id": "the id was given before",
    "empty_output": "a KILT record whose list of outputs is empty",
    "malformed_docstart": "a line that begins a document and does not name it",
    "malformed_json": "a line or array element that is not JSON",
    "malformed_xml": "a document that is not well-formed, or uses entities or a document type",
    "missing_column": "an annotated line of a TSV with too few columns",
    "missing_field": "a field that is needed is absent",
    "missing_raw_text": "the text of an annotated document is not in the RawText folder",
    "no_document": "an annotated line in front of the first document",
    "offset_mismatch": "the mention does not stand in the text where the annotation says",
    "record_too_long": "a line or array element of more than 64 MiB",
    "unknown_field": "a field that means nothing in the project's own format, such as a misspelt one",
    "unknown_label": "a label that the dataset does not have",
    "wrong_type": "a value of another type than the field has",
}
"""Reason -> meaning, for stages ``source`` and ``reference``."""

LOST_EVIDENCE: dict[str, str] = {
    "null_page": "an evidence of FEVER that names no page",
    "offsets_out_of_range": "a KILT span that lies outside of its paragraph",
    "unknown_page": "the page is not among the references",
    "unknown_sentence": "the page has no sentence of this number",
}
"""Reason -> meaning, for stage ``evidence``: the text cannot be looked up."""

EXCLUDED: dict[str, str] = {
    "no_evidence": "a supported or refuted claim without any evidence",
    "not_enough_info": "a claim of FEVER that is neither supported nor refuted",
    "not_in_kb": "a mention annotated as having no page",
}
"""Reason -> meaning: records that the rules of their dataset leave out."""
