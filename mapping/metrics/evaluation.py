"""Files and options for evaluating each benchmark, and the differences of the released scripts."""

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
"""Keys that identify a page; official scores rank by them."""

QAMPARI_QUIRKS: Mapping[str, str] = {
    "raw_predictions": "predictions are compared before they are normalised, and empty ones count",
    "listed_names": "an answer's display text is a name only where it is among its aliases",
    "last_owner": "a name shared by several answers belongs to the last of them, and answers with the same display "
    "text are one answer with the names of the last",
    "substring": "ARECALL@K finds names even inside words",
    "partial_runs": "ERECALL@K misses some runs of characters that passage and evidence share: of runs with the same "
    "length, it misses those further on in the passage",
    "evidence_mean": "ERECALL@K is a mean over the pieces of evidence of a question, not over its answers, and a "
    "passage given twice counts twice",
}
"""Differences of the released script: name -> meaning."""
KILT_QUIRKS: Mapping[str, str] = {
    "empty_sets": "a gold output with an empty provenance is an evidence set that no prediction can complete",
    "partial_ids": "a gold span that lacks a key is part of its evidence set, under the keys that it has",
    "null_ids": "a key that is null is read as the text None",
    "empty_answers": "a gold answer or title with only articles and punctuation counts as found in every context",
}
"""Differences of the released scripts: name -> meaning."""


def _quirks(known: Mapping[str, str]) -> Parameter:
    def chosen(type_: Any, tokens: Sequence[Token]) -> frozenset[str]:
        names = frozenset(token.value for token in tokens)
        return frozenset(known) if "all" in names else names

    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in known.items())
    text = f"Evaluate as the released script does; may be repeated. {meanings}; all: all of these."
    return Parameter("--quirk", metavar="NAME", choices=(*known, "all"), converter=chosen, help=text)


def _check_quirks(quirks: frozenset[str], known: Mapping[str, str]) -> None:
    if unknown := sorted(quirks - known.keys()):
        raise SetupError(f"--quirk {unknown[0]}: there is no such quirk; choose one of {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class QampariFiles:
    """Paths of the evaluated files; at least one of predictions and retrieved is required."""

    gold: File
    """JSON Lines file of questions: with answer_list, as in the released files, or with answers, the names of a single
    answer.
    """
    _: KW_ONLY
    predictions: File | None = None
    """JSON Lines file with qid and predictions, a list of strings, for each question."""
    retrieved: File | None = None
    """JSON Lines file with qid and ctxs, a list of passages with title and text, best first."""
    extended: File | None = None
    """JSON Lines file with qid and answer_list, which contains further answers to some questions, as in the paper's
    ExtendedSet. Adds the scores of these questions with only the gold answers, and with all answers.
    """
    compare: File | None = None
    """Output of a second system, qid with predictions, ctxs or both: adds the difference and a paired test."""
    items: NewFile | None = None
    """Output file for the values of every question, JSON Lines."""


@dataclass(frozen=True, slots=True)
class QampariEvaluation:
    """Options of the evaluation."""

    ks: Ranks = QAMPARI_KS
    """Ranks: numbers of passages that count as retrieved."""
    evidence_match: EvidenceMatch = "text"
    """How gold evidence is matched. text: by title and most of the text, for a corpus with different passages; id: by
    passage id, for evidence that was aligned to the same corpus.
    """
    matching: Matching = "greedy"
    """How predictions are assigned to answers. greedy: in the order of the predictions, each covers the first uncovered
    answer with its name; maximum: the predictions cover as many answers as possible.
    """
    resamples: Resamples = 0
    """Number of resamples for confidence intervals and the paired test, such as 10000; 0 for none."""
    quirks: Annotated[frozenset[str], _quirks(QAMPARI_QUIRKS)] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if not self.ks or list(self.ks) != sorted(set(self.ks)):
            raise SetupError(f"--k is {','.join(map(str, self.ks))}; give ascending numbers from 1, such as 10,100.")
        _check_quirks(self.quirks, QAMPARI_QUIRKS)
        if "last_owner" in self.quirks and self.matching != "greedy":
            raise SetupError(
                f"--matching {self.matching}: --quirk last_owner assigns every name to one answer; leave one of the "
                f"two options out."
            )


@dataclass(frozen=True, slots=True)
class AmberFiles:
    """Paths of the evaluated files, and of output files."""

    gold: File
    """File amber_sets.jsonl of a task, as released."""
    predictions: File
    """JSON Lines file with id and output for each query. The output has provenance, a list of objects with
    wikipedia_id, best first, or answer.
    """
    _: KW_ONLY
    metrics: NewFolder | None = None
    """Output folder for metrics@K.json and raw_metrics@K.json, in the form of the released tool."""
    plot: NewFile | None = None
    """Output file for the plot of accuracy by gap in popularity, as an HTML page."""
    compare: File | None = None
    """Predictions of a second system: adds the difference and a paired test."""
    items: NewFile | None = None
    """Output file for the values of every query and of every set, JSON Lines."""


@dataclass(frozen=True, slots=True)
class AmberEvaluation(Checked):
    """Options of the evaluation."""

    ks: Ranks = (1,)
    """Ranks: numbers of pages that count as retrieved."""
    gap_on: Literal["log10", "views"] = "log10"
    """Scale on which the popularities of head and tail are compared. log10: logarithms of the page views; views: the
    views themselves."""
    resamples: Resamples = 0
    """Number of resamples for confidence intervals and the paired test, such as 10000; 0 for none."""


@dataclass(frozen=True, slots=True)
class KiltFiles:
    """Paths of the evaluated files; of folders with ``all_tasks``."""

    gold: File
    """Records of a task with their outputs; with --all, a folder of such files."""
    predictions: File
    """File with id and output, a list with one object, for each record; with --all, a folder of files, each named like
    its gold file.
    """
    _: KW_ONLY
    all_tasks: Annotated[bool, Parameter("--all")] = False
    """Evaluate every file of the folders: prints the leaderboard's table."""
    compare: File | None = None
    """Predictions of a second system: adds the difference and a paired test."""
    crosswalk: FolderPath | None = None
    """Alignment of the gold file, made by kbsource map kilt: predictions made on the old snapshot are moved to the new
    one before they are scored."""
    accept_redirects: Release | None = None
    """Release whose redirects are accepted: an answer that is the title of a redirect counts as the article's title."""
    items: NewFile | None = None
    """Output file for the values of every record, JSON Lines."""
    submission: NewFile | None = None
    """Output file for a submission to KILT's challenge. No scores are computed; the predictions are checked, and
    the submission has one line for every question, in the order of the test file. A .zip contains a file for each
    test file; for a single test file, the output can be JSON Lines."""


@dataclass(frozen=True, slots=True)
class KiltEvaluation:
    """Options of the evaluation."""

    ks: Ranks = KILT_KS
    """Ranks at which retrieved locations are evaluated."""
    rank_keys: Annotated[Words, Parameter(metavar="KEY,…")] = PAGE
    """Keys of a span that identify a location, such as wikipedia_id,section or
    wikipedia_id,start_paragraph_id,end_paragraph_id; KILT scores always use the page."""
    resamples: Resamples = 0
    """Number of resamples for confidence intervals and the paired test, such as 10000; 0 for none."""
    quirks: Annotated[frozenset[str], _quirks(KILT_QUIRKS)] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if not self.rank_keys:
            raise SetupError("--rank-keys is empty; give wikipedia_id, or several keys separated by commas.")
        _check_quirks(self.quirks, KILT_QUIRKS)
