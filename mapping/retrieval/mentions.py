"""Finds mentions of entities in a text with a model: a token classifier of transformers, or spaCy's.

A token classifier is a Hugging Face folder with ``tokenizer.json`` and a model for token classification: ``model.onnx``
runs on ONNX Runtime, safetensors on PyTorch. Its labels are entity types, with or without a prefix such as ``B-`` or
``I-``; ``O`` marks words outside mentions. A word has the label of its first token. A folder with ``config.cfg`` is a
spaCy pipeline. Only the components and functions of spaCy itself that read nothing outside the folder are created;
``config.cfg`` may name others, which could import packages, read other files or unpickle weights.

Source: KILT (2021), which finds the mentions of a question with flair's tagger and links them with BLINK.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from kbsource.errors import SetupError
from mapping.entail.model import Arrays, Computer, OnnxComputer, TorchComputer, like_lengths, read_model_files
from mapping.entail.signal import Device, ModelOptions, load_library, onnx_path, opening
from mapping.hub import local_model
from mapping.retrieval.system_options import backend_of

GPU_BATCH = 64
"""Windows per batch on a GPU. A CPU core reads one at a time, so its labels do not depend on other windows."""
_MOST_TOKENS = 512
_SCHEMES = frozenset("BIESLU")
"""Prefixes of labels in the schemes IOB, IOBES and BILOU."""
_FIRST = frozenset("BSU")
_SPACY_COMPONENTS = frozenset(
    """attribute_ruler beam_ner beam_parser doc_cleaner entity_ruler future_entity_ruler ja.morphologizer lemmatizer
    merge_entities merge_noun_chunks merge_subtokens morphologizer ner parser sentencizer senter span_finder span_ruler
    spancat spancat_singlelabel tagger textcat textcat_multilabel tok2vec token_splitter
    trainable_lemmatizer""".split()
)
"""Factories of components that a pipeline may contain. An entity linker reads its knowledge base with C structures."""
_SPACY_FUNCTIONS = re.compile(
    r"""architectures/spacy(-legacy)?\.(?!Torch|Pretrain|EntityLinker)\w+\.v\d+
    | layers/spacy(-legacy)?\.\w+\.v\d+
    | layers/(Softmax|Linear|Maxout|Mish|Relu|reduce_\w+)\.v\d+
    | misc/spacy\.(?!Lookups|KBFromFile|Candidate|EmptyKB)\w+\.v\d+
    | scorers/spacy(-legacy)?\.\w+\.v\d+
    | tokenizers/spacy\.(Tokenizer\.v1|ja\.JapaneseTokenizer|ko\.KoreanTokenizer|th\.ThaiTokenizer)
    | vectors/spacy\.Vectors\.v1""",
    re.VERBOSE,
)
"""Functions that a pipeline may call, each as registry/name. The tokenizers of Chinese and Vietnamese unpickle
dictionaries; callbacks, readers and loggers open files and load other pipelines."""


class FoundMention(NamedTuple):
    """A mention at ``text[start_char:end_char]``."""

    start_char: int
    end_char: int


class MentionFinder(Protocol):
    """Finds mentions in texts."""

    def find(self, texts: Sequence[str]) -> list[list[FoundMention]]:
        """Returns the mentions of each text, from left to right, without nesting."""
        ...


def open_mention_finder(model: str, *, device: Device = "auto") -> MentionFinder:
    """Opens a model that finds mentions: a spaCy folder, or a token classifier.

    Raises:
        SetupError: it is neither, or cannot be opened.
    """
    model = local_model(model)
    if os.path.isfile(os.path.join(model, "config.cfg")):
        return _SpacyFinder(model)
    if os.path.isfile(os.path.join(model, "meta.json")) and not os.path.isfile(os.path.join(model, "config.json")):
        raise SetupError(f"{model}: is a spaCy pipeline without config.cfg. Download the model again.")
    return _TokenClassifier(model, device)


class _SpacyFinder:
    def __init__(self, model: str) -> None:
        spacy = load_library("spacy", purpose="--mention-model with a folder of spaCy")
        with opening(model, "it cannot be opened as a spaCy pipeline"):
            _check_spacy_config(spacy.util.load_config(Path(model, "config.cfg"), interpolate=True), model)
            self._pipeline = spacy.load(Path(model))  # given a str, spaCy would import a package of that name
        if not {"ner", "entity_ruler", "span_ruler"} & {*self._pipeline.pipe_names}:
            raise SetupError(
                f"{model}: its components are {', '.join(self._pipeline.pipe_names) or 'none'}, and none finds "
                "entities; name a pipeline with ner."
            )

    def find(self, texts: Sequence[str]) -> list[list[FoundMention]]:
        found = self._pipeline.pipe(list(texts))
        return [[FoundMention(entity.start_char, entity.end_char) for entity in document.ents] for document in found]


def _check_spacy_config(config: Mapping[str, Any], model: str) -> None:
    """Raises SetupError if a pipeline names a component or function that is not in the lists above."""
    components = config.get("components", {})
    for name, component in components.items():
        factory = component.get("factory")
        if factory not in _SPACY_COMPONENTS or "source" in component:
            kind = f"is a {factory}" if factory is not None else "comes from another pipeline"
            raise SetupError(
                f"{model}: its component {name!r:.100} {kind!s:.100}, which may run code. Use a pipeline of spaCy's "
                "own components, such as en_core_web_sm."
            )
    for function in _functions((config.get("nlp", {}), components)):
        if not _SPACY_FUNCTIONS.fullmatch(function):
            raise SetupError(
                f"{model}: its config.cfg calls {function!r:.100}, which may run code or read other files. Use a "
                "pipeline of spaCy's own functions, such as en_core_web_sm."
            )


def _functions(block: Any) -> Iterator[str]:
    """Finds the functions that a block of a pipeline's config calls, each as registry/name.

    >>> [*_functions({"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}, "batch_size": 7})]
    ['tokenizers/spacy.Tokenizer.v1']
    """
    if isinstance(block, Mapping):
        yield from (f"{key[1:]}/{value}" for key, value in block.items() if key.startswith("@"))
        yield from _functions([*block.values()])
    elif isinstance(block, Sequence) and not isinstance(block, str):
        for value in block:
            yield from _functions(value)


class _TorchClassifier(TorchComputer):
    head = "ForTokenClassification"
    reads_first_token = False


class _Word(NamedTuple):
    start_char: int
    end_char: int
    label: str


class _TokenClassifier:
    def __init__(self, model: str, device: Device) -> None:
        files = read_model_files(ModelOptions(model, backend=backend_of(model)))
        self._labels: Mapping[int, str] = files.config.id2label
        if "O" not in self._labels.values():
            raise SetupError(
                f"{model}: its outputs are called {', '.join(map(str, self._labels.values()))[:200]}, and none is O "
                "(no entity); name a model for token classification."
            )
        self._tokenizer, limit = files.tokenizer, getattr(files.config, "max_position_embeddings", None)
        limits = (_MOST_TOKENS, limit, files.tokenizer.model_max_length)
        self._max_tokens = int(min(length for length in limits if length))
        opens = OnnxComputer if onnx_path(files.folder) is not None else _TorchClassifier
        self._model: Computer = opens(files.folder, device)
        self._n_together = 1 if self._model.device == "cpu" else GPU_BATCH

    def find(self, texts: Sequence[str]) -> list[list[FoundMention]]:
        """Returns the mentions of each text. Texts that are too long for the model are read in consecutive windows."""
        found: list[list[FoundMention]] = [[] for _ in texts]
        places = [place for place, text in enumerate(texts) if text.strip()]
        if not places:
            return found
        windows = self._tokenizer(
            [texts[place] for place in places],
            truncation=True,
            max_length=self._max_tokens,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            verbose=False,
        )
        words: list[list[_Word]] = [[] for _ in texts]
        for number, labels in enumerate(self._labelled(windows["input_ids"])):
            own = words[places[windows["overflow_to_sample_mapping"][number]]]
            offsets = windows["offset_mapping"][number]
            tokens = zip(windows.word_ids(number), offsets, labels, strict=True)
            for word, parts in groupby(tokens, key=lambda token: token[0]):
                if word is not None:
                    first, *others = parts
                    end = max(end for _, (_, end), _ in (first, *others))
                    own.append(_Word(first[1][0], end, self._labels[int(first[2])]))
        return [_mentions(own) for own in words]

    def _labelled(self, rows: Sequence[Sequence[int]]) -> list[Any]:
        """Returns the most probable label of each token of each window."""
        groups = like_lengths(dict(enumerate(map(len, rows))), lambda _, n, longest: n < self._n_together)
        outputs = self._model.outputs([self._padded([rows[place] for place in group]) for group in groups])
        labels: list[Any] = [None] * len(rows)
        for group, found in zip(groups, outputs, strict=True):
            for place, own in zip(group, found, strict=True):
                labels[place] = own[: len(rows[place])].argmax(axis=-1)
        return labels

    def _padded(self, rows: Sequence[Sequence[int]]) -> Arrays:
        ids = np.full((len(rows), max(map(len, rows))), self._tokenizer.pad_token_id, np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)], mask[place, : len(row)] = row, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _mentions(words: Sequence[_Word]) -> list[FoundMention]:
    """Returns the mentions that the labels of words define.

    >>> _mentions([_Word(0, 3, "B-PER"), _Word(4, 12, "I-PER"), _Word(13, 16, "O"), _Word(17, 22, "I-LOC")])
    [FoundMention(start_char=0, end_char=12), FoundMention(start_char=17, end_char=22)]
    """
    mentions: list[FoundMention] = []
    before = ""  # the type of the previous word's mention
    for word in words:
        prefix, _, rest = word.label.partition("-")
        kind = rest if rest and prefix in _SCHEMES else "" if word.label == "O" else word.label
        if kind and kind == before and not (rest and prefix in _FIRST):
            mentions[-1] = FoundMention(mentions[-1].start_char, word.end_char)
        elif kind:
            mentions.append(FoundMention(word.start_char, word.end_char))
        before = kind
    return mentions
