"""HotpotQA in the full-wiki setting: questions with supporting sentences of abstracts of October 2017.

Source: https://hotpotqa.github.io (questions; ``wiki-readme.html`` for the abstracts).
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally, check_names, references_option
from mapping.sources.reading.examples import Origin, keep_texts, read_examples, want_texts
from mapping.sources.reading.fields import Json, is_integer, list_at, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_array, iter_lines
from mapping.sources.reading.labels import Labels, check_labels, iter_labels
from mapping.sources.reading.scratch import Scratch

_LABEL_FIELDS = ("answer", "supporting_facts")
_N_PEEKED = 20

Lookup = Callable[[str], list[str] | None]


@dataclass(frozen=True, slots=True)
class HotpotOptions(SourceOptions):
    """Choices of HotpotQA."""

    keep_meta: bool = option(False, "level and type in the record's meta")


class HotpotQa(Source[HotpotOptions]):
    """Reads questions, and their sentences from the abstracts or else from the question's own ``context``.

    References are the folder of ``enwiki-20171001-pages-meta-current-withlinks-abstracts`` as unpacked. Where they are
    not given or do not have the page, the sentence is taken from ``context``, which in the full-wiki files holds
    only what a search found. A fact whose page is nowhere has empty text, so that its set does not stand without it;
    one whose sentence does not exist or is no text is left out, as noise of the annotation.
    """

    name = "hotpotqa"
    options = HotpotOptions
    references = references_option("--abstracts", "folder or files of the abstracts it was made from")
    has_labels = True

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: HotpotOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        wanted = {"_id", "question"} | (set() if split == "test" else {"answer", "supporting_facts"})
        for path in inputs.records:
            check_shape(
                path,
                iter_array(storage, path),
                lambda record: wanted <= record.keys(),
                expected=f"questions of HotpotQA, one JSON array of objects with {', '.join(sorted(wanted))}",
            )
            if not inputs.references and split != "test":
                _check_contexts(path, storage)
        check_names(inputs.records, split)
        check_labels(inputs.labels, storage, of="HotpotQA's test questions", fields=("_id", *_LABEL_FIELDS))
        if inputs.references:
            path = _abstract_files(inputs, storage)[0]
            check_shape(
                path,
                iter_lines(storage, path),
                lambda record: {"title", "text"} <= record.keys() and _is_list_of_text(record["text"]),
                expected=(
                    "HotpotQA's abstracts, one JSON object a line with title and text, a list of sentences (in the"
                    " dump that is not of abstracts it is a list of paragraphs, and the sentences have other numbers)"
                ),
            )

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: HotpotOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(inputs.scratch))
            labels: Labels | None = None
            if inputs.labels:
                labels = stack.enter_context(Labels(inputs.scratch, id_of=_id_of, fields=_LABEL_FIELDS))
                yield from labels.keep((iter_labels(storage, path) for path in inputs.labels), tally)
            if inputs.references:
                wanted = HotpotQuestions(split, lookup=lambda key: scratch.want(key), options=options)
                questions = (iter_array(storage, path) for path in inputs.records)
                want_texts(questions, convert=wanted.example, labels=labels)
                abstracts = (iter_lines(storage, path) for path in _abstract_files(inputs, storage))
                yield from keep_texts(abstracts, key_and_text=_title_and_text, scratch=scratch, tally=tally)

            def lookup(key: str) -> list[str] | None:
                text = scratch.get(key)
                return None if text is None else orjson.loads(text)

            yield from read_examples(
                (iter_array(storage, path) for path in inputs.records),
                id_of=_id_of,
                convert=HotpotQuestions(split, lookup=lookup, options=options).example,
                scratch=scratch,
                tally=tally,
                labels=labels,
            )


class HotpotQuestions:
    """Converts parsed questions of one split.

    Args:
        split: test questions need neither answer nor supporting facts.
        lookup: gives the sentences of an abstract by its title's key, None for an unknown title.
        options: ``keep_meta`` counts.
    """

    def __init__(self, split: Split, *, lookup: Lookup, options: HotpotOptions) -> None:
        self._split = split
        self._lookup = lookup
        self._keeps_meta = options.keep_meta

    def example(self, record: Json, origin: Origin) -> Example:
        """Gives the example: one output with all supporting sentences as one evidence set.

        Raises:
            RecordError: ``missing_field``, ``wrong_type``.
        """
        outputs: tuple[Output, ...] = ()
        if self._split != "test" or "answer" in record:
            context = _context(record)
            facts = dict.fromkeys(_fact(fact) for fact in list_at(record, "supporting_facts"))
            if not facts:
                raise RecordError("missing_field", "'supporting_facts' is empty")
            found = (self._evidence(title, sentence, context, origin) for title, sentence in facts)
            outputs = (Output(text_at(record, "answer"), tuple(row for row in found if row is not None)),)
        meta = {key: text_at(record, key) for key in ("level", "type")} if self._keeps_meta else None
        return Example(
            _id_of(record),
            text_at(record, "question"),
            outputs,
            meta,
            file=origin.raw.file,
            line=origin.raw.line,
        )

    def _evidence(self, title: str, sentence: int, context: dict[str, list[str]], origin: Origin) -> Evidence | None:
        key = _key(title)
        sentences = self._lookup(key)
        if sentences is None:
            sentences = context.get(key)
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
        return Evidence(PageKey("title", html.unescape(title)), text)


def _check_contexts(path: str, storage: Storage) -> None:
    """Raises SetupError where the contexts of the first questions do not hold all their supporting paragraphs."""
    for raw in islice(iter_array(storage, path), _N_PEEKED):
        try:
            record = raw.parse()
            missing = {_key(title) for title, _ in map(_fact, list_at(record, "supporting_facts"))} - set(
                _context(record)
            )
        except RecordError:
            continue
        if missing:
            raise SetupError(
                f"{path}: the context of question {record.get('_id')!r} lacks the supporting page {min(missing)!r}: in"
                " the full-wiki files it holds only what a search found. Give HotpotQA's abstracts (--abstracts)."
            )


def _id_of(record: Json) -> str:
    return text_at(record, "_id")


def _context(record: Json) -> dict[str, list[str]]:
    context: dict[str, list[str]] = {}
    for item in list_at(record, "context") if "context" in record else []:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise RecordError("wrong_type", f"a context is title and sentences, found {repr(item)[:80]}")
        if not _is_list_of_text(item[1]):
            raise RecordError("wrong_type", f"the context of {item[0]!r} is not a list of sentences")
        context.setdefault(_key(item[0]), item[1])
    return context


def _fact(item: object) -> tuple[str, int]:
    if isinstance(item, list) and len(item) == 2:
        title, sentence = item
        if isinstance(title, str) and is_integer(sentence):
            return title, sentence
    raise RecordError("wrong_type", f"a supporting fact is title and sentence number, found {repr(item)[:80]}")


def _key(title: str) -> str:
    """Gives the title for comparison; questions and abstracts write ``&`` as ``&amp;``, not always both."""
    return unicodedata.normalize("NFC", html.unescape(title))


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _title_and_text(raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
    try:
        page = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", str(error)) from error
    if not isinstance(page, dict) or not _is_list_of_text(page.get("text")):
        raise RecordError("wrong_type", "an abstract is an object with text, a list of sentences")
    return _key(text_at(page, "title")), lambda: orjson.dumps(page["text"])


def _abstract_files(inputs: Inputs, storage: Storage) -> list[str]:
    paths: list[str] = []
    for reference in inputs.references:
        found = storage.glob(join(reference, "**", "wiki_*")) or storage.glob(reference)
        if not found:
            raise SetupError(f"{reference} holds no files of HotpotQA's abstracts (AA/wiki_00.bz2, …).")
        paths += found
    return paths
