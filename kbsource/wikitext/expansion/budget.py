"""What the templates of one page may cost: MediaWiki's own limits, in units that no clock decides.

Source: https://www.mediawiki.org/wiki/Template_limits and DefaultSettings.php of MediaWiki 1.39.
"""

from __future__ import annotations

from kbsource.wikitext.expansion.definitions import BoundError

MAX_DEPTH = 100
"""Expansions within expansions: $wgMaxPPExpandDepth; it was 40 until MediaWiki 1.24."""
MAX_WORK = 500_000
"""Units of work on a page: nodes visited, of which MediaWiki allows 1,000,000 with all its templates in one."""
MAX_CHARS = 2 << 20
"""Characters that templates and arguments may give on a page, counted at each level: $wgMaxArticleSize."""
MAX_PIECES = 100_000
"""Pieces of one definition: braces, pipes, equals signs and links. The longest lists of cases have some thousands."""
PIECES_A_UNIT = 16
"""Pieces of a definition that are a unit of work each time that it is used."""
MAX_LOOK_UPS = 500
"""Pages asked for by ``#ifexist``: $wgExpensiveParserFunctionLimit."""
_CHARS_A_UNIT = 128


class Cost:
    """What has been spent, of each kind; a page's when it is the whole, a call's when it is a difference."""

    __slots__ = ("n_chars", "n_look_ups", "work")

    def __init__(self, work: int = 0, n_chars: int = 0, n_look_ups: int = 0) -> None:
        self.work = work
        self.n_chars = n_chars
        self.n_look_ups = n_look_ups

    def spend(self, work: int) -> None:
        """Adds units of work.

        Raises:
            BoundError: the page has none left.
        """
        self.work += work
        if self.work > MAX_WORK:
            raise BoundError("work")

    def give(self, text: str) -> str:
        """Gives a text that a template or an argument came to, and counts it.

        Raises:
            BoundError: the page has more than it may have.
        """
        self.n_chars += len(text)
        if self.n_chars > MAX_CHARS:
            raise BoundError("size")
        return text

    def copy(self, text: str) -> None:
        """Counts a text that is copied."""
        self.work += len(text) // _CHARS_A_UNIT

    def look_up(self) -> bool:
        """Counts a page that is asked for; says whether it may be."""
        self.n_look_ups += 1
        return self.n_look_ups <= MAX_LOOK_UPS

    def counts(self) -> tuple[int, int, int]:
        """Gives what has been spent so far, for ``since``."""
        return self.work, self.n_chars, self.n_look_ups

    def since(self, work: int, n_chars: int, n_look_ups: int) -> Cost:
        """Gives what was spent since these were the counts."""
        return Cost(self.work - work, self.n_chars - n_chars, self.n_look_ups - n_look_ups)

    def add(self, cost: Cost) -> bool:
        """Adds the cost of what is known already; says whether the page could have paid it, as if it were new."""
        self.work += cost.work
        self.n_chars += cost.n_chars
        self.n_look_ups += cost.n_look_ups
        return self.work <= MAX_WORK and self.n_chars <= MAX_CHARS and self.n_look_ups <= MAX_LOOK_UPS
