"""FEVER 1.0 and 2.0: claims with sets of sentences of Wikipedia of June 2017.

Source: https://fever.ai/dataset/fever.html (claims, wiki-pages and their escapes) and section 4 of the KILT paper
(supported and refuted claims only; FEVER 2.0 joins dev and test).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import Storage, base_name, join
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally, check_names, references_option
from mapping.sources.reading.examples import ExclusionError, Origin, keep_texts, read_examples, want_texts
from mapping.sources.reading.fields import Json, integer_at, is_integer, list_at, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_lines
from mapping.sources.reading.labels import Labels, check_labels, iter_labels
from mapping.sources.reading.scratch import Scratch

_ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "-COLON-": ":",
}
_ESCAPE = re.compile("|".join(_ESCAPES))
_LABELS = ("SUPPORTS", "REFUTES")
_NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
_LABEL_FIELDS = ("label", "evidence")
# Only claims of FEVER 2.0 say how they were made.
_FEVER2_KEYS = ("attack", "transformation", "original_id")
_WIKI_FILE = re.compile(r"wiki-([0-9]+)\.jsonl(?:\.gz|\.bz2)?")

Lookup = Callable[[str], dict[int, str] | None]


@dataclass(frozen=True, slots=True)
class FeverOptions(SourceOptions):
    """Choices of FEVER."""

    sentence_escapes: Literal["undone", "kept"] = option("undone", "-LRB- and its like in the evidence")


class Fever(Source[FeverOptions]):
    """Reads claims and, from FEVER's own wiki-pages, the sentences that they stand on.

    The inputs of a split are given together: ``shared_task_dev.jsonl`` and ``fever2-fixers-dev.jsonl``. Ids are
    kept; a claim of FEVER 2.0 whose id FEVER 1.0 has too gets ``fever2-`` in front.
    """

    name = "fever"
    options = FeverOptions
    references = references_option("--wiki-pages", "folder or files of FEVER's own wiki-pages")
    has_labels = True

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: FeverOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            check_shape(
                path,
                iter_lines(storage, path),
                lambda record: {"id", "claim"} <= record.keys() and (split == "test" or "evidence" in record),
                expected="claims of FEVER, one JSON object a line with id, claim, label and evidence",
            )
        check_names(inputs.records, split)
        check_labels(inputs.labels, storage, of="FEVER's test claims", fields=("id", *_LABEL_FIELDS))
        if not inputs.references and split == "test" and not inputs.labels:
            return
        paths = _wiki_files(inputs, storage)
        # wiki-001.jsonl of the real dump begins with a page that has no name.
        check_shape(
            paths[0],
            iter_lines(storage, paths[0]),
            lambda record: {"id", "lines"} <= record.keys(),
            expected="FEVER's wiki-pages, one JSON object a line with id, text and lines",
        )

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: FeverOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(inputs.scratch))
            labels: Labels | None = None
            if inputs.labels:
                labels = stack.enter_context(Labels(inputs.scratch, id_of=_id_of, fields=_LABEL_FIELDS))
                yield from labels.keep((iter_labels(storage, path) for path in inputs.labels), tally)
            if inputs.references:
                wanted = Claims(split, lookup=lambda key: scratch.want(key), options=options)
                claims = (iter_lines(storage, path) for path in inputs.records)
                want_texts(claims, convert=wanted.example, labels=labels)
                pages = (iter_lines(storage, path) for path in _wiki_files(inputs, storage))
                yield from keep_texts(pages, key_and_text=_page_and_lines, scratch=scratch, tally=tally)

            def lookup(key: str) -> dict[int, str] | None:
                lines = scratch.get(key)
                return None if lines is None else sentences(lines.decode("utf-8"))

            yield from read_examples(
                (iter_lines(storage, path) for path in inputs.records),
                id_of=_id_of,
                convert=Claims(split, lookup=lookup, options=options).example,
                scratch=scratch,
                tally=tally,
                rename=_fever2_id,
                labels=labels,
            )


class Claims:
    """Converts parsed claims of one split.

    Args:
        split: test claims need neither label nor evidence.
        lookup: gives the sentences of a page by its escaped id in NFC, None for an unknown page.
        options: ``sentence_escapes`` counts.
    """

    def __init__(self, split: Split, *, lookup: Lookup, options: FeverOptions) -> None:
        self._split = split
        self._lookup = lookup
        self._undoes_escapes = options.sentence_escapes == "undone"

    def example(self, record: Json, origin: Origin) -> Example:
        """Gives the example: one output for each distinct evidence set, in order.

        Raises:
            ExclusionError: ``not_enough_info``, ``no_evidence``.
            RecordError: ``missing_field``, ``wrong_type``, ``unknown_label``.
        """
        claim = text_at(record, "claim")
        example_id = _id_of(record)
        outputs: tuple[Output, ...] = ()
        if self._split != "test" or "label" in record:
            label = text_at(record, "label")
            if label == _NOT_ENOUGH_INFO:
                raise ExclusionError("not_enough_info")
            if label not in _LABELS:
                raise RecordError("unknown_label", repr(label))
            outputs = self._outputs(label, list_at(record, "evidence"), origin)
        return Example(example_id, claim, outputs, None, file=origin.raw.file, line=origin.raw.line)

    def _outputs(self, label: str, written_sets: list[Any], origin: Origin) -> tuple[Output, ...]:
        outputs = []
        seen: set[frozenset[tuple[str, int]]] = set()
        for written in written_sets:
            places = _places(written)
            if places is None:
                origin.lose("null_page", f"the evidence set {written!r} names no page")
                continue
            distinct = dict.fromkeys((_key(page), sentence) for page, sentence in places)
            if not distinct or frozenset(distinct) in seen:
                continue
            seen.add(frozenset(distinct))
            # Pages are named as the claim first writes them.
            pages = {_key(page): page for page, _ in reversed(places)}
            outputs.append(
                Output(label, tuple(self._evidence(pages[key], sentence, origin) for key, sentence in distinct))
            )
        if not outputs:
            raise ExclusionError("no_evidence")
        return tuple(outputs)

    def _evidence(self, page: str, sentence: int, origin: Origin) -> Evidence:
        texts = self._lookup(_key(page))
        text = ""
        if texts is None:
            origin.lose("unknown_page", f"{page!r} is not in wiki-pages")
        elif sentence not in texts:
            origin.lose("unknown_sentence", f"{page!r} has no sentence {sentence}")
        else:
            text = texts[sentence]
        if self._undoes_escapes:
            text = undo_escapes(text)
        title = unicodedata.normalize("NFC", undo_escapes(page).replace("_", " "))
        return Evidence(PageKey("title", title), text, {"fever_page_id": page, "fever_sentence_id": sentence})


def undo_escapes(text: str) -> str:
    """Gives the text with brackets and colons for their escapes.

    >>> undo_escapes("Soul_Food_-LRB-film-RRB-")
    'Soul_Food_(film)'
    """
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], text)


def sentences(lines: str) -> dict[int, str]:
    """Gives the sentences of a page by number, from its ``lines``.

    Each line holds number, sentence and anchors, with tabs between. A line that does not begin with a number goes on
    with the sentence before it, if that has no anchors yet; else it goes on with an anchor and is passed over.

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
    """Gives page and sentence of each item of an evidence set; None when one names no page."""
    if not isinstance(written, list):
        raise RecordError("wrong_type", f"an evidence set is a list, found {repr(written)[:80]}")
    places = []
    names_all = True
    for item in written:
        if not isinstance(item, list) or len(item) != 4:
            raise RecordError("wrong_type", f"an evidence is a list of four, found {repr(item)[:80]}")
        page, sentence = item[2:]
        if page is None:
            names_all = False
        elif not isinstance(page, str) or not is_integer(sentence):
            raise RecordError("wrong_type", f"an evidence names page and sentence, found {repr(item)[:80]}")
        else:
            places.append((page, sentence))
    return places if names_all else None


def _key(page: str) -> str:
    return unicodedata.normalize("NFC", page)


def _id_of(record: Json) -> str:
    return str(integer_at(record, "id"))


def _fever2_id(record: Json, example_id: str) -> str | None:
    return f"fever2-{example_id}" if any(key in record for key in _FEVER2_KEYS) else None


def _page_and_lines(raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
    try:
        page = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", str(error)) from error
    if not isinstance(page, dict):
        raise RecordError("wrong_type", "a page is an object")
    lines = text_at(page, "lines")
    return _key(text_at(page, "id")), lambda: lines.encode("utf-8")


def _wiki_files(inputs: Inputs, storage: Storage) -> list[str]:
    """Gives the files of wiki-pages in order.

    Raises:
        SetupError: there are none, or one is missing between two others.
    """
    if not inputs.references:
        raise SetupError("fever needs --wiki-pages DIR: its claims name sentences whose texts only stand there.")
    paths: list[str] = []
    for reference in inputs.references:
        found = [path for path in storage.glob(join(reference, "*")) if _WIKI_FILE.fullmatch(base_name(path))]
        if not found and _WIKI_FILE.fullmatch(base_name(reference)):
            found = [reference]
        if not found:
            raise SetupError(f"{reference} holds no files of FEVER's wiki-pages (wiki-001.jsonl, wiki-002.jsonl, …).")
        paths += found
    numbers = {int(match[1]) for path in paths if (match := _WIKI_FILE.fullmatch(base_name(path)))}
    if missing := sorted(set(range(min(numbers), max(numbers))) - numbers):
        names = ", ".join(f"wiki-{number:03}.jsonl" for number in missing[:5])
        raise SetupError(
            f"wiki-pages is not complete: {counted(len(missing), 'files')} missing between others, such as {names}."
        )
    return paths
