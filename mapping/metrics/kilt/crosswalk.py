"""Predictions that were made on an old snapshot, moved to the one that the gold records are aligned to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.release.reader import read_table
from mapping.metrics.kilt.provenance import Provenance, Span
from mapping.write.kind import ALIGNMENT

_PAGE = "wikipedia_id"
_PARAGRAPHS = ("start_paragraph_id", "end_paragraph_id")
_CHARACTERS = ("start_character", "end_character")


class Crosswalk:
    """Where the places of published records went.

    A page goes where evidence in it went, whatever record that was of; a page that no record has evidence in keeps
    its id, which Wikipedia does not give twice. Paragraphs, or a section where it alone is asked for, go where evidence
    in exactly these went, that of the same record before others. What cannot be moved keeps its rank and is right
    nowhere.

    Attributes:
        moved: spans by what became of them: ``moved``, ``page_kept``, ``page_gone``, ``place_unknown``.
    """

    def __init__(self, release: str, storage: Storage) -> None:
        """Reads the crosswalk of an alignment.

        Raises:
            SetupError: there is none.
        """
        if "crosswalk" not in ALIGNMENT.read(release, storage).tables:
            raise SetupError(f"{release} has no crosswalk; name what kbsource map kilt made of the gold file.")
        self.moved: Counter[str] = Counter()
        self._pages: dict[str, str | None] = {}
        self._places: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in read_table(release, "crosswalk", storage):
            old, new = row["old_wikipedia_id"], row["new_wikipedia_id"]
            if old is None:
                continue
            if self._pages.get(old) is None:
                self._pages[old] = new
            if new is not None:
                values = {name: row[f"new_{name}"] for name in ("section", *_PARAGRAPHS, *_CHARACTERS)}
                place = (old, *(str(row[f"old_{name}"]) for name in _PARAGRAPHS))
                moved = {_PAGE: new, "title": row["new_title"], **values}
                section = (old, _section(row["old_section"]))
                for known in (place, section):
                    self._places.setdefault(known, moved)
                    self._places.setdefault((*known, row["example_id"]), moved)

    def move(self, record_id: str, provenance: Provenance, keys: Sequence[str]) -> list[Span]:
        """Gives the places in the new snapshot.

        Args:
            record_id: that they are predicted for.
            provenance: of the prediction.
            keys: that will tell places apart.
        """
        return [self._moved(record_id, span, keys) for span in provenance]

    def _moved(self, record_id: str, span: Span, keys: Sequence[str]) -> Span:
        old = str(span.get(_PAGE, "")).strip()
        if old not in self._pages:
            outcome, new = "page_kept", dict(span)
        elif (page := self._pages[old]) is None:
            outcome, new = "page_gone", {**span, _PAGE: f"{old} (gone)"}
        else:
            outcome, new = "moved", {**span, _PAGE: page}
        within = [key for key in keys if key != _PAGE and key in span]
        if within and outcome != "page_gone":
            names = ("section",) if within == ["section"] else _PARAGRAPHS
            place = (old, *(_section(span.get(name)) for name in names))
            found = self._places.get((*place, record_id), self._places.get(place))
            if found is None or not found.keys() >= set(within):
                outcome = "place_unknown"
                new |= dict.fromkeys(within, "moved to an unknown place")
            else:
                new |= {key: value for key, value in found.items() if key in span}
        self.moved[outcome] += 1
        return new


def _section(value: Any) -> str:
    """Gives the value of a key as text; a section of a KILT file without its newline."""
    return str(value).rstrip("\n")
