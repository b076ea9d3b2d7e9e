"""Second step: balanced ``{{…}}`` and ``{{{…}}}`` leave the wikitext, innermost first.

Openers without a closer and closers without an opener are dropped and what they surround stays: nothing leaks,
nothing is lost, and every character is looked at once for each level it is nested in.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kbsource.wikitext.markers import LITERAL_OF

# Two patterns that begin with plain characters are searched four times as fast as one that is a choice.
_OPENERS = re.compile(r"(\{\{+)")
_CLOSERS = re.compile(r"(\}\}+)")
MAX_DEPTH = 100  # MediaWiki's own limit on nested templates ($wgMaxTemplateDepth)


def expand_braces(
    text: str,
    *,
    on_template: Callable[[str, int], str],
    on_parameter: Callable[[str], str],
    on_broken: Callable[[], None],
) -> str:
    """Gives the text with every balanced piece replaced by what the callbacks give for it.

    Args:
        text: wikitext without comments and extension tags.
        on_template: called with the inside of ``{{…}}``, its own pieces already replaced, and the number of
            templates around it.
        on_parameter: likewise for ``{{{…}}}``.
        on_broken: called once for every run of braces that has no partner.
    """
    if "{{" not in text and "}}" not in text:
        return text
    out: list[str] = []
    stack: list[tuple[int, list[str]]] = []
    opened_by = ["", *_OPENERS.split(text)]
    for openers, chunk in zip(opened_by[::2], opened_by[1::2], strict=True):
        if openers:
            if len(stack) < MAX_DEPTH:
                stack.append((len(openers), out))
                out = []
            else:
                on_broken()
        closed_by = _CLOSERS.split(chunk)
        if closed_by[0]:
            out.append(closed_by[0])
        for closers, gap in zip(closed_by[1::2], closed_by[2::2], strict=True):
            run = len(closers)
            while run >= 2 and stack:
                opened, parent = stack.pop()
                inner = out[0] if len(out) == 1 else "".join(out)
                if opened >= 3 and run >= 3:
                    taken = 3
                    result = on_parameter(inner)
                else:
                    taken = 2
                    result = on_template(inner, len(stack))
                opened -= taken
                run -= taken
                if opened >= 2:
                    stack.append((opened, parent))
                    out = [result]
                else:
                    out = parent
                    if opened:
                        out.append(LITERAL_OF["{"])
                    out.append(result)
            if run == 1:
                out.append(LITERAL_OF["}"])
            elif run:
                on_broken()
            if gap:
                out.append(gap)
    while stack:
        _, parent = stack.pop()
        parent.extend(out)
        out = parent
        on_broken()
    return "".join(out)
