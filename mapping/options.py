"""Options: fields of frozen dataclasses. Each field is a flag, a configuration key and a line of docs/commands.md.

A field's type defines the allowed values, with a validator where the type does not suffice. The text below the field
describes it. cyclopts builds the command line from these classes; values passed in Python are checked too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import isnan
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from kbsource.errors import SetupError
from kbsource.files import Folder, is_local


def _shown(value: Any) -> str | None:
    """Returns a default as the user would type it; None for an option that is off or empty by default."""
    return _typed(value) if value or type(value) in (int, float) else None


DEFAULTS = Parameter(negative=(), consume_multiple=True, show_default=_shown)
"""Defaults for every flag: it has no negative form, and several values may follow one flag or be given with one flag
each.
"""
ON_BY_DEFAULT = Parameter(negative=None, negative_bool="no-")
"""For options that are on by default: ``--no-…`` turns them off."""
FLAT = Parameter(name="*")
"""Marks a field that is a dataclass of options: its fields become options at the same level as the other options."""


def listed(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Returns the parts of a comma-separated list; several such lists are joined."""
    parts = (part.strip() for token in tokens for part in token.value.split(","))
    return tuple(part for part in parts if part)


def whole_number(type_: Any, tokens: Sequence[Token]) -> int:
    """Returns a whole number; without this converter, cyclopts would round 1.5."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError("Give a whole number.") from None


def parsed_integers(type_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Returns the distinct integers of a comma-separated list, in ascending order."""
    try:
        return tuple(sorted(set(map(int, listed(type_, tokens)))))
    except ValueError:
        raise ValueError("Give whole numbers, such as 10,100.") from None


def release_named(type_: Any, tokens: Sequence[Token]) -> str:
    """Returns the folder of a release given as a folder or as wiki and date."""
    return releases_named(type_, tokens)[0]


def releases_named(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Returns the folders of several releases, as ``release_named``."""
    if not any("@" in token.value for token in tokens):
        return tuple(token.value for token in tokens)
    from kbsource.catalogue import find_release  # imports Arrow

    return tuple(find_release(token.value) for token in tokens)


def _texts(value: Any) -> Collection[str]:
    return (value,) if isinstance(value, str) else value or ()


@dataclass(frozen=True, slots=True)
class Like:
    """Checks that a text, or each of several texts, matches a pattern; the message shows an example."""

    pattern: str
    example: str

    def __call__(self, type_: Any, value: Any) -> None:
        for text in _texts(value):
            if len(text) > LONGEST_NAME or re.fullmatch(self.pattern, text, re.ASCII) is None:
                raise ValueError(f"Write it like {self.example}.")


@dataclass(frozen=True, slots=True)
class Short:
    """Checks that a text, or each of several texts, has at most this number of characters and no NUL."""

    most_chars: int

    def __call__(self, type_: Any, value: Any) -> None:
        for text in _texts(value):
            if len(text) > self.most_chars:
                raise ValueError(f"It has {len(text):,} characters; give {self.most_chars:,} at most.")
            if "\0" in text:
                raise ValueError("It contains the character NUL; remove it.")
        if len(_texts(value)) > MOST_PARTS:
            raise ValueError(f"It has {len(_texts(value)):,} values; give {MOST_PARTS:,} at most.")


def path_like(type_: Any, value: Any) -> None:
    """Checks that a text, or each of several texts, can be a path: it is not empty and not too long."""
    for text in _texts(value):
        if not text.strip():
            raise ValueError("Name a file or a folder.")
        if "\0" in text:
            raise ValueError("A path cannot contain the character NUL.")
        n_bytes = len(text.encode("utf-8", "replace"))
        longest = max(len(part.encode("utf-8", "replace")) for part in text.split("/"))
        if n_bytes > LONGEST_PATH or (longest > LONGEST_PART and "://" not in text):
            raise ValueError(f"A path may have at most {LONGEST_PATH:,} bytes, and each name in it {LONGEST_PART}.")


def name_like(type_: Any, value: str | None) -> None:
    """Checks that a text can be the beginning of a file name."""
    if value is None:
        return
    path_like(type_, value)
    if "/" in value or not value.strip(". ") or len(value.encode("utf-8", "replace")) > LONGEST_PART - 100:
        raise ValueError(f"Give the beginning of a file name: no slash, {LONGEST_PART - 100} bytes at most.")


LARGEST = 1 << 53
"""Largest integer. JSON, the format of manifests, is exact up to here."""
LONGEST_NAME = 200
LONGEST_TEXT = 100_000
"""Longest text on the command line: Linux allows 131,072 bytes including the final NUL (MAX_ARG_STRLEN)."""
LONGEST_PATH, LONGEST_PART = 4095, 255
"""Longest path and longest name in it, in bytes: PATH_MAX without its final NUL, and NAME_MAX of Linux."""
MOST_PARTS = 10_000
"""Maximum number of values in a list."""

AtLeast0 = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0, lte=LARGEST))]
AtLeast1 = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1, lte=LARGEST))]
Tokens = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=2, lte=LARGEST))]
Threads = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1, lte=1024))]
Megabytes = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1, lte=1 << 26))]
Bleu = Annotated[float, Parameter(metavar="BLEU", validator=Number(gte=0, lte=1))]
Share = Annotated[float, Parameter(metavar="SHARE", validator=Number(gte=0, lte=1))]
Probability = Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lte=1))]
Seconds = Annotated[float, Parameter(metavar="SECONDS", validator=Number(gt=0, lte=1_000_000))]
File = Annotated[str, Parameter(metavar="FILE", validator=path_like)]
Files = Annotated[tuple[str, ...], Parameter(metavar="FILE", validator=path_like)]
Model = Annotated[str, Parameter(metavar="MODEL", validator=path_like)]
"""A model: its folder, local or remote, or its name on the hub (``mapping.hub``)."""
FileOrPipe = Annotated[File, Parameter(allow_leading_hyphen=True)]  # - for standard input or output
FolderPath = Annotated[File, Parameter(metavar="DIR")]
WRITTEN = "written"
"""Marks a file, or a folder of files, that a command writes. It must not exist before."""
NewFile = Annotated[File, WRITTEN]
NewFileOrPipe = Annotated[FileOrPipe, WRITTEN]
NewFolder = Annotated[FolderPath, WRITTEN]
Release = Annotated[File, Parameter(metavar="RELEASE", converter=release_named)]
Releases = Annotated[Files, Parameter(metavar="RELEASE", converter=releases_named)]
Name = Annotated[str, Parameter(metavar="NAME", validator=Short(LONGEST_NAME))]
Title = Annotated[str, Parameter(validator=Short(LONGEST_PATH))]
Text = Annotated[str, Parameter(metavar="TEXT", validator=Short(LONGEST_TEXT))]
Rule = Annotated[str, Parameter(metavar="RULE", validator=Short(1000))]
Language = Annotated[str, Parameter(metavar="CODE", validator=Like(r"[a-z]{2,3}(-[a-z-]+)?", "de"))]
Words = Annotated[
    tuple[str, ...],
    Parameter(metavar="A,B", converter=listed, n_tokens=1, accepts_keys=False, validator=Short(LONGEST_NAME)),
]
Ranks = Annotated[
    tuple[int, ...],
    Parameter(
        "--k",
        metavar="K,…",
        converter=parsed_integers,
        n_tokens=1,
        accepts_keys=False,
        validator=Number(gte=1, lte=LARGEST),
    ),
]

Level = Literal["passage", "page"]
"""The documents that are retrieved or relevant: passages or pages."""
System = Annotated[
    str,
    Parameter(
        metavar="SYSTEM",
        validator=Like(
            r"(bm25|tfidf|aliases|dense|oracle)([+,](bm25|tfidf|aliases|dense|oracle))*(:rerank)?",
            "aliases+bm25 or bm25,dense:rerank",
        ),
    ),
]
"""A retrieval system, see ``mapping.retrieval.systems``."""
FoundForm = Literal["kilt", "trec", "ctxs"]
"""The form of retrieval results: KILT predictions, a TREC run, or questions with passages."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Options whose values are checked. A subclass with further rules calls ``check_options`` in ``__post_init__``."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``."""
        check_options(self)


def check_options(options: Any) -> None:
    """Checks all values with their types' validators. None is always valid.

    Raises:
        SetupError: names the option as typed, its value, and the allowed values.
    """
    hints = get_type_hints(type(options), include_extras=True)
    for field in fields(options):
        value = getattr(options, field.name)
        if value is None:
            continue
        flag = flag_of(field.name, hints[field.name])
        if isinstance(value, float) and isnan(value):
            raise SetupError(f"{flag} is nan. Give a number.")
        for choices in _choices(hints[field.name]):
            if any(part not in choices for part in (value if isinstance(value, tuple) else (value,))):
                raise SetupError(f"{flag} is {_typed(value)}. Choose one of {', '.join(choices)}.")
        for validator in _validators(hints[field.name]):
            try:
                validator(type(value), value)
            except ValueError as error:
                raise SetupError(f"{flag} is {_typed(value) or 'empty'}. {error}") from error


As = Literal["paper", "released"]
"""The choices to follow: the paper's, or those in the code and files that its authors released."""
Choices = Mapping[As, Mapping[str, Any]]
"""The options that each choice sets, by name, with their values."""


def flat_options(type_: type, options: Any = None) -> Iterator[tuple[str, str, Any]]:
    """Iterates over the options of a dataclass and of the dataclasses in it: field, flag and value. Without
    ``options``, the values are None."""
    for name, hint in get_type_hints(type_, include_extras=True).items():
        value = None if options is None else getattr(options, name, None)
        inner = [part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)]
        if inner:
            yield from flat_options(inner[0], value)
        else:
            yield name, flag_of(name, hint), value


def check_choices(options: Any, chosen: As | None, choices: Choices) -> None:
    """Checks that options agree with those that ``--as`` implies.

    Raises:
        SetupError: one of them differs; the message names it.
    """
    wanted = {} if chosen is None else choices[chosen]
    for name, flag, value in flat_options(type(options), options):
        if name in wanted and value != wanted[name]:
            raise SetupError(
                f"--as {chosen} sets {flag} to {_typed(wanted[name])}, not to {_typed(value)}: "
                f"leave out {flag} or --as."
            )


def with_choices(tokens: Sequence[str], type_: type, choices: Choices) -> list[str]:
    """Returns the typed arguments, followed by the options that ``--as`` implies. Options that were typed are kept."""
    taken = next((tokens[place + 1] for place, token in enumerate(tokens[:-1]) if token == "--as"), None)
    taken = next((token.partition("=")[2] for token in tokens if token.startswith("--as=")), taken)
    typed = {token.partition("=")[0] for token in tokens}
    wanted = next((own for name, own in choices.items() if name == taken), {})
    further = [(flag, wanted[name]) for name, flag, _ in flat_options(type_) if name in wanted and flag not in typed]
    return [*tokens, *(flag if value is True else f"{flag}={value}" for flag, value in further if value is not False)]


OUTPUT_FOLDERS = ("output", "scratch")
"""Names of the options of jobs that name a folder to write to."""


def each_option(values: Mapping[str, Any], hints: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Lists options, each with its name, type and value. Nested options are listed in place of what contains them.

    Args:
        values: options by name.
        hints: their types.
    """
    for name, hint in hints.items():
        value = values.get(name)
        if is_dataclass(value):
            own = {field.name: getattr(value, field.name) for field in fields(value)}
            yield from each_option(own, get_type_hints(type(value), include_extras=True))
        else:
            yield name, hint, value


def paths_of(values: Mapping[str, Any], hints: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Lists the files and folders that options name, each with the name of its option; see ``each_option``."""
    for name, hint, value in each_option(values, hints):
        if path_like in _validators(hint):
            yield from ((name, path) for path in _texts(value))


def names_model(values: Mapping[str, Any], hints: Mapping[str, Any]) -> bool:
    """Returns whether options name a model; see ``each_option``."""
    return any(bool(value) and takes_model(hint) for _, hint, value in each_option(values, hints))


def takes_model(hint: Any) -> bool:
    """Returns whether an option of this type is a model."""
    return any(parameter.metavar == "MODEL" for parameter in _parameters(hint))


def written_files(values: Mapping[str, Any], hints: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Lists the flag and path of each file to be written; the path is None if the option is not given. See
    ``each_option``.
    """
    for name, hint, value in each_option(values, hints):
        if WRITTEN in _metadata(hint):
            yield flag_of(name, hint), value


def check_new(flag: str, path: str) -> None:
    """Checks that a file does not exist, or that a folder is empty. Pipes and devices may exist.

    Raises:
        SetupError: it exists.
    """
    if path == "-" or (is_local(path) and os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
        return
    if is_local(path) and os.path.isdir(path):
        if any(os.scandir(path)):
            raise SetupError(f"{flag} {path} is a folder that is not empty; name another folder, or add --force.")
    elif Folder.of(path).exists():
        raise SetupError(f"{flag} {path} already exists; name another file, or add --force to overwrite it.")


ENDINGS: Mapping[str, str] = {
    **dict.fromkeys(("jsonl", "ndjson", "json"), "jsonl"),
    **dict.fromkeys(("md", "markdown"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("trec", "run", "qrels"), "trec"),
    **dict.fromkeys(("txt", "text"), "text"),
    **dict.fromkeys(("csv", "tsv", "parquet", "arrow", "feather", "xml", "yaml", "yml", "xlsx", "sqlite"), "other"),
}
"""The format implied by the ending of a file name: ending -> format."""
COMPRESSED = ("gz", "zst", "bz2", "xz", "zip")


def ending_of(path: str, compressions: Collection[str] = ()) -> str:
    """Returns the format that a file name implies, see ``ENDINGS``; empty if it implies none.

    >>> ending_of("out/enwiki.jsonl.gz", ["gz"]), ending_of("notes"), ending_of("runs.d/a")
    ('jsonl', '', '')
    """
    name, dot, ending = path.rpartition("/")[2].rpartition(".")
    if ending.lower() in compressions:
        name, dot, ending = name.rpartition(".")
    return ENDINGS.get(ending.lower(), "") if dot else ""


def check_ending(
    flag: str, path: str, form: str, *, fitting: Collection[str], compressions: Collection[str] = ()
) -> None:
    """Checks that the name of an output file does not imply another format.

    Args:
        form: name of the written format, for messages.
        fitting: formats of ``ENDINGS`` that the name may imply.
        compressions: endings that mean a compressed file.

    Raises:
        SetupError: the name implies another format.
    """
    last = path.rpartition("/")[2].rpartition(".")[2].lower()
    if last in COMPRESSED and last not in compressions and "." in path.rpartition("/")[2]:
        known = f"; .{' and .'.join(compressions)} are" if compressions else ""
        raise SetupError(f"{flag} {path}: .{last} files cannot be written{known}. Leave .{last} out.")
    said = ending_of(path, compressions)
    if said and said not in fitting:
        raise SetupError(f"{flag} {path} does not have the extension of {form}; rename it, or choose another format.")


def _metadata(hint: Any) -> Iterator[Any]:
    yield from getattr(hint, "__metadata__", ())
    for part in get_args(hint) if get_origin(hint) is not Literal else ():
        yield from _metadata(part)


def flag_of(name: str, hint: Any) -> str:
    """Returns the name of a field's option on the command line."""
    return next(
        (named for parameter in _parameters(hint) for named in parameter.name or ()), f"--{name.replace('_', '-')}"
    )


def _parameters(hint: Any) -> Iterator[Parameter]:
    """Iterates over the parameters of a type and of its parts, the outermost first."""
    yield from (parameter for parameter in getattr(hint, "__metadata__", ()) if isinstance(parameter, Parameter))
    for part in get_args(hint) if get_origin(hint) is not Literal else ():
        yield from _parameters(part)


def _validators(hint: Any) -> list[Any]:
    parameters: list[Any] = list(_parameters(hint))
    return [validator for parameter in parameters for validator in parameter.validator]


def _choices(hint: Any) -> Iterator[tuple[Any, ...]]:
    if get_origin(hint) is Literal:
        yield get_args(hint)
        return
    for part in get_args(hint):
        yield from _choices(part)


def _typed(value: Any) -> str:
    if isinstance(value, tuple | frozenset):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def without_unknown(tokens: Sequence[str], known: Collection[str]) -> tuple[list[str], list[str]]:
    """Separates a command's own arguments from options that it does not know, which are passed to Beam.

    >>> without_unknown(["a.bz2", "--region", "us", "--output", "r", "--streaming"], {"--output"})
    (['a.bz2', '--output', 'r'], ['--region', 'us', '--streaming'])
    """
    own: list[str] = []
    others: list[str] = []
    part = own
    for token in tokens:
        if token.startswith("--"):
            part = own if token.partition("=")[0] in known else others
        part.append(token)
        if part is others and (not token.startswith("--") or "=" in token):
            part = own  # a Beam flag has one value
    return own, others
