"""Why records of datasets are left out or rejected: every reason, and what it means."""

from __future__ import annotations

REJECTED: dict[str, str] = {
    "ambiguous_page": "an evidence of the project's own format that names its page in more than one way",
    "bad_encoding": "text that is not Unicode",
    "bad_tag": "a line of a TSV whose second column is neither B nor I",
    "conflicting_label": "a judgement of a passage that its annotator judged otherwise before",
    "duplicate_id": "the id was given before",
    "empty_output": "a KILT record whose list of outputs is empty",
    "malformed_docstart": "a line that begins a document and does not name it",
    "malformed_json": "a line or array element that is not JSON",
    "malformed_xml": "a document that is not well-formed, or uses entities or a document type",
    "missing_column": "an annotated line of a TSV with too few columns",
    "missing_field": "a field that is needed is absent",
    "missing_label": "a test record that the given labels have no answer for",
    "missing_raw_text": "the text of an annotated document is not in the RawText folder",
    "no_document": "an annotated line in front of the first document",
    "no_highlight": "a record of a campaign whose passages are places of another knowledge source, without their text",
    "no_title": "a sentence that a wizard chose, and nothing says of which page",
    "offset_mismatch": "the mention does not stand in the text where the annotation says",
    "record_too_long": "a line or array element of more than 64 MiB",
    "token_range": "an answer of Natural Questions at tokens that its page does not have",
    "uneven_lists": "answers of a thread that have more or fewer scores",
    "unknown_field": "a field that means nothing in the project's own format, such as a misspelt one",
    "unknown_label": "a label that the dataset does not have",
    "unknown_passage": "a judgement of a passage that is not among the passages of its campaign",
    "unknown_sentence": "a triple of T-REx that stands in a sentence which its document does not have",
    "unknown_speaker": "a turn of a dialogue that neither wizard nor apprentice speaks",
    "unknown_uri": "an address of T-REx that names no item or property of Wikidata",
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
    "first_turn": "a turn of a wizard with nothing said before it",
    "long_short_answers": "a question of Natural Questions whose short answers all have more than five tokens",
    "negative": "a line of Zero-Shot RE whose sentence does not answer its question",
    "no_accepted_passage": "a question that annotators found no passage for",
    "no_answer": "a question or turn whose answers have no text",
    "no_evidence": "a supported or refuted claim without any evidence",
    "no_object_label": "a triple of T-REx whose object has no English label in Wikidata",
    "no_page": "a question of TriviaQA without any page",
    "no_passages_used": "a turn in which the wizard said that no passage was used",
    "no_relation_label": "a triple of T-REx whose relation has none",
    "no_sentence": "a triple of T-REx that no sentence states",
    "no_short_answer": "a question of Natural Questions that no annotator gave a short answer to",
    "no_subject_label": "a triple of T-REx whose subject has no English label in Wikidata",
    "no_wizard": "a dialogue in which no wizard speaks",
    "not_annotated": "a question that the annotation campaign does not have",
    "not_enough_info": "a claim of FEVER that is neither supported nor refuted",
    "not_in_kb": "a mention annotated as having no page",
    "nothing_checked": "a turn in which the wizard chose no sentence",
    "other_split": "a record that is not among those of this split",
    "rare_relation": "a triple of T-REx whose relation has too few facts",
    "too_many_provenances": "a triple of T-REx whose fact is stated by too many sentences",
    "yes_no_only": "a question of Natural Questions that is answered by yes or no alone",
}
"""Reason -> meaning: records that the rules of their dataset leave out."""
