"""Fact checkers: a classifier with three classes judges a claim against each passage.

The classes are supported, refuted and not enough information. For KILT records the answer is the class of most
passages; ties go to the more probable class. Not enough information then counts as refuted, since each of KILT's claims
is either supported or refuted. For AmbER sets the answer is the most probable class of a passage that is not neutral.
Passages are ordered by the probability of the answer.

Sources: Petroni et al., KILT (2021), section 5; Chen et al., AmbER sets (2021), section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kbsource.errors import RecordError, SetupError
from mapping.entail.model import max_tokens_of, open_model, read_model_files
from mapping.entail.signal import (
    MAX_PAIR_TOKENS,
    ModelOptions,
    Pair,
    UnjudgedPair,
    Verdict,
    model_folder,
    model_sha256,
    read_labels,
)
from mapping.retrieval.page_lookup import PageLookup
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.reader import Prompt, answer_line
from mapping.retrieval.reader_models import check_head, read_config
from mapping.retrieval.system_options import ReaderOptions, backend_of

ANSWERS = {"entailment": "SUPPORTS", "contradiction": "REFUTES", "neutral": "REFUTES"}
"""The answer to a claim for each class. If two classes are equally frequent and equally probable, the first one in this
order is chosen.
"""


class FactChecker:
    """A classifier of claims.

    Raises:
        SetupError: the model does not exist, or does not have three classes.
    """

    def __init__(self, options: ReaderOptions) -> None:
        own = _model_options(options)
        check_head(options.model, read_config(options), "fact-checking")
        files = read_model_files(own)
        names = files.config.id2label
        labels = read_labels(names, options.labels, model=options.model)
        if labels.neutral is None or labels.contradiction is None:
            said = ", ".join(options.labels or map(str, names.values()))
            raise SetupError(
                f"{options.model}: has {labels.n_outputs} classes ({said}); --form fact-checking needs three: "
                "supported, refuted and not enough information. Name another model."
            )
        limit = max_tokens_of(own, files)
        max_tokens = own.max_tokens if options.max_tokens >= limit else options.max_tokens
        self._model = open_model(_model_options(options, max_tokens))

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        """Returns the probabilities of the classes of each pair of passage and claim, or why it was not judged."""
        return self._model.judge(pairs)

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        """Returns the hash of a model's files; weights are hashed without opening them. Raises SetupError if there is
        no model."""
        own = _model_options(options)
        return model_sha256(model_folder(own), own.backend)


def _model_options(options: ReaderOptions, max_tokens: int = MAX_PAIR_TOKENS) -> ModelOptions:
    return ModelOptions(
        options.model,
        device=options.device,
        backend="torch" if options.precision != "float32" else backend_of(options.model),
        precision=options.precision,
        labels=options.labels,
        max_tokens=max_tokens,
        batch_pairs=max(1, options.batch_tokens // max_tokens),
    )


def check_claims(
    claims: Sequence[Query],
    model: FactChecker,
    *,
    prompt: Prompt,
    top: int,
    pages: PageLookup | None = None,
    n_sentences: int | None = None,
) -> Iterator[bytes | RecordError]:
    """Predicts a label for each claim, as a line in the format of its benchmark, or returns the reason why there is no
    prediction.

    Args:
        n_sentences: number of sentences at the beginning of a passage's page, looked up in ``pages``, that are read
            instead of the passage.
    """
    read: list[tuple[Hit, ...] | RecordError] = []
    for query in claims:
        try:
            read.append(_contexts(query, top, pages, n_sentences))
        except RecordError as error:
            read.append(RecordError(error.reason, f"{query.query_id}: {error.detail}"))
    pairs = [
        Pair(prompt.context(hit).text, prompt.text(query, ()))
        for query, hits in zip(claims, read, strict=True)
        if not isinstance(hits, RecordError)
        for hit in hits
    ]
    judged = iter(model.judge(pairs) if pairs else ())
    for query, hits in zip(claims, read, strict=True):
        if isinstance(hits, RecordError):
            yield hits
            continue
        verdicts = [next(judged) for _ in hits]
        refused = next(
            (
                verdict
                for verdict in verdicts
                if isinstance(verdict, UnjudgedPair) and verdict.reason != "empty_premise"
            ),
            None,
        )
        if refused is None:
            yield _line(query, hits, [verdict if isinstance(verdict, Verdict) else None for verdict in verdicts])
        elif refused.reason == "hypothesis_too_long":
            yield RecordError("prompt_too_long", f"{query.query_id}: the claim without passages has {refused.detail}")
        else:
            yield RecordError("wrong_type", f"{query.query_id}: the input is empty")


def _contexts(query: Query, top: int, pages: PageLookup | None, n_sentences: int | None) -> tuple[Hit, ...]:
    if query.benchmark == "qampari":
        raise RecordError("no_claim", "a question for a list is not a claim")
    first = query.contexts[:top]
    if n_sentences is None or pages is None:
        return first
    found = [pages.beginning(page_id, n_sentences) for page_id in dict.fromkeys(hit.page_id for hit in first)]
    return tuple(hit for hit in found if hit.text)


def _line(query: Query, hits: Sequence[Hit], verdicts: Sequence[Verdict | None]) -> bytes:
    known = [verdict for verdict in verdicts if verdict is not None]
    answer = most_probable(known) if query.benchmark == "amber" else majority(known)

    def probability(verdict: Verdict | None) -> float:
        if verdict is None:
            return -1.0
        supported, refuted = verdict.entailment, verdict.contradiction or 0.0
        return supported if answer == "SUPPORTS" else refuted if answer == "REFUTES" else max(supported, refuted)

    order = sorted(range(len(hits)), key=lambda number: -probability(verdicts[number]))
    return answer_line(query, [hits[number] for number in order], [answer] if answer else [])


def majority(verdicts: Sequence[Verdict]) -> str:
    """Returns the answer of most verdicts, as KILT counts them; the answer for not enough information if there are no
    verdicts.

    >>> majority([Verdict(0.6, 0.3, 0.1), Verdict(0.1, 0.7, 0.2), Verdict(0.2, 0.5, 0.3)])
    'REFUTES'
    """
    counts = Counter(verdict.label for verdict in verdicts)

    def votes(label: str) -> tuple[int, float]:
        return counts[label], round(sum(getattr(verdict, label) for verdict in verdicts), 6)

    return ANSWERS[max(ANSWERS, key=votes)] if verdicts else ANSWERS["neutral"]


def most_probable(verdicts: Sequence[Verdict]) -> str:
    """Returns AmbER's answer for the most probable of the verdicts that are not neutral; empty if all are neutral.

    >>> most_probable([Verdict(0.1, 0.9, 0.0), Verdict(0.6, 0.3, 0.1), Verdict(0.1, 0.2, 0.7)])
    'REFUTES'
    """
    labels = [(verdict.label, getattr(verdict, verdict.label)) for verdict in verdicts if verdict.label != "neutral"]
    return ANSWERS[max(labels, key=lambda scored_label: scored_label[1])[0]] if labels else ""
