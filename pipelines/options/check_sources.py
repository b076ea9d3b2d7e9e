"""Options of ``kbsource check-sources``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from mapping.entail.signal import UsualModelOptions
from mapping.options import FLAT, Checked, NewFile, Release


@dataclass(frozen=True, slots=True)
class CheckSourcesOptions(Checked):
    """Options of ``kbsource check-sources``: the release whose sources are judged, and the model that judges them."""

    kb: Release
    """Release of pages, built with --references."""
    _: KW_ONLY
    output: NewFile
    """JSON Lines file with one object per use of a reference. The file appears when it is complete."""
    model: Annotated[UsualModelOptions, FLAT] = UsualModelOptions()
