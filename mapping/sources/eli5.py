"""ELI5: questions to a forum, with several long answers each, and passages that annotators chose for them.

Source: Fan et al. 2019, "ELI5: Long Form Question Answering"; the dumps with ``q_id``, ``title``, ``selftext`` and
``answers``; section 4 of the KILT paper for the passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name
from mapping.records import Example, Output
from mapping.sources.campaign import CampaignSource, findings
from mapping.sources.examples import ExclusionError, Origin
from mapping.sources.raw_records import Json, RawRecord, is_integer, iter_records, list_at, object_at, text_at
from mapping.sources.source import ANSWERS_STAY, Averages, Ownership, PublishedFigures, SourceOptions, by_split

_MAGIC = b"PAR1"
_ROWS_AT_ONCE = 256
_BUFFER_BYTES = 1 << 20


class Eli5(CampaignSource[SourceOptions]):
    """The dumps: JSON lines, a JSON array or Parquet.

    Train has only answers. Dev and test have the annotated questions, with the accepted passages after the answers;
    without a campaign they have every question with only its answers.
    """

    name = "eli5"
    summary = "ELI5: questions to a forum, with long answers"
    form = "ELI5 as JSON lines, a JSON array or Parquet, with q_id, title and answers (text and score)"
    keys, answer_keys = frozenset({"q_id", "title"}), frozenset({"answers"})
    train_has = "only answers: a campaign"
    options_type = SourceOptions
    # Provenance was chosen by annotators; train has no provenance, nor do dev and test without a campaign.
    policies = by_split(
        replace(ANSWERS_STAY, keeps_bare=True, highlights="offsets"),
        train=replace(ANSWERS_STAY, needs_provenance=False),
    )
    metric = "rougel"
    published = PublishedFigures({"train": 272_634, "dev": 1_507, "test": 600}, Averages(1, 1.21, 1.18, 4.69))
    ownership = Ownership("ELI5", "the authors of the posts on Reddit", "https://facebookresearch.github.io/ELI5/")

    def id_of(self, record: Json) -> str:
        return text_at(record, "q_id")

    def raws(self, path: str) -> Iterator[RawRecord]:
        if is_parquet(path):
            return iter_parquet(path, ("q_id", "title", "answers"))
        return iter_records(path)

    def example(self, record: Json, origin: Origin) -> Example:
        """Returns an example with an output for each answer, then an output without answer for each accepted passage.

        Raises:
            ExclusionError: ``no_accepted_passage``, ``no_answer``, ``not_annotated``.
            RecordError: ``missing_field``, ``uneven_lists``, ``wrong_type``.
        """
        title = text_at(record, "title")
        outputs: list[Output] = []
        if self.split != "test" or record.get("answers") is not None:
            outputs = _answers(object_at(record, "answers"))
            if not outputs:
                raise ExclusionError("no_answer")
        if not self.inputs.references:
            return origin.example(title, outputs)
        found = findings(self.scratch, origin.key)
        if found is None or not found.accepted:
            raise ExclusionError("not_annotated" if found is None else "no_accepted_passage")
        outputs += [Output(None, (evidence,)) for evidence in found.accepted]
        return origin.example(title, outputs, partial=found.partial)


def _answers(written: Json) -> list[Output]:
    """Returns an output for each non-empty answer, with its score if there is one."""
    texts = list_at(written, "text")
    scores = list_at(written, "score") if written.get("score") is not None else [None] * len(texts)
    if len(texts) != len(scores):
        raise RecordError("uneven_lists", f"{len(texts)} answers have {len(scores)} scores")
    outputs = []
    for text, score in zip(texts, scores, strict=True):
        if not isinstance(text, str) or not (score is None or is_integer(score)):
            raise RecordError(
                "wrong_type", f"an answer must be text and its score an integer, found {text!r:.80}, {score}"
            )
        if text.strip():
            outputs.append(Output(text, (), None if score is None else {"score": score}))
    return outputs


def is_parquet(path: str) -> bool:
    """Returns whether a file begins like Parquet; False if it does not exist."""
    if not Folder.of(path).exists():
        return False
    with Folder.of(path).open() as file:
        return file.read(len(_MAGIC)) == _MAGIC


def iter_parquet(path: str, columns: Sequence[str]) -> Iterator[RawRecord]:
    """Reads the rows of a file as JSON objects with the columns that the file has; lines are row numbers.

    Memory use is some rows and pages, regardless of the size of the row groups.

    Raises:
        SetupError: the file is truncated or is not Parquet.
    """
    import pyarrow as pa  # dataset options are read without it

    from kbsource.release.reader import parquet_file

    name = base_name(path)
    try:
        with Folder.of(path).open() as file, parquet_file(file, buffer_size=_BUFFER_BYTES, pre_buffer=False) as table:
            known = [column for column in columns if column in table.schema_arrow.names]
            number = 0
            for batch in table.iter_batches(_ROWS_AT_ONCE, columns=known, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield RawRecord(name, number, -1, orjson.dumps(row))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} cannot be read to its end: {error}. Download it again.") from error


SOURCES = (Eli5,)
