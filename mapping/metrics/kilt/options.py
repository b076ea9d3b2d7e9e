"""How predictions for the tasks of KILT are evaluated: files, choices and their meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbsource.errors import SetupError
from mapping.metrics.evaluation_options import ks_option
from mapping.options import check_options, listed, option, path_option

DEFAULT_KS = (1, 5, 10, 20)
"""Source: the released retrieval tool."""
PAGE = ("wikipedia_id",)
"""What tells pages apart: the key that official scores rank by."""

QUIRKS: Mapping[str, str] = {
    "empty_sets": "a gold output with an empty provenance is an evidence set that nothing completes",
    "partial_ids": "a gold span that lacks a key is part of its evidence set, under the keys that it has",
    "null_ids": "a key that is null is the text None",
    "empty_answers": "a gold answer or title that is nothing but articles and punctuation is in every context",
}
"""What the released scripts do otherwise: name -> meaning."""


@dataclass(frozen=True, slots=True)
class KiltFiles:
    """Paths of what is evaluated: files, or under ``all_tasks`` folders."""

    gold: str = option(help="records of a task with their outputs; with --all a folder of them", metavar="FILE")
    predictions: str | None = path_option("id and output, a list with one object, for each record")
    all_tasks: str | None = option(
        None,
        "folder of predictions, each under the name of its gold file: prints the leaderboard's table",
        flag="--all",
        metavar="DIR",
    )
    compare: str | None = path_option("predictions of a second system: adds the difference and a paired test")
    crosswalk: str | None = path_option(
        "alignment of the gold file that kbsource map kilt wrote: predictions made on the old snapshot are moved to "
        "the new one before they are scored",
        metavar="DIR",
    )
    accept_redirects: str | None = path_option(
        "release in which an answer that is the title of a redirect counts as the article's", metavar="RELEASE"
    )
    items: str | None = path_option("where the values of every record are written, JSON Lines")


@dataclass(frozen=True, slots=True)
class KiltEvaluation:
    """How it is evaluated.

    Attributes:
        ks: ranks, ascending, each once.
        rank_keys: keys of a span that tell places apart.
        resamples: of the bootstrap and of the paired test.
        quirks: of ``QUIRKS``.
    """

    ks: tuple[int, ...] = ks_option(DEFAULT_KS, "ranks at which places are looked at")
    rank_keys: tuple[str, ...] = option(
        PAGE,
        "keys of a span that tell places apart, such as wikipedia_id,section or "
        "wikipedia_id,start_paragraph_id,end_paragraph_id; KILT scores always go by page",
        metavar="KEY,…",
        parse=listed,
    )
    resamples: int = option(
        0,
        "resamples of the records for confidence intervals and the paired test, such as 10000; 0 for none",
        flag="--bootstrap",
        lowest=0,
    )
    quirks: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for what does not go together."""
        check_options(self)
        if not self.rank_keys:
            raise SetupError("--rank-keys names no key; give wikipedia_id, or several with commas.")
        if unknown := sorted(self.quirks - QUIRKS.keys()):
            raise SetupError(f"--quirk {unknown[0]}: choose one of {', '.join(QUIRKS)}.")
