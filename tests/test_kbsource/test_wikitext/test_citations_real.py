"""Every citation template of the real slices: what is written in it is read, or has a name in the losses."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.citations_speed import Use, uses_of
from kbsource.wikitext.citations import _fold, _slot, _template, read_citation
from kbsource.wikitext.identifiers import SCHEMES
from kbsource.wikitext.reference_rows import Citation
from tests.support.real_data import real_path
from tests.test_kbsource.test_wikitext.test_real import SLICES, articles

MOST_UNKNOWN = 0.01  # of the filled arguments
# Where another argument may say the same: the address of a copy holds that of the source and its day, other addresses
# hold an identifier, dates their year, and names of one person stand under two parameters. The field by slot.
SAID_TWICE = {
    **{scheme: scheme for scheme in SCHEMES},
    "url": "url",
    "chapter_url": "url",
    "archive_url": "archive_url",
    "archive_date": "archive_date",
    "year": "date_text",
    "month": "date_text",
    "day": "date_text",
    "author": "authors",
    "last": "authors",
    "series": "kind",  # of a book it is left out knowingly
}


def read(use: Use, arguments: dict[str, str]) -> Citation:
    found = read_citation(use.name, arguments, language=use.language, plain=str)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("relative", SLICES)
def test_every_argument_is_read_or_has_a_name_in_the_losses(relative: str) -> None:
    """Without the argument another citation comes of the use, so a field or a loss holds it."""
    real_path(relative)
    filled = 0
    unknown: Counter[str] = Counter()
    unheard: list[tuple[str, Use]] = []
    for site, page in articles(relative):
        for use in uses_of(page.text, site.lang):
            found = read(use, use.arguments)
            assert any(getattr(found, field) for field in found.__struct_fields__ if field != "kind"), use
            unknown.update(loss for loss in found.losses if loss.startswith("unknown"))
            for name, value in use.arguments.items():
                _, own = _template(use.name, use.language) or ("", {})
                slot = own.get(_fold(name)) or _slot(name, use.language)[0]
                if not value.strip() or slot == "left_out":
                    continue
                filled += 1
                others = {other: text for other, text in use.arguments.items() if other != name}
                if read(use, others) == found:
                    field = SAID_TWICE.get(slot or "")
                    if field is None or not getattr(found, field):
                        unheard.append((name, use))
    assert unheard == []
    assert unknown.total() <= MOST_UNKNOWN * filled, unknown.most_common(20)
