"""FEVER 1.0 and 2.0: claims with sets of sentences from Wikipedia of June 2017.

Source: https://fever.ai/dataset/fever.html (claims, wiki-pages and their escapes) and section 4 of the KILT paper (only
supported and refuted claims; FEVER 2.0 joins dev and test).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kbsource.dump.compressed.streams import without_suffix
from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import base_name, glob, join
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.examples import ExclusionError, Origin, RecordSource
from mapping.sources.raw_records import Json, RawRecord, check_lines, integer_at, is_integer, list_at, text_at
from mapping.sources.source import (
    Averages,
    EvidenceShares,
    LabelForm,
    Ownership,
    PublishedFigures,
    SourceOptions,
    references_option,
)

_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "-COLON-": ":"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_LABELS = ("SUPPORTS", "REFUTES")
_NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
# Keys that only claims of FEVER 2.0 have.
_FEVER2_KEYS = ("attack", "transformation", "original_id")
_WIKI_FILE = re.compile(r"wiki-([0-9]+)\.jsonl")


@dataclass(frozen=True, slots=True)
class FeverOptions(SourceOptions):
    """Options of FEVER."""

    sentence_escapes: Literal["undone", "kept"] = "undone"
    """Escapes such as -LRB- in the evidence."""


class Fever(RecordSource[FeverOptions]):
    """Reads claims, and the sentences of FEVER's own wiki-pages that support or refute them.

    Pass all inputs of a split together: ``shared_task_dev.jsonl`` and ``fever2-fixers-dev.jsonl``. Ids are kept. If
    FEVER 1.0 and 2.0 have a claim with the same id, the claim of FEVER 2.0 gets the prefix ``fever2-``.
    """

    name = "fever"
    summary = "FEVER: claims, with the sentences that support or refute them"
    form = "claims of FEVER, one JSON object a line with id, claim, label and evidence"
    keys, answer_keys = frozenset({"id", "claim"}), frozenset({"evidence"})
    options_type = FeverOptions
    references = references_option("--wiki-pages", "Folder or files of FEVER's own wiki-pages.")
    labels = LabelForm("FEVER's test claims", "id", ("label", "evidence"))
    hypothesis = "claim"
    metric = "accuracy"
    evidence_date = "2017-06-01"  # Source: Thorne et al. 2018
    published = PublishedFigures(
        {"train": 104_966, "dev": 10_444, "test": 10_100},
        Averages(1.12, 1.35, 1.13, 1),
        {"dev": (3675, 26.03), "test": (3869, 27.7)},
        EvidenceShares(0.3, 0.16, 0.12),
    )
    ownership = Ownership(
        "FEVER",
        "the authors of FEVER",
        "https://fever.ai/dataset/fever.html",
        "CC-BY-SA-3.0",
        "Or the licence that the articles concerned name, as its authors say.",
    )

    def id_of(self, record: Json) -> str:
        return str(integer_at(record, "id"))

    def other_id(self, record: Json, example_id: str) -> str | None:
        return f"fever2-{example_id}" if any(key in record for key in _FEVER2_KEYS) else None

    def check_references(self) -> None:
        if not self.inputs.references and self.split == "test" and not self.inputs.labels:
            return
        path = self.reference_files()[0]
        # wiki-001.jsonl of the real dump begins with a page without a name.
        check_lines(
            path,
            lambda record: {"id", "lines"} <= record.keys(),
            expected="FEVER's wiki-pages, one JSON object a line with id, text and lines",
        )

    def reference_files(self) -> list[str]:
        """Returns the files of wiki-pages in order; raises SetupError if the folder has no files, or if a file between
        two others is missing."""
        if not self.inputs.references:
            raise SetupError(
                "fever needs --wiki-pages DIR: its claims name sentences whose texts only wiki-pages contains."
            )
        paths: list[str] = []
        for reference in self.inputs.references:
            found = [path for path in glob(join(reference, "*")) if _wiki_file(path)]
            if not found and _wiki_file(reference):
                found = [reference]
            if not found:
                raise SetupError(
                    f"{reference} contains no files of FEVER's wiki-pages (wiki-001.jsonl, wiki-002.jsonl, …)."
                )
            paths += found
        numbers = {int(match[1]) for path in paths if (match := _wiki_file(path))}
        if missing := sorted(set(range(min(numbers), max(numbers))) - numbers):
            names = ", ".join(f"wiki-{number:03}.jsonl" for number in missing[:5])
            raise SetupError(
                f"wiki-pages is not complete: {counted(len(missing), 'files')} missing in the sequence, such as "
                f"{names}. Download wiki-pages again."
            )
        return paths

    def reference(self, raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
        page = raw.parse_reference("a page")
        lines = text_at(page, "lines")
        return _key(text_at(page, "id")), lambda: lines.encode("utf-8")

    def example(self, record: Json, origin: Origin) -> Example:
        """Returns an example with one output for each distinct evidence set, in order.

        Raises:
            ExclusionError: ``not_enough_info``, ``no_evidence``.
            RecordError: ``missing_field``, ``wrong_type``, ``unknown_label``.
        """
        claim = text_at(record, "claim")
        outputs: list[Output] = []
        if self.split != "test" or "label" in record:
            label = text_at(record, "label")
            if label == _NOT_ENOUGH_INFO:
                raise ExclusionError("not_enough_info")
            if label not in _LABELS:
                raise RecordError("unknown_label", repr(label))
            undoes_escapes = self.options.sentence_escapes == "undone"
            for places in _evidence_sets(list_at(record, "evidence"), origin):
                evidence = (_evidence(page, number, origin, undoes_escapes=undoes_escapes) for page, number in places)
                outputs.append(Output(label, tuple(evidence)))
            if not outputs:
                raise ExclusionError("no_evidence")
        return origin.example(claim, outputs)


def _evidence_sets(written_sets: list[Any], origin: Origin) -> Iterator[list[tuple[str, int]]]:
    """Reads the distinct evidence sets of a claim, with the page and the sentence number of each piece of evidence."""
    seen: set[frozenset[tuple[str, int]]] = set()
    for written in written_sets:
        places = _places(written)
        if places is None:
            origin.lose("null_page", f"the evidence set {written!r} names no page")
            continue
        distinct = dict.fromkeys((_key(page), sentence) for page, sentence in places)
        if distinct and frozenset(distinct) not in seen:
            seen.add(frozenset(distinct))
            # If a claim writes the name of a page in several ways, the first one is used.
            pages = {_key(page): page for page, _ in reversed(places)}
            yield [(pages[key], sentence) for key, sentence in distinct]


def _evidence(page: str, sentence: int, origin: Origin, *, undoes_escapes: bool) -> Evidence:
    lines = origin.references(_key(page))
    text = ""
    if lines is None:
        origin.lose("unknown_page", f"{page!r} is not in wiki-pages")
    elif sentence not in (texts := sentences(lines.decode("utf-8"))):
        origin.lose("unknown_sentence", f"{page!r} has no sentence {sentence}")
    else:
        text = undo_escapes(texts[sentence]) if undoes_escapes else texts[sentence]
    title = unicodedata.normalize("NFC", undo_escapes(page).replace("_", " "))
    return Evidence(PageKey("title", title), text, {"fever_page_id": page, "fever_sentence_id": sentence})


def undo_escapes(text: str) -> str:
    """Returns a text with escapes replaced by brackets and colons.

    >>> undo_escapes("Soul_Food_-LRB-film-RRB-")
    'Soul_Food_(film)'
    """
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], text)


def sentences(lines: str) -> dict[int, str]:
    """Returns the sentences of a page by number, from its ``lines``.

    Each line contains number, sentence and anchors, separated by tabs. A line that does not begin with a number
    continues the sentence before it, if that has no anchors yet; otherwise it continues an anchor and is skipped.

    >>> sentences("0\\tIt is tall .\\ttall\\tHeight\\n1\\t\\n2\\tIt has a\\nlamp .")
    {0: 'It is tall .', 1: '', 2: 'It has a lamp .'}
    """
    texts: dict[int, str] = {}
    last: int | None = None
    is_open = False
    for line in lines.split("\n"):
        first, *rest = line.split("\t")
        if first.isascii() and first.isdecimal() and rest and (last is None or int(first) > last):
            last = int(first)
            texts[last] = unicodedata.normalize("NFC", rest[0].strip())
            is_open = len(rest) == 1
        elif last is not None and is_open and first.strip():
            texts[last] = f"{texts[last]} {unicodedata.normalize('NFC', first.strip())}".strip()
            is_open = not rest
    return texts


def _places(written: object) -> list[tuple[str, int]] | None:
    """Returns the page and sentence of each item of an evidence set, or None if an item names no page."""
    if not isinstance(written, list):
        raise RecordError("wrong_type", f"an evidence set must be a list, found {repr(written)[:80]}")
    places = []
    names_all = True
    for item in written:
        if not isinstance(item, list) or len(item) != 4:
            raise RecordError(
                "wrong_type", f"a piece of evidence must be a list of four values, found {repr(item)[:80]}"
            )
        page, sentence = item[2:]
        if page is None:
            names_all = False
        elif not isinstance(page, str) or not is_integer(sentence):
            raise RecordError("wrong_type", f"a piece of evidence must name page and sentence, found {repr(item)[:80]}")
        else:
            places.append((page, sentence))
    return places if names_all else None


def _key(page: str) -> str:
    return unicodedata.normalize("NFC", page)


SOURCES = (Fever,)


def _wiki_file(path: str) -> re.Match[str] | None:
    return _WIKI_FILE.fullmatch(without_suffix(base_name(path)))
