"""HotpotQA in the full-wiki setting: questions with supporting sentences from abstracts of October 2017.

Source: https://hotpotqa.github.io (questions; ``wiki-readme.html`` for the abstracts).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import glob, join
from kbsource.numerals import unescape
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.examples import Origin, RecordSource
from mapping.sources.raw_records import Json, RawRecord, check_lines, is_integer, iter_array, list_at, text_at
from mapping.sources.source import (
    Averages,
    LabelForm,
    Ownership,
    Policy,
    PublishedFigures,
    SourceOptions,
    by_split,
    references_option,
)

_N_PEEKED = 20


@dataclass(frozen=True, slots=True)
class HotpotOptions(SourceOptions):
    """Options of HotpotQA."""

    keep_meta: bool = False
    """Adds level and type to the record's meta."""


class HotpotQa(RecordSource[HotpotOptions]):
    """Questions, with their sentences from the abstracts or else from the question's own ``context``.

    References are the unpacked folder ``enwiki-20171001-pages-meta-current-withlinks-abstracts``. If they are not given
    or do not have the page, the sentence is taken from ``context``, which in the full-wiki files contains only search
    results. If neither has the page, the text of the evidence is empty, so the evidence set counts as incomplete. A
    supporting fact whose sentence does not exist or is empty is annotation noise, and is skipped.
    """

    name = "hotpotqa"
    summary = "HotpotQA: questions that need sentences from two pages"
    form = "questions of HotpotQA, one JSON array of objects with {keys}"
    keys, answer_keys = frozenset({"_id", "question"}), frozenset({"answer", "supporting_facts"})
    options_type = HotpotOptions
    references = references_option("--abstracts", "Folder or files of the abstracts that HotpotQA was made from.")
    labels = LabelForm("HotpotQA's test questions", "_id", ("answer", "supporting_facts"))
    # There is one set, so a missing page drops the question.
    policies = by_split(Policy(lost="drop_record"))
    hypothesis = "answer"
    metric = "em"
    evidence_date = "2017-10-01"  # Source: Yang et al. 2018
    published = PublishedFigures(
        {"train": 88_869, "dev": 5_600, "test": 5_569},
        Averages(2.4, 1, 2, 1),
        {"dev": (1650, 22.76), "test": (1704, 23.43)},
    )
    ownership = Ownership("HotpotQA", "the authors of HotpotQA", "https://hotpotqa.github.io/", "CC-BY-SA-4.0")

    def id_of(self, record: Json) -> str:
        return text_at(record, "_id")

    def raws(self, path: str) -> Iterator[RawRecord]:
        return iter_array(path)

    def check_files(self) -> None:
        """See ``RecordSource.check_files``. Without references, checks that the contexts of the first questions are
        complete."""
        for path in self.inputs.records if not self.inputs.references and self.split != "test" else ():
            _check_contexts(path)
        super().check_files()

    def check_references(self) -> None:
        for path in self.reference_files()[:1]:
            check_lines(
                path,
                lambda record: {"title", "text"} <= record.keys() and _is_list_of_text(record["text"]),
                expected=(
                    "HotpotQA's abstracts, one JSON object a line with title and text, a list of sentences (in the"
                    " dump that is not of abstracts it is a list of paragraphs, and the sentences have other numbers)"
                ),
            )

    def reference_files(self) -> list[str]:
        paths: list[str] = []
        for reference in self.inputs.references:
            found = glob(join(reference, "**", "wiki_*")) or glob(reference)
            if not found:
                raise SetupError(f"{reference} contains no files of HotpotQA's abstracts (AA/wiki_00.bz2, …).")
            paths += found
        return paths

    def reference(self, raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
        page = raw.parse_reference("an abstract")
        if not _is_list_of_text(page.get("text")):
            raise RecordError("wrong_type", "an abstract must be an object with text, a list of sentences")
        return _key(text_at(page, "title")), lambda: orjson.dumps(page["text"])

    def example(self, record: Json, origin: Origin) -> Example:
        """Returns an example with one output, whose evidence set contains all supporting sentences.

        Raises:
            RecordError: ``missing_field``, ``wrong_type``.
        """
        outputs: tuple[Output, ...] = ()
        if self.split != "test" or "answer" in record:
            context = _context(record)
            facts = dict.fromkeys(_fact(fact) for fact in list_at(record, "supporting_facts"))
            if not facts:
                raise RecordError("missing_field", "'supporting_facts' is empty")
            found = (_evidence(title, sentence, context, origin) for title, sentence in facts)
            outputs = (Output(text_at(record, "answer"), tuple(piece for piece in found if piece is not None)),)
        meta = {key: text_at(record, key) for key in ("level", "type")} if self.options.keep_meta else None
        return origin.example(text_at(record, "question"), outputs, meta)


def _evidence(title: str, sentence: int, context: dict[str, list[str]], origin: Origin) -> Evidence | None:
    key = _key(title)
    found = origin.references(key)
    sentences = context.get(key) if found is None else orjson.loads(found)
    text = ""
    if sentences is None:
        origin.lose("unknown_page", f"{title!r} is neither in the abstracts nor in the question's context")
    elif not 0 <= sentence < len(sentences):
        origin.lose("unknown_sentence", f"{title!r} has {len(sentences)} sentences, none with number {sentence}")
        return None
    else:
        text = sentences[sentence].strip()
        if not any(map(str.isalnum, text)):
            origin.lose("unknown_sentence", f"sentence {sentence} of {title!r} is {text!r}")
            return None
    return Evidence(PageKey("title", unescape(title)), text)


def _check_contexts(path: str) -> None:
    """Raises SetupError if the contexts of the first questions lack some of their supporting paragraphs."""
    for raw in islice(iter_array(path), _N_PEEKED):
        try:
            record = raw.parse()
            facts = map(_fact, list_at(record, "supporting_facts"))
            missing = {_key(title) for title, _ in facts} - _context(record).keys()
        except RecordError:
            continue
        if missing:
            raise SetupError(
                f"{path}: the context of question {record.get('_id')!r} lacks the supporting page {min(missing)!r}: in"
                " the full-wiki files it contains only search results. Give HotpotQA's abstracts (--abstracts)."
            )


def _context(record: Json) -> dict[str, list[str]]:
    context: dict[str, list[str]] = {}
    for item in list_at(record, "context") if "context" in record else []:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise RecordError(
                "wrong_type", f"a context must be a title and a list of sentences, found {repr(item)[:80]}"
            )
        if not _is_list_of_text(item[1]):
            raise RecordError("wrong_type", f"the context of {item[0]!r} is not a list of sentences")
        context.setdefault(_key(item[0]), item[1])
    return context


def _fact(item: object) -> tuple[str, int]:
    if isinstance(item, list) and len(item) == 2:
        title, sentence = item
        if isinstance(title, str) and is_integer(sentence):
            return title, sentence
    raise RecordError("wrong_type", f"a supporting fact must be a title and a sentence number, found {repr(item)[:80]}")


def _key(title: str) -> str:
    """Returns the title for comparison. Questions and abstracts write ``&`` as ``&amp;``, but not always both of
    them."""
    return unicodedata.normalize("NFC", unescape(title))


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


SOURCES = (HotpotQa,)
