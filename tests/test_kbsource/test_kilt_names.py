"""KILT's names of sections."""

from __future__ import annotations

import pytest

from kbsource.kilt_names import section_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "Section::::Abstract."),
        (("Plot",), "Section::::Plot."),
        (("Use in writing systems", "English"), "Section::::Use in writing systems.:English."),
        (("Why?", "Now!", "Inc."), "Section::::Why?:Now!:Inc.."),
    ],
)
def test_section_name(path: tuple[str, ...], name: str) -> None:
    assert section_name(path) == name
