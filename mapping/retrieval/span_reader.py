"""Extractive readers: the answer is a span of a passage, found by a question-answering model of transformers.

A model scores each token of a passage as start and as end of the answer. The score of a span is the sum of the two,
minus the sum for the first token, which represents no answer. If it is not positive, the passage has no answer. The
answer is the span with the highest score over all passages, and the passages are ordered by score. Passages that are
too long for the model are read in overlapping windows.

Sources: Devlin et al., BERT (2019), section 4.3, for SQuAD 2.0; Petroni et al., KILT (2021), section 5, BERT + DPR;
Chen et al., AmbER sets (2021), section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kbsource.errors import RecordError, SetupError
from mapping.entail.model import Arrays, TorchComputer, like_lengths, max_tokens_of, read_model_files
from mapping.entail.signal import MAX_PAIR_TOKENS, ModelOptions, model_folder, model_sha256
from mapping.retrieval.queries import Query
from mapping.retrieval.reader import FindPage, Prompt, answer_line
from mapping.retrieval.reader_models import check_head, read_config
from mapping.retrieval.system_options import ReaderOptions

GPU_BATCH = 64
"""Windows per batch on a GPU. A CPU core reads one at a time, so its scores do not depend on other windows."""
DECIMALS = 5
"""Decimals of scores. Their last digits depend on the machine."""
_OVERLAP = 128
_LEAST_PASSAGE = 8
"""Minimum tokens of a passage that must fit."""


class BestSpan(NamedTuple):
    """The best span of a passage."""

    start_char: int
    end_char: int
    score: float  # above 0 if the passage has an answer


class QuestionPassage(NamedTuple):
    """A question and the text that answers it."""

    question: str
    context: str
    start_char: int  # start and end of the part that may contain the answer
    end_char: int


class _TorchSpans(TorchComputer):
    head = "ForQuestionAnswering"
    reads_first_token = False

    def _outcome(self, found: Any, _given: Mapping[str, Any]) -> Any:
        return self._torch.stack([found.start_logits, found.end_logits], dim=-1)


class _Window(NamedTuple):
    """One input of the model."""

    place: int  # number of the pair that the window belongs to
    tokens: dict[str, list[int]]
    spans: list[tuple[int, int] | None]  # span of each token in the passage; None for other tokens


class SpanReader:
    """An extractive reader.

    Raises:
        SetupError: the model does not exist, or is not for question answering.
    """

    def __init__(self, options: ReaderOptions) -> None:
        own = _model_options(options)
        check_head(options.model, read_config(options), "extractive")
        files = read_model_files(own)
        if files.config.num_labels != 2:
            raise SetupError(
                f"{options.model}: has {files.config.num_labels} outputs for a token; --form extractive needs 2, the "
                "start and the end of an answer. Name another model."
            )
        self._tokenizer = files.tokenizer
        self._computer = _TorchSpans(files.folder, options.device, options.precision)
        self._max_tokens = min(options.max_tokens, max_tokens_of(own, files))
        self._n_marks = files.tokenizer.num_special_tokens_to_add(pair=True)
        self._n_answer = options.new_tokens
        self._n_together = 1 if self._computer.device == "cpu" else GPU_BATCH

    def spans(self, pairs: Sequence[QuestionPassage]) -> list[BestSpan | None]:
        """Returns the best span of each pair; None if no token is in the part that may contain it.

        Raises:
            RecordError: ``prompt_too_long``: a question leaves no room for passages.
        """
        windows = list(self._windows(pairs))
        lengths = {place: len(window.tokens["input_ids"]) for place, window in enumerate(windows)}
        groups = like_lengths(lengths, lambda _, n, longest: n < self._n_together)
        outputs = self._computer.outputs([self._padded([windows[place] for place in group]) for group in groups])
        scores: list[Any] = [None] * len(windows)
        for group, found in zip(groups, outputs, strict=True):
            for place, own in zip(group, found, strict=True):
                scores[place] = own[: lengths[place]]
        return self._best(windows, scores, len(pairs))

    def check(self, question: str) -> None:
        """Raises RecordError, as ``spans``."""
        self._room(question)

    def _room(self, question: str) -> int:
        n_question = len(self._tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"])
        room: int = self._max_tokens - self._n_marks - n_question
        if room < _LEAST_PASSAGE:
            most = self._max_tokens - self._n_marks - _LEAST_PASSAGE
            raise RecordError(
                "prompt_too_long", f"the question without passages has {n_question:,} tokens; {most:,} fit"
            )
        return room

    def _windows(self, pairs: Sequence[QuestionPassage]) -> Iterator[_Window]:
        start = 0
        for question, grouped in groupby(pairs, key=lambda pair: pair.question):
            own = list(grouped)
            found = self._tokenizer(
                [question] * len(own),
                [window.context for window in own],
                truncation="only_second",
                max_length=self._max_tokens,
                stride=min(_OVERLAP, self._room(question) // 2),
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                verbose=False,
            )
            names = [name for name in self._tokenizer.model_input_names if name in found]
            for number, of in enumerate(found["overflow_to_sample_mapping"]):
                pair = own[of]
                offsets = zip(found["offset_mapping"][number], found.sequence_ids(number), strict=True)
                spans = [
                    (begin, end) if part == 1 and pair.start_char <= begin < end <= pair.end_char else None
                    for (begin, end), part in offsets
                ]
                yield _Window(start + of, {name: found[name][number] for name in names}, spans)
            start += len(own)

    def _best(self, windows: Sequence[_Window], scores: Sequence[Any], n_pairs: int) -> list[BestSpan | None]:
        best: list[tuple[int, int, float] | None] = [None] * n_pairs
        no_answer = [np.inf] * n_pairs
        for window, own in zip(windows, scores, strict=True):
            place = window.place
            no_answer[place] = min(no_answer[place], float(own[0].sum()))
            if (found := answer_span(own, window.spans, self._n_answer)) is not None:
                known = best[place]
                if known is None or found[2] > known[2]:
                    best[place] = found
        return [
            None if span is None else BestSpan(span[0], span[1], round(span[2] - nothing, DECIMALS))
            for span, nothing in zip(best, no_answer, strict=True)
        ]

    def _padded(self, windows: Sequence[_Window]) -> Arrays:
        padded = self._tokenizer.pad([window.tokens for window in windows], padding="longest", return_tensors="np")
        return {name: np.asarray(values, dtype=np.int64) for name, values in padded.items()}

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        """Returns the hash of a model's files; weights are hashed without opening them. Raises SetupError if there is
        no model."""
        return model_sha256(model_folder(_model_options(options)), "torch")


def _model_options(options: ReaderOptions) -> ModelOptions:
    return ModelOptions(options.model, max_tokens=MAX_PAIR_TOKENS)


def answer_span(
    scores: npt.NDArray[np.float32], spans: Sequence[tuple[int, int] | None], n_most: int
) -> tuple[int, int, float] | None:
    """Returns the start and end of the best span in a passage, and its score. If scores are equal, the first span wins.

    Args:
        scores: tokens × (start, end).
        spans: the span of each token; None for tokens that cannot be in an answer.
        n_most: maximum tokens of a span.

    >>> scores = np.array([[9, 9], [1, 0], [0, 2], [0, 9]], np.float32)
    >>> answer_span(scores, [None, (0, 3), (4, 6), (7, 8)], 2)
    (4, 8, 9.0)
    """
    known = np.array([span is not None for span in spans])
    if not known.any():
        return None
    table = scores[:, 0, None].astype(np.float64) + scores[None, :, 1]
    lengths = np.arange(len(spans))[None, :] - np.arange(len(spans))[:, None]
    table[(lengths < 0) | (lengths >= n_most) | ~known[:, None] | ~known[None, :]] = -np.inf
    first, last = np.unravel_index(int(table.argmax()), table.shape)
    begin, end = spans[int(first)], spans[int(last)]
    assert begin is not None
    assert end is not None
    return begin[0], end[1], float(table[first, last])


def extract_answers(
    questions: Sequence[Query], model: SpanReader, *, prompt: Prompt, top: int, find_page: FindPage | None = None
) -> Iterator[bytes | RecordError]:
    """Predicts an answer to each question, as a line in the format of its benchmark, or returns the reason why there is
    no prediction."""
    refused: dict[int, RecordError] = {}
    pairs: list[QuestionPassage] = []
    for place, query in enumerate(questions):
        question = prompt.text(query, ())
        try:
            model.check(question)
        except RecordError as error:
            refused[place] = RecordError(error.reason, f"{query.query_id}: {error.detail}")
            continue
        pairs += [QuestionPassage(question, *prompt.context(hit)) for hit in query.contexts[:top]]
    found = iter(model.spans(pairs) if pairs else ())
    for place, query in enumerate(questions):
        if place in refused:
            yield refused[place]
            continue
        own = [(hit, next(found)) for hit in query.contexts[:top]]
        ranked = sorted(own, key=lambda pair: -np.inf if pair[1] is None else pair[1].score, reverse=True)
        answers = []
        for hit, span in ranked:
            if span is not None and span.score > 0:
                answers.append(prompt.context(hit).text[span.start_char : span.end_char].strip())
        yield answer_line(query, [hit for hit, _ in ranked], answers, find_page)
