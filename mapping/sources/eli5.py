"""ELI5: questions to a forum, with several long answers each, and passages that annotators chose for them.

Source: Fan et al. 2019, "ELI5: Long Form Question Answering"; the dumps with ``q_id``, ``title``, ``selftext`` and
``answers``; section 4 of the KILT paper for the passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.records import Example, Output
from mapping.sources.forms.campaign import CAMPAIGN, CampaignFindings, check_campaign, findings, keep_campaign
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally, check_names
from mapping.sources.reading.examples import ExclusionError, Origin, read_examples
from mapping.sources.reading.fields import Json, is_integer, list_at, object_at, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape
from mapping.sources.reading.labels import iter_labels
from mapping.sources.reading.parquet_in import is_parquet, iter_parquet
from mapping.sources.reading.scratch import Scratch

Annotations = Callable[[str], CampaignFindings | None]
"""Id of a question -> what annotators found for it, None for one that they were not shown."""

_FIELDS = ("q_id", "title", "answers")


class Eli5(Source[SourceOptions]):
    """Reads the dumps: JSON lines, a JSON array or Parquet. References are the files of an annotation campaign.

    Train has the answers alone. Dev and test have the questions that were annotated, with the passages that were
    accepted behind the answers; without a campaign they have every question, with the answers alone.
    """

    name = "eli5"
    options = SourceOptions
    references = CAMPAIGN

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            check_shape(
                path,
                _records(storage, path),
                lambda record: {"q_id", "title"} <= record.keys() and (split == "test" or "answers" in record),
                expected="ELI5 as JSON lines, a JSON array or Parquet, with q_id, title and answers (text and score)",
            )
        check_names(inputs.records, split)
        if inputs.references and split == "train":
            raise SetupError("train of eli5 has answers alone: a campaign is for dev and test, leave it out.")
        check_campaign(inputs.references, storage)

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Scratch(inputs.scratch) as scratch:
            annotations: Annotations | None = None
            if inputs.references:
                yield from keep_campaign(inputs.references, storage=storage, scratch=scratch, tally=tally)
                annotations = partial(findings, scratch)
            yield from read_examples(
                (_records(storage, path) for path in inputs.records),
                id_of=lambda record: text_at(record, "q_id"),
                convert=Threads(split, annotations=annotations).example,
                scratch=scratch,
                tally=tally,
            )


class Threads:
    """Converts parsed threads of one split.

    Args:
        split: test questions need no answers.
        annotations: what a campaign found; None without one, and then every question counts.
    """

    def __init__(self, split: Split, *, annotations: Annotations | None) -> None:
        self._split = split
        self._annotations = annotations

    def example(self, record: Json, origin: Origin) -> Example:
        """Gives the example: an output for each answer, then one without answer for each accepted passage.

        Raises:
            ExclusionError: ``no_accepted_passage``, ``no_answer``, ``not_annotated``.
            RecordError: ``missing_field``, ``uneven_lists``, ``wrong_type``.
        """
        question_id, title = text_at(record, "q_id"), text_at(record, "title")
        outputs: tuple[Output, ...] = ()
        if self._split != "test" or record.get("answers") is not None:
            outputs = _answers(object_at(record, "answers"))
            if not outputs:
                raise ExclusionError("no_answer")
        found = CampaignFindings((), ())
        if self._annotations is not None:
            shown = self._annotations(question_id)
            if shown is None:
                raise ExclusionError("not_annotated")
            if not shown.accepted:
                raise ExclusionError("no_accepted_passage")
            found = shown
        outputs += tuple(Output(None, (evidence,)) for evidence in found.accepted)
        return Example(
            question_id, title, outputs, None, file=origin.raw.file, line=origin.raw.line, partial=found.partial
        )


def _answers(written: Json) -> tuple[Output, ...]:
    """Gives an output for each answer that has any text, with its score where there is one."""
    texts = list_at(written, "text")
    scores = list_at(written, "score") if written.get("score") is not None else [None] * len(texts)
    if len(texts) != len(scores):
        raise RecordError("uneven_lists", f"{len(texts)} answers have {len(scores)} scores")
    outputs = []
    for text, score in zip(texts, scores, strict=True):
        if not isinstance(text, str) or not (score is None or is_integer(score)):
            raise RecordError("wrong_type", f"an answer is text and its score an integer, found {text!r:.80}, {score}")
        if text.strip():
            outputs.append(Output(text, (), None if score is None else {"score": score}))
    return tuple(outputs)


def _records(storage: Storage, path: str) -> Iterator[RawRecord]:
    return iter_parquet(storage, path, _FIELDS) if is_parquet(storage, path) else iter_labels(storage, path)
