"""Hard negatives: passages that rank high for a question and name none of its answers.

Source: QAMPARI's released retriever files, whose negatives name no answer within an edit distance of 3. Taken literally
that finds every short name in every text, so here a name is also at most a quarter of its characters away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from mapping.metrics.answer_lists import GoldNames, answer_form
from mapping.metrics.retrieval import RetrievedPassage, answer_ranks

MOST_EDITS = 3
_CHARS_AN_EDIT = 4
_RUNS_AT_ONCE = 512
"""So that a page that is one sentence is compared in as little memory as any other."""


def edits_allowed(form: str, most: int = MOST_EDITS) -> int:
    """Gives how many edits away a text still is the name with that form: one for four characters; none for numbers.

    >>> [edits_allowed(one) for one in ("u2", "sorn", "lake miravel", "1901")]
    [0, 1, 3, 0]
    """
    return 0 if form.replace(" ", "").isdecimal() else min(most, len(form) // _CHARS_AN_EDIT)


class NameFinder:
    """Finds out whether a passage names any of some answers, but for a few edits.

    It does where ARECALL@K finds a name in its title or text, or where a run of whole words of either is so close to a
    name, both in the form in which answers are compared (``answer_form``). Names without a form are found nowhere.

    Args:
        names: what the answers are called.
        most_edits: insertions, deletions and replacements of one character.
    """

    def __init__(self, names: Iterable[str], *, most_edits: int = MOST_EDITS) -> None:
        given = tuple(names)
        self._answers = (GoldNames("", given),)
        forms = dict.fromkeys(form for name in given if (form := answer_form(name)))
        self._near: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for form in forms:
            if n_edits := edits_allowed(form, most_edits):
                self._near[form.count(" ") + 1, n_edits].append(form)

    def is_in(self, title: str, text: str) -> bool:
        """Says whether a passage names one of the answers."""
        if answer_ranks(self._answers, (RetrievedPassage("", title, text),)) != [None]:
            return True
        return any(
            _is_near(answer_form(part).split(), names, n_words=n_words, n_edits=n_edits)
            for (n_words, n_edits), names in self._near.items()
            for part in (title, text)
        )


def _is_near(words: list[str], names: list[str], *, n_words: int, n_edits: int) -> bool:
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    lengths = [len(name) for name in names]
    fits = range(min(lengths) - n_edits, max(lengths) + n_edits + 1)
    # Every edit makes or removes one blank at most.
    lengths_of_runs = range(n_words - n_edits, n_words + n_edits + 1)
    runs = iter(dict.fromkeys(run for n in lengths_of_runs for run in _runs(words, n) if len(run) in fits))
    while some := list(islice(runs, _RUNS_AT_ONCE)):
        found = cdist(some, names, scorer=Levenshtein.distance, score_cutoff=n_edits, dtype=np.int32)
        if (found <= n_edits).any():
            return True
    return False


def _runs(words: list[str], n_words: int) -> Iterator[str]:
    if n_words > 0:
        for first in range(len(words) - n_words + 1):
            yield " ".join(words[first : first + n_words])
