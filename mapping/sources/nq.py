"""Natural Questions: what people asked a search engine, answered by annotators in one page of Wikipedia.

Source: https://github.com/google-research-datasets/natural-questions (README.md for the form, text_utils.py for the
simplified one) and section 4 of the KILT paper (the open version: short answers of at most five tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.forms.campaign import CAMPAIGN, CampaignFindings, check_campaign, findings, keep_campaign
from mapping.sources.forms.nq_tokens import NqDocument, NqToken, joined
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally, check_names
from mapping.sources.reading.examples import ExclusionError, Origin, read_examples
from mapping.sources.reading.fields import Json, integer_at, object_at, objects_at, text_at
from mapping.sources.reading.files_in import check_shape, iter_lines
from mapping.sources.reading.labels import Labels, check_labels, iter_labels
from mapping.sources.reading.scratch import Scratch

MAX_ANSWER_TOKENS = 5
"""Tokens of a short answer, HTML not counted; a question without one so short is no open question."""

_ANNOTATIONS = "annotations"
_NONE = "NONE"
_YES_NO = ("YES", "NO", _NONE)
_FORM = {"example_id", "question_text", "document_url"}

Campaign = Callable[[str], CampaignFindings | None]


@dataclass(frozen=True, slots=True)
class NqOptions(SourceOptions):
    """Choices of Natural Questions; what is ``released`` is as in the authors' code and the published files."""

    nq_keep_long_short_answers: bool = option(
        True, "short answers of more than five tokens stay, without provenance (default: they do)"
    )
    nq_strip_html: bool = option(
        True,
        "HTML tokens are no part of answers and evidence; else they lower the score of long answers (default: they are "
        "none)",
    )
    nq_annotation_meta: Literal["own", "released"] = option(
        "own", "whose meta long answers have: that of the annotation they come from, or always of the first"
    )
    nq_null_long_answers: Literal["skip", "released"] = option(
        "skip", "released gives a null long answer a span of no characters in front of the title, with BLEU 1.0"
    )
    nq_tokens: Literal["blank", "released"] = option(
        "blank", "what parts tokens; released parts them at any white space, which shifts spans"
    )

    @property
    def places_nothing(self) -> bool:
        """Whether evidence without text has a place, in front of the title."""
        return self.nq_null_long_answers == "released"


class NaturalQuestions(Source[NqOptions]):
    """Reads questions in either form, full (``document_tokens``) or simplified (``document_text``).

    References are files of the annotation campaign, see ``mapping.sources.forms.campaign``: they add passages that hold
    the answer, and leave out questions that no passage answers.
    """

    name = "nq"
    options = NqOptions
    references = CAMPAIGN
    has_labels = True

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: NqOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            check_shape(
                path,
                iter_lines(storage, path),
                lambda record: record.keys() >= _FORM and (split == "test" or _is_annotated(record)),
                expected="Natural Questions, one JSON object a line with example_id, question_text, document_url,"
                " document_text or document_tokens, and annotations",
            )
        check_names(inputs.records, split)
        check_labels(inputs.labels, storage, of="Natural Questions' test split", fields=("example_id", _ANNOTATIONS))
        if inputs.references and split == "train":
            raise SetupError("train of nq has no annotation campaign: it is for dev and test, leave it out.")
        check_campaign(inputs.references, storage)

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: NqOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(inputs.scratch))
            labels: Labels | None = None
            if inputs.labels:
                labels = stack.enter_context(Labels(inputs.scratch, id_of=_id_of, fields=(_ANNOTATIONS,)))
                yield from labels.keep((iter_labels(storage, path) for path in inputs.labels), tally)
            if inputs.references:
                yield from keep_campaign(inputs.references, storage=storage, scratch=scratch, tally=tally)
            questions = NqQuestions(split, campaign=lambda key: findings(scratch, key), options=options)
            yield from read_examples(
                (iter_lines(storage, path) for path in inputs.records),
                id_of=_id_of,
                convert=questions.example,
                scratch=scratch,
                tally=tally,
                labels=labels,
            )


class NqQuestions:
    """Converts parsed questions of one split.

    Args:
        split: test questions need no annotations.
        campaign: gives what the annotation campaign found for an id, None where it did not show the question.
        options: those that begin with ``nq_`` count.
    """

    def __init__(self, split: Split, *, campaign: Campaign, options: NqOptions) -> None:
        self._split = split
        self._campaign = campaign
        self._options = options

    def example(self, record: Json, origin: Origin) -> Example:
        """Gives the example: outputs of the short answers, of the long ones, of the campaign's passages.

        Raises:
            ExclusionError: ``no_short_answer``, ``yes_no_only``, ``long_short_answers``, ``no_accepted_passage``.
            RecordError: ``missing_field``, ``wrong_type``, ``token_range``, ``unknown_label``.
        """
        example_id = _id_of(record)
        question = text_at(record, "question_text")
        outputs: list[Output] = []
        if self._split != "test" or _is_annotated(record):
            outputs = self._outputs(record)
        found = self._campaign(example_id)
        if found is not None and not found.accepted:
            raise ExclusionError("no_accepted_passage")
        partial: tuple[Evidence, ...] = ()
        if outputs and found is not None:
            outputs += [Output(None, (evidence,)) for evidence in found.accepted]
            partial = found.partial
        raw = origin.raw
        return Example(example_id, question, tuple(outputs), None, file=raw.file, line=raw.line, partial=partial)

    def _outputs(self, record: Json) -> list[Output]:
        annotations = objects_at(record, _ANNOTATIONS)
        written = list(chain.from_iterable(objects_at(annotation, "short_answers") for annotation in annotations))
        choices = [_yes_no(annotation) for annotation in annotations]
        if not written:
            is_yes_no = any(choice != _NONE for choice in choices)
            raise ExclusionError("yes_no_only" if is_yes_no else "no_short_answer")
        document = NqDocument(record, splits_anywhere=self._options.nq_tokens == "released")
        page = PageKey("url", text_at(record, "document_url"))
        return [
            *self._short_answers([document.tokens(place) for place in written], page),
            *self._long_answers(annotations, choices, document, page),
        ]

    def _short_answers(self, spans: list[list[NqToken]], page: PageKey) -> Iterator[Output]:
        """Gives one output for each distinct short answer; the longer ones have no provenance."""
        n_tokens = {self._text(tokens): sum(not token.is_html for token in tokens) for tokens in spans}
        answers = [answer for answer, count in n_tokens.items() if count]
        if not answers:
            raise ExclusionError("no_short_answer")
        short = [answer for answer in answers if n_tokens[answer] <= MAX_ANSWER_TOKENS]
        if not short:
            raise ExclusionError("long_short_answers")
        for answer in answers if self._options.nq_keep_long_short_answers else short:
            is_short = n_tokens[answer] <= MAX_ANSWER_TOKENS
            yield Output(answer, (Evidence(page, answer),) if is_short else ())

    def _long_answers(
        self, annotations: list[Json], choices: list[str], document: NqDocument, page: PageKey
    ) -> Iterator[Output]:
        """Gives one output for each distinct long answer, with what its first annotator said.

        Null is one of them where that is asked for, with no text.
        """
        seen: set[str] = set()
        for number, annotation in enumerate(annotations):
            place = object_at(annotation, "long_answer")
            if _is_null(place) and self._options.nq_null_long_answers == "skip":
                continue
            text = "" if _is_null(place) else self._text(document.tokens(place))
            if text in seen:
                continue
            seen.add(text)
            who = number if self._options.nq_annotation_meta == "own" else 0
            meta = {"yes_no_answer": choices[who], "annotation_id": integer_at(annotations[who], "annotation_id")}
            yield Output(None, (Evidence(page, text, meta),))

    def _text(self, tokens: list[NqToken]) -> str:
        return joined(tokens, strips_html=self._options.nq_strip_html)


def _id_of(record: Json) -> str:
    return str(integer_at(record, "example_id"))


def _is_annotated(record: Json) -> bool:
    return bool(record.get(_ANNOTATIONS))


def _yes_no(annotation: Json) -> str:
    value = text_at(annotation, "yes_no_answer")
    if value not in _YES_NO:
        raise RecordError("unknown_label", repr(value))
    return value


def _is_null(place: Json) -> bool:
    """Says whether an annotator found no long answer: all numbers are -1."""
    return integer_at(place, "start_token") == integer_at(place, "end_token") == -1
