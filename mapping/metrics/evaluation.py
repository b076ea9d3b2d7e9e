"""What can be evaluated, and how: files and options of each benchmark, and what released scripts do otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from kbsource.errors import SetupError
from mapping.options import (
    AtLeast0,
    Checked,
    File,
    FolderPath,
    NewFile,
    NewFolder,
    Ranks,
    Release,
    Words,
    check_options,
)

EvidenceMatch = Literal["text", "id"]
Matching = Literal["greedy", "maximum"]
Resamples = Annotated[AtLeast0, Parameter("--bootstrap")]

QAMPARI_KS = (10, 25, 50, 100, 200)
"""Source: the paper's tables of retrieval."""
KILT_KS = (1, 5, 10, 20)
"""Source: the released retrieval tool."""
PAGE = ("wikipedia_id",)
"""What tells pages apart: the key that official scores rank by."""

QAMPARI_QUIRKS: Mapping[str, str] = {
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
KILT_QUIRKS: Mapping[str, str] = {
    "empty_sets": "a gold output with an empty provenance is an evidence set that nothing completes",
    "partial_ids": "a gold span that lacks a key is part of its evidence set, under the keys that it has",
    "null_ids": "a key that is null is the text None",
    "empty_answers": "a gold answer or title that is nothing but articles and punctuation is in every context",
}
"""What the released scripts do otherwise: name -> meaning."""


def _quirks(known: Mapping[str, str]) -> Parameter:
    def chosen(type_: Any, tokens: Sequence[Token]) -> frozenset[str]:
        names = frozenset(token.value for token in tokens)
        return frozenset(known) if "all" in names else names

    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in known.items())
    text = f"Evaluate as the released script does; may be repeated. {meanings}; all: all of these."
    return Parameter("--quirk", metavar="NAME", choices=(*known, "all"), converter=chosen, help=text)


def _check_quirks(quirks: frozenset[str], known: Mapping[str, str]) -> None:
    if unknown := sorted(quirks - known.keys()):
        raise SetupError(f"--quirk {unknown[0]}: choose one of {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class QampariFiles:
    """Paths of what is evaluated; at least one of predictions and retrieved."""

    gold: File
    """Questions with answer_list, as released, or with answers, the names of a single answer."""
    _: KW_ONLY
    predictions: File | None = None
    """qid and predictions, a list of strings, for each question."""
    retrieved: File | None = None
    """qid and ctxs, a list of passages with title and text, best first."""
    extended: File | None = None
    """qid and answer_list, the further answers of some questions, as in the paper's ExtendedSet: adds their scores with
    the gold answers alone and with all."""
    compare: File | None = None
    """What a second system gives, qid with predictions, ctxs or both: adds the difference and a paired test."""
    items: NewFile | None = None
    """Where the values of every question are written, JSON Lines."""


@dataclass(frozen=True, slots=True)
class QampariEvaluation:
    """How it is evaluated."""

    ks: Ranks = QAMPARI_KS
    """Numbers of passages that count as retrieved."""
    evidence_match: EvidenceMatch = "text"
    """What gold evidence is found by: text: title and most of the text, for a corpus that was cut in another way; id:
    id of the passage, for evidence that was aligned to the same corpus."""
    matching: Matching = "greedy"
    """greedy: in the order of the predictions, each covers the first answer of its name that is still open; maximum: as
    many answers are covered as the names allow."""
    resamples: Resamples = 0
    """Resamples for confidence intervals and the paired test, such as 10000; 0 for none."""
    quirks: Annotated[frozenset[str], _quirks(QAMPARI_QUIRKS)] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for what does not go together."""
        check_options(self)
        if not self.ks or list(self.ks) != sorted(set(self.ks)):
            raise SetupError(f"--k is {','.join(map(str, self.ks))}; give ascending numbers from 1, such as 10,100.")
        _check_quirks(self.quirks, QAMPARI_QUIRKS)
        if "last_owner" in self.quirks and self.matching != "greedy":
            raise SetupError(
                f"--matching {self.matching}: --quirk last_owner gives every name one answer; leave one out."
            )


@dataclass(frozen=True, slots=True)
class AmberFiles:
    """Paths of what is evaluated, and of what is written."""

    gold: File
    """amber_sets.jsonl of a task, as released."""
    predictions: File
    """id and output for each query: provenance, a list of objects with wikipedia_id, best first, or answer."""
    _: KW_ONLY
    metrics: NewFolder | None = None
    """Takes metrics@K.json and raw_metrics@K.json, as the released tool's."""
    plot: NewFile | None = None
    """Takes the plot of accuracy by gap in popularity, as an HTML page."""
    compare: File | None = None
    """Predictions of a second system: adds the difference and a paired test."""
    items: NewFile | None = None
    """Where the values of every query, and of every set, are written, JSON Lines."""


@dataclass(frozen=True, slots=True)
class AmberEvaluation(Checked):
    """How they are evaluated."""

    ks: Ranks = (1,)
    """Numbers of pages that count as retrieved."""
    gap_on: Literal["log10", "views"] = "log10"
    """Popularity that the gap between head and tail is taken of."""
    resamples: Resamples = 0
    """Resamples for confidence intervals and the paired test, such as 10000; 0 for none."""


@dataclass(frozen=True, slots=True)
class KiltFiles:
    """Paths of what is evaluated: files, or with ``all_tasks`` folders."""

    gold: File
    """Records of a task with their outputs; with --all a folder of them."""
    predictions: File
    """id and output, a list with one object, for each record; with --all a folder of them, each file under the name of
    its gold file."""
    _: KW_ONLY
    all_tasks: Annotated[bool, Parameter("--all")] = False
    """Evaluate every file of the folders: prints the leaderboard's table."""
    compare: File | None = None
    """Predictions of a second system: adds the difference and a paired test."""
    crosswalk: FolderPath | None = None
    """Alignment of the gold file that kbsource map kilt wrote: predictions made on the old snapshot are moved to the
    new one before they are scored."""
    accept_redirects: Release | None = None
    """Release in which an answer that is the title of a redirect counts as the article's."""
    items: NewFile | None = None
    """Where the values of every record are written, JSON Lines."""


@dataclass(frozen=True, slots=True)
class KiltEvaluation:
    """How it is evaluated."""

    ks: Ranks = KILT_KS
    """Ranks at which places are looked at."""
    rank_keys: Annotated[Words, Parameter(metavar="KEY,…")] = PAGE
    """Keys of a span that tell places apart, such as wikipedia_id,section or
    wikipedia_id,start_paragraph_id,end_paragraph_id; KILT scores always go by page."""
    resamples: Resamples = 0
    """Resamples for confidence intervals and the paired test, such as 10000; 0 for none."""
    quirks: Annotated[frozenset[str], _quirks(KILT_QUIRKS)] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for what does not go together."""
        check_options(self)
        if not self.rank_keys:
            raise SetupError("--rank-keys names no key; give wikipedia_id, or several with commas.")
        _check_quirks(self.quirks, KILT_QUIRKS)
