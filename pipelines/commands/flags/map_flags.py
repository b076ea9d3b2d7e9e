"""The flags of ``kbsource map`` that say what is aligned and how; a configuration of many datasets uses the same words.

They are the fields of ``MapOptions``, ``VerifyOptions`` and of the options that each dataset has beside its reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kbsource.errors import SetupError
from mapping.entail.signal import ModelOptions
from mapping.options import Option
from mapping.sources import DATASETS, SOURCES
from mapping.sources.reading.base import LABELS, SourceOptions, Split
from pipelines.options.fields import Flags, add_flags, flags_of, from_flags, place
from pipelines.options.map import MapOptions, VerifyOptions

PATHS = ("FILE", "PATH", "DIR")
"""What flags take that name files and folders."""
MODEL = "MODEL"
"""What a flag takes that names the folder of a model, or its name on the hub."""
OF_THE_COMMAND = ("kb", "output", "split", "worker_memory_bytes", "scratch")
"""Options that a configuration has no word for."""

_SPLIT_WORDS: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
}
_FILES = ("references", "labels")
_WORD = re.compile(r"[a-z]+")


def dataset_flags(dataset: str) -> tuple[Option, ...]:
    """Gives the options that are a dataset's own: what it reads beside its records, and the choices of its reader."""
    source = SOURCES[dataset]
    files = [source.references] if source.references is not None else []
    return (*files, *([LABELS] if source.has_labels else []), *flags_of(source.options))


def takers() -> dict[str, list[str]]:
    """Gives for each flag that is not of all datasets those that take it."""
    found: dict[str, list[str]] = {}
    for dataset in DATASETS:
        for dataset_flag in dataset_flags(dataset):
            found.setdefault(dataset_flag.flag, []).append(dataset)
    return found


def add_dataset_flags(parser: Flags) -> None:
    """Declares the flags of all datasets, each once, with the datasets in front of its meaning."""
    flags = {dataset_flag.flag: dataset_flag for dataset in DATASETS for dataset_flag in dataset_flags(dataset)}
    for flag, datasets in takers().items():
        add_flags(parser, [replace(flags[flag], help=f"{', '.join(datasets)}: {flags[flag].help}")])


def add_verify_flags(parser: Flags) -> None:
    """Declares the flags of a verified alignment."""
    meaning = "ask an NLI model about every span: folder of a cross-encoder, or hub name"
    parser.add_argument("--verify", metavar=MODEL, help=meaning)
    add_flags(parser, VerifyOptions)


def split_of(paths: Sequence[str]) -> Split:
    """Gives the split that is meant where none is named: the one that the files are called after, else dev.

    >>> split_of(["fever/shared_task_dev.jsonl"]), split_of(["a/hotpot_train_v1.1.json"]), split_of(["qa", "mine.tsv"])
    ('dev', 'train', 'dev')

    Raises:
        SetupError: they are called after several.
    """
    named: dict[Split, str] = {}
    for path in paths:
        words = _WORD.findall(path.rstrip("/").rsplit("/", 1)[-1].lower())
        named |= {_SPLIT_WORDS[word]: path for word in words if word in _SPLIT_WORDS}
    if len(named) > 1:
        raise SetupError(f"{' and '.join(named.values())} are called after several splits; say which: --split NAME.")
    return next(iter(named), "dev")


def map_options(dataset: str, given: Mapping[str, Any], *, split: Split) -> MapOptions:
    """Gives the options of one alignment.

    Args:
        dataset: one of ``DATASETS``.
        given: value of each flag, by its name with underscores; None where not given.
        split: of the dataset.

    Raises:
        SetupError: a flag is missing, belongs to another dataset, or its value cannot be.
    """
    if not given["input"]:
        raise SetupError("--input is needed: the files of the dataset.")
    own = {dataset_flag.flag: dataset_flag for dataset_flag in dataset_flags(dataset)}
    for flag, datasets in takers().items():
        if flag not in own and given[place(flag)] is not None:
            raise SetupError(f"{flag} is for {', '.join(datasets)}, not for {dataset}; leave it out.")
    files = {
        declared_option.name: tuple(given[place(declared_option.flag)] or ())
        for declared_option in own.values()
        if declared_option.name in _FILES
    }
    source: SourceOptions = from_flags(given, SOURCES[dataset].options)
    return from_flags(given, MapOptions, dataset=dataset, split=split, source=source, verify=_verify(given), **files)


def _verify(given: Mapping[str, Any]) -> VerifyOptions | None:
    """Gives how alignments are verified; None where they are not."""
    if given["verify"] is None:
        for flag_option in flags_of(VerifyOptions):
            if given[place(flag_option.flag)] is not None:
                raise SetupError(f"{flag_option.flag} is for --verify MODEL; give it, or leave this out.")
        return None
    if given["rescue"] == 0:
        raise SetupError("--rescue is 0; give at least 1 sentence.")
    return from_flags(given, VerifyOptions, model=from_flags(given, ModelOptions, model=given["verify"]))
