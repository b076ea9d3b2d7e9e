"""Natural Questions: questions to a search engine, answered by annotators from one page of Wikipedia.

Source: https://github.com/google-research-datasets/natural-questions (README.md for the format, text_utils.py for the
simplified one) and section 4 of the KILT paper (the open version: short answers of at most five tokens).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Literal, NamedTuple

from kbsource.errors import RecordError
from mapping.options import ON_BY_DEFAULT
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.campaign import CampaignSource, findings
from mapping.sources.examples import ExclusionError, Origin
from mapping.sources.raw_records import Json, integer_at, list_at, object_at, objects_at, text_at
from mapping.sources.source import (
    ANSWERS_STAY,
    Averages,
    LabelForm,
    Ownership,
    PublishedFigures,
    SourceOptions,
    by_split,
)

MAX_ANSWER_TOKENS = 5
"""Maximum tokens of a short answer, not counting HTML. A question without such an answer is not an open question."""

_ANNOTATIONS = "annotations"
_NONE = "NONE"
_YES_NO = ("YES", "NO", _NONE)
# The simplified form does not mark tags. They look like <P>, </P>, <Td_colspan="2">; names begin with a capital.
_TAG = re.compile(r"</?[A-Z][A-Za-z0-9]*(?:_.*)?/?>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NqOptions(SourceOptions):
    """Options of Natural Questions. ``released`` follows the authors' code and the published files."""

    nq_keep_long_short_answers: Annotated[bool, ON_BY_DEFAULT] = True
    """Short answers of more than five tokens are kept, without provenance."""
    nq_strip_html: Annotated[bool, ON_BY_DEFAULT] = True
    """HTML tokens are removed from answers and evidence; otherwise they lower the score of long answers."""
    nq_annotation_meta: Literal["own", "released"] = "own"
    """Which annotation a long answer takes its meta from: its own, or always the first."""
    nq_null_long_answers: Literal["skip", "released"] = "skip"
    """How a null long answer is treated. released: an empty span before the title, with BLEU 1.0, as in the released
    data.
    """
    nq_tokens: Literal["blank", "released"] = "blank"
    """Separator of tokens; released splits at any white space, which shifts spans."""

    @property
    def locates_empty(self) -> bool:
        """True if evidence without text is located before the title."""
        return self.nq_null_long_answers == "released"


class NaturalQuestions(CampaignSource[NqOptions]):
    """Questions in either form, full (``document_tokens``) or simplified (``document_text``).

    A campaign adds passages that contain the answer, and excludes questions that no passage answers.
    """

    name = "nq"
    summary = "Natural Questions: questions that people typed into a search engine"
    form = (
        "Natural Questions, one JSON object a line with example_id, question_text, document_url, document_text or"
        " document_tokens, and annotations"
    )
    keys = frozenset({"example_id", "question_text", "document_url"})
    train_has = "no annotation campaign: it"
    options_type = NqOptions
    labels = LabelForm("Natural Questions' test split", "example_id", (_ANNOTATIONS,))
    # Short answers that are not found are kept as answers.
    policies = by_split(
        replace(ANSWERS_STAY, highlights="paragraphs", found_first=True),
        train=replace(ANSWERS_STAY, needs_provenance=False, found_first=True),
    )
    hypothesis = "answer"
    metric = "em"
    published = PublishedFigures(
        {"train": 87_372, "dev": 2_837, "test": 1_444},
        Averages(1, 3.22, 1.57, 2.08),
        {"dev": (595, 16.12), "test": (287, 15.59)},
    )
    ownership = Ownership(
        "Natural Questions",
        "Google LLC",
        "https://huggingface.co/datasets/google-research-datasets/natural_questions",
        "CC-BY-SA-3.0",
    )

    def id_of(self, record: Json) -> str:
        return str(integer_at(record, "example_id"))

    def fits(self, path: str, record: Json) -> bool:
        return super().fits(path, record) and (self.split == "test" or bool(record.get(_ANNOTATIONS)))

    def example(self, record: Json, origin: Origin) -> Example:
        """Returns an example with outputs for the short answers, the long answers, and the passages of the campaign.

        Raises:
            ExclusionError: ``no_short_answer``, ``yes_no_only``, ``long_short_answers``, ``no_accepted_passage``.
            RecordError: ``missing_field``, ``wrong_type``, ``token_range``, ``unknown_label``.
        """
        question = text_at(record, "question_text")
        outputs: list[Output] = []
        if self.split != "test" or record.get(_ANNOTATIONS):
            outputs = _outputs(record, self.options)
        found = findings(self.scratch, origin.key)
        if found is None:
            return origin.example(question, outputs)
        if not found.accepted:
            raise ExclusionError("no_accepted_passage")
        if not outputs:
            return origin.example(question, ())
        outputs += [Output(None, (evidence,)) for evidence in found.accepted]
        return origin.example(question, outputs, partial=found.partial)


def _outputs(record: Json, options: NqOptions) -> list[Output]:
    annotations = objects_at(record, _ANNOTATIONS)
    written = list(chain.from_iterable(objects_at(annotation, "short_answers") for annotation in annotations))
    choices = [_yes_no(annotation) for annotation in annotations]
    if not written:
        is_yes_no = any(choice != _NONE for choice in choices)
        raise ExclusionError("yes_no_only" if is_yes_no else "no_short_answer")
    document = NqDocument(record, splits_anywhere=options.nq_tokens == "released")
    page = PageKey("url", text_at(record, "document_url"))
    return [
        *_short_answers([document.tokens(place) for place in written], page, options),
        *_long_answers(annotations, choices, document, page=page, options=options),
    ]


def _yes_no(annotation: Json) -> str:
    value = text_at(annotation, "yes_no_answer")
    if value not in _YES_NO:
        raise RecordError("unknown_label", repr(value))
    return value


def _short_answers(spans: list[list[NqToken]], page: PageKey, options: NqOptions) -> Iterator[Output]:
    """Makes one output for each distinct short answer; long answers have no provenance."""
    n_tokens = {
        joined_tokens(tokens, strips_html=options.nq_strip_html): sum(not token.is_html for token in tokens)
        for tokens in spans
    }
    answers = [answer for answer, count in n_tokens.items() if count]
    if not answers:
        raise ExclusionError("no_short_answer")
    short = [answer for answer in answers if n_tokens[answer] <= MAX_ANSWER_TOKENS]
    if not short:
        raise ExclusionError("long_short_answers")
    for answer in answers if options.nq_keep_long_short_answers else short:
        yield Output(answer, (Evidence(page, answer),) if n_tokens[answer] <= MAX_ANSWER_TOKENS else ())


def _long_answers(
    annotations: list[Json], choices: list[str], document: NqDocument, *, page: PageKey, options: NqOptions
) -> Iterator[Output]:
    """Makes one output for each distinct long answer, with the meta of its first annotator.

    With the option for null long answers, they are included, with empty text.
    """
    seen: set[str] = set()
    for number, annotation in enumerate(annotations):
        place = object_at(annotation, "long_answer")
        is_null = integer_at(place, "start_token") == integer_at(place, "end_token") == -1
        if is_null and options.nq_null_long_answers == "skip":
            continue
        text = "" if is_null else joined_tokens(document.tokens(place), strips_html=options.nq_strip_html)
        if text in seen:
            continue
        seen.add(text)
        who = number if options.nq_annotation_meta == "own" else 0
        meta = {"yes_no_answer": choices[who], "annotation_id": integer_at(annotations[who], "annotation_id")}
        yield Output(None, (Evidence(page, text, meta),))


class NqToken(NamedTuple):
    """A word, or an HTML tag of headings, paragraphs, tables and lists."""

    text: str
    is_html: bool


class NqDocument:
    """The tokens of a record's page, full (``document_tokens``) or simplified (``document_text``).

    With ``splits_anywhere``, any white space separates tokens, and a token of only white space is dropped, as in the
    authors' code. The token numbers of the record then point to other tokens, and numbers after the last token are
    ignored.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """

    def __init__(self, record: Json, *, splits_anywhere: bool = False) -> None:
        self._splits_anywhere = splits_anywhere
        self._pieces: list[NqToken] | None = None
        self._is_full = "document_tokens" in record
        if self._is_full:
            self._tokens = list_at(record, "document_tokens")
        else:
            self._tokens = text_at(record, "document_text").split(" ")

    def tokens(self, place: Json) -> list[NqToken]:
        """Returns the tokens from ``start_token`` up to, but not including, ``end_token``.

        Raises:
            RecordError: ``token_range`` (the tokens do not exist), ``missing_field``, ``wrong_type``.
        """
        start, end = integer_at(place, "start_token"), integer_at(place, "end_token")
        if not 0 <= start < end <= len(self._tokens):
            raise RecordError("token_range", f"tokens {start} to {end} of {len(self._tokens)}")
        if self._splits_anywhere:
            if self._pieces is None:
                self._pieces = list(self._split_anywhere())
            return self._pieces[start:end]
        span = self._tokens[start:end]
        return [_full_token(token) for token in span] if self._is_full else [_simplified_token(token) for token in span]

    def _split_anywhere(self) -> Iterator[NqToken]:
        for written in self._tokens:
            if self._is_full:
                text, is_html = _full_token(written)
                yield from (NqToken(piece, is_html) for piece in text.split())
            else:
                yield from map(_simplified_token, written.split())


def joined_tokens(tokens: Iterable[NqToken], *, strips_html: bool) -> str:
    """Joins tokens with single spaces; tags are removed on request.

    >>> joined_tokens([NqToken("<Li>", True), NqToken("Lake", False), NqToken("Miravel", False)], strips_html=True)
    'Lake Miravel'
    """
    return " ".join(token.text for token in tokens if not (strips_html and token.is_html)).strip()


def _full_token(written: object) -> NqToken:
    if not isinstance(written, dict):
        raise RecordError("wrong_type", f"a token must be an object, found {repr(written)[:80]}")
    is_html = written.get("html_token")
    if not isinstance(is_html, bool):
        raise RecordError("wrong_type", f"'html_token': expected true or false, found {repr(written)[:80]}")
    return NqToken(text_at(written, "token").replace(" ", "_"), is_html)


def _simplified_token(written: str) -> NqToken:
    return NqToken(written, _TAG.fullmatch(written) is not None)


SOURCES = (NaturalQuestions,)
