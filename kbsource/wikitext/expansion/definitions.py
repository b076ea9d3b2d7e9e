"""What expansion asks of others: the definitions of a dump, and what runs its Lua modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Definitions(Protocol):
    """The templates and modules of one dump, looked up by name."""

    def source(self, name: str) -> str | None:
        """Gives the wikitext of a template, redirects already followed; None where the dump has none.

        Args:
            name: normal form without namespace, as ``templates.normalise_template_name`` gives it.
        """

    def module(self, name: str) -> str | None:
        """Gives the source of a Lua module; None where the dump has none.

        Args:
            name: normal form without namespace: spaces for underscores, first letter upper.
        """


class Frame(Protocol):
    """A template or module at work: what ``frame`` is to a Lua module.

    Attributes:
        title: full name of the template or module, ``Template:Age``; of the page for what stands on it directly.
        arguments: values by name, numbers as text; those without a name keep the white space around them.
        parent: the template that invokes a module; None for a template.
        page_title: title of the page, with spaces. A result that asks for it holds on this page only.
        timestamp: ISO time of the page's revision, likewise.
    """

    @property
    def title(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, str]: ...
    @property
    def parent(self) -> Frame | None: ...
    @property
    def page_title(self) -> str: ...
    @property
    def timestamp(self) -> str: ...

    def preprocess(self, wikitext: str) -> str:
        """Gives wikitext with its templates and ``{{{parameters}}}`` expanded in this frame."""

    def expand(self, name: str, arguments: Mapping[str, str]) -> str:
        """Gives the expansion of a template or parser function (``#if``, ``lc:``) with these arguments."""

    def spend(self, work: int) -> None:
        """Charges units of work to the page.

        Raises:
            BoundError: the page has none left. It must pass through.
        """


Invoke = Callable[[str, str, Frame], "str | None"]
"""Runs a function of a module: (module name, function name, frame with the arguments of ``#invoke``) -> its wikitext;
None where it cannot be run, which leaves a gap as an unknown template does."""


class BoundError(Exception):
    """A template went over a limit of MediaWiki's, or over what one page may cost; never leaves this package."""
