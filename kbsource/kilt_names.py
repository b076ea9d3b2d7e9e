"""Names that KILT gives to sections."""

from __future__ import annotations

from collections.abc import Sequence

LEAD = "Section::::Abstract."


def section_name(path: Sequence[str]) -> str:
    """Gives the text of the heading element that a path of headings has in KILT, without a newline.

    Args:
        path: headings from the outermost to the one meant, as in ``Element.section``; empty for the lead.

    Source: elements of kilt_knowledgesource.json: a full stop after every heading that ends neither in ``!`` nor in
    ``?``, and colons between the headings.

    >>> section_name(["Use in writing systems", "English"])
    'Section::::Use in writing systems.:English.'
    """
    if not path:
        return LEAD
    return "Section::::" + ":".join(part if part.endswith(("!", "?")) else part + "." for part in path)
