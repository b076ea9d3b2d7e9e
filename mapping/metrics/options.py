"""How QAMPARI is evaluated: choices and their meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kbsource.errors import SetupError

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
    "evidence_mean": "ERECALL@K is a mean over the pieces of evidence of a question, not over its answers, and a "
    "passage given twice is two",
}
"""What the released script does otherwise: name -> meaning."""


@dataclass(frozen=True, slots=True)
class QampariFiles:
    """Paths of what is evaluated; at least one of predictions and retrieved."""

    gold: str
    predictions: str | None = None
    retrieved: str | None = None


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """How it is evaluated.

    Attributes:
        ks: numbers of passages, ascending, each once.
        evidence_match: what gold evidence is found by; a key of ``EVIDENCE_MATCHES``.
        matching: a key of ``MATCHINGS``.
        quirks: of ``QUIRKS``.
    """

    ks: tuple[int, ...] = DEFAULT_KS
    evidence_match: EvidenceMatch = "text"
    matching: Matching = "greedy"
    quirks: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if not self.ks or min(self.ks) < 1 or list(self.ks) != sorted(set(self.ks)):
            raise SetupError(f"--k is {','.join(map(str, self.ks))}; give ascending numbers from 1, such as 10,100.")
        if self.evidence_match not in EVIDENCE_MATCHES:
            raise SetupError(f"--evidence-match {self.evidence_match}: choose one of {', '.join(EVIDENCE_MATCHES)}.")
        if self.matching not in MATCHINGS:
            raise SetupError(f"--matching {self.matching}: choose one of {', '.join(MATCHINGS)}.")
        if unknown := sorted(self.quirks - QUIRKS.keys()):
            raise SetupError(f"--quirk {unknown[0]}: choose one of {', '.join(QUIRKS)}.")
        if "last_owner" in self.quirks and self.matching != "greedy":
            raise SetupError(
                f"--matching {self.matching}: --quirk last_owner gives every name one answer; leave one out."
            )
