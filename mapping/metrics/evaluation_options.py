"""How QAMPARI is evaluated: choices and their meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kbsource.errors import SetupError
from mapping.options import check_options, option, path_option

EvidenceMatch = Literal["text", "id"]
Matching = Literal["greedy", "maximum"]

DEFAULT_KS = (10, 25, 50, 100, 200)
"""Source: the paper's tables of retrieval."""
EVIDENCE_MATCHES: Mapping[str, str] = {
    "text": "title and most of the text, for a corpus that was cut in another way",
    "id": "id of the passage, for evidence that was aligned to the same corpus",
}
MATCHINGS: Mapping[str, str] = {
    "greedy": "in the order of the predictions, each covers the first answer of its name that is still open",
    "maximum": "as many answers are covered as the names allow",
}
QUIRKS: Mapping[str, str] = {
    "raw_predictions": "predictions are told apart before they are normalised, and empty ones count",
    "listed_names": "an answer's display text is a name only where it is among its aliases",
    "last_owner": "a name that several answers have belongs to one of them, and answers of one display text are one "
    "with the names of the last",
    "substring": "ARECALL@K finds names inside of words",
    "partial_runs": "ERECALL@K does not see every run of characters that passage and evidence share: where they are of "
    "one length, none that stands further on in the passage",
    "evidence_mean": "ERECALL@K is a mean over the pieces of evidence of a question, not over its answers, and a "
    "passage given twice is two",
}
"""What the released script does otherwise: name -> meaning."""


def ks_option(default: tuple[int, ...], help: str) -> Any:
    """Declares ranks up to which what was retrieved counts."""
    return option(default, help, flag="--k", metavar="K,…", parse=_numbers, lowest=1, remedy="give numbers from 1")


def _numbers(typed: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in typed.split(",")}))
    except ValueError:
        raise SetupError(f"--k is {typed!r}; give whole numbers, such as 10,100.") from None


@dataclass(frozen=True, slots=True)
class QampariFiles:
    """Paths of what is evaluated; at least one of predictions and retrieved."""

    gold: str = option(
        help="questions with answer_list, as released, or with answers, the names of a single answer", metavar="FILE"
    )
    predictions: str | None = path_option("qid and predictions, a list of strings, for each question")
    retrieved: str | None = path_option("qid and ctxs, a list of passages with title and text, best first")


@dataclass(frozen=True, slots=True)
class QampariEvaluation:
    """How it is evaluated.

    Attributes:
        ks: numbers of passages, ascending, each once.
        evidence_match: what gold evidence is found by.
        quirks: of ``QUIRKS``.
    """

    ks: tuple[int, ...] = ks_option(DEFAULT_KS, "numbers of passages that count as retrieved")
    evidence_match: EvidenceMatch = option("text", metavar="HOW", choices=EVIDENCE_MATCHES)
    matching: Matching = option("greedy", metavar="HOW", choices=MATCHINGS)
    quirks: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for what does not go together."""
        check_options(self)
        if not self.ks or list(self.ks) != sorted(set(self.ks)):
            raise SetupError(f"--k is {','.join(map(str, self.ks))}; give ascending numbers from 1, such as 10,100.")
        if unknown := sorted(self.quirks - QUIRKS.keys()):
            raise SetupError(f"--quirk {unknown[0]}: choose one of {', '.join(QUIRKS)}.")
        if "last_owner" in self.quirks and self.matching != "greedy":
            raise SetupError(
                f"--matching {self.matching}: --quirk last_owner gives every name one answer; leave one out."
            )
