"""Reads JSON, TOML and YAML files from outside into declared types, with limits on size and depth. Errors name the
path.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kbsource.errors import DataError, SetupError
from kbsource.files import Folder

if TYPE_CHECKING:
    import yaml

T = TypeVar("T")

MOST_BYTES = 32 << 20
"""Maximum size of a file in bytes. The manifest of a release of the English Wikipedia has about 1 MB."""
_DEEPEST = 16
"""Maximum nesting depth of the values in a file."""
_UNPAIRED = re.compile("[\ud800-\udfff]")
_GZIP = b"\x1f\x8b"
_MOST_CHARS = 300
"""Maximum length of a parser's message. Some parsers repeat the text at which they failed."""


def read_document(path: str, shape: type[T], *, remedy: str) -> T:
    """Returns the values of a JSON file, plain or gzipped, supplied by a user or a server.

    Args:
        shape: type of the values. Unknown fields are ignored. Keys may be numbers written as text.
        remedy: the advice in the message if the file has another form.

    Raises:
        SetupError: the file is missing, is not JSON, is too large, or has a value of another type.
    """
    content = _content(path, remedy)
    if content.startswith(_GZIP):
        content = _unpacked(content, path, remedy)
    value = parsed_json(content, path, remedy=remedy, fault=SetupError)
    return typed_value(value, shape, path, remedy=remedy, fault=SetupError)


def read_json(path: str, *, remedy: str) -> Any:
    """Returns the values of a JSON file supplied by a user, like ``read_document``, but of any type."""
    return parsed_json(_content(path, remedy), path, remedy=remedy, fault=SetupError)


def read_toml(path: str, *, remedy: str) -> dict[str, Any]:
    """Returns the values of a TOML file supplied by a user, of any type.

    Raises:
        SetupError: the file is missing, is not TOML, or is too large.
    """
    content = _content(path, remedy)
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is not valid TOML: {_one_line(error)}; {remedy}") from error


def read_yaml(path: str, *, remedy: str) -> Any:
    """Returns the lists, mappings and texts of a YAML file supplied by a user. All scalars are texts, numbers included.

    Raises:
        SetupError: the file is missing, is not YAML, or is too large.
    """
    with _yaml_loader(path, remedy) as loader:
        return loader.get_single_data()


def compose_yaml(path: str, *, remedy: str) -> yaml.Node | None:
    """Returns the YAML file as PyYAML nodes, which contain their positions in the file; None for an empty file.

    Raises:
        SetupError: as for ``read_yaml``.
    """
    with _yaml_loader(path, remedy) as loader:
        return loader.get_single_node()


@contextmanager
def _yaml_loader(path: str, remedy: str) -> Iterator[yaml.BaseLoader]:
    import yaml  # not installed where releases are only read

    class Loader(yaml.BaseLoader):  # type: ignore[misc]  # which has no types
        def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
            node = super().compose_scalar_node(anchor)
            if _is_odd(node.value):
                raise ValueError(f"line {node.start_mark.line + 1} has a text that is not valid Unicode")
            return node

    content = _content(path, remedy)
    try:
        yield Loader(content)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an escape that is not a character
        raise SetupError(f"{path} is not valid YAML: {_one_line(error)}; {remedy}") from error
    except RecursionError as error:
        raise SetupError(f"{path} is nested too deeply; {remedy}") from error


def _content(path: str, remedy: str) -> bytes:
    try:
        return bounded_content(Folder.of(path), remedy=remedy, fault=SetupError)
    except FileNotFoundError as error:
        raise SetupError(f"{path}: no such file.") from error


def bounded_content(file: Folder, *, remedy: str, fault: type[SetupError] = DataError) -> bytes:
    """Returns the content of a file.

    Raises:
        SetupError: the file is larger than ``MOST_BYTES``.
    """
    with file.open() as opened:
        return _checked_size(opened.read(MOST_BYTES + 1), file.url, remedy, fault)


def _unpacked(content: bytes, where: str, remedy: str) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        try:
            unpacked = file.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise SetupError(
                f"{where}: the gzip data is damaged or incomplete ({_one_line(error)}); {remedy}"
            ) from error
    return _checked_size(unpacked, where, remedy, SetupError)


def _checked_size(content: bytes, where: str, remedy: str, fault: type[SetupError]) -> bytes:
    if len(content) > MOST_BYTES:
        raise fault(f"{where}: larger than {MOST_BYTES >> 20} MB, the maximum; {remedy}")
    return content


def parsed_json(content: bytes, where: str, *, remedy: str, fault: type[SetupError] = DataError) -> Any:
    """Parses JSON text, and returns its values. ``where`` names the text in errors.

    Raises:
        SetupError: the text is not JSON, is nested too deeply, or contains half of a surrogate pair.
    """
    try:
        value = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise fault(f"{where}: not JSON ({_one_line(error)}); {remedy}") from error
    if _is_odd(value):
        raise fault(f"{where}: nested too deeply, or a text is not valid Unicode; {remedy}")
    return value


def typed_value(value: Any, wanted: type[T], where: str, *, remedy: str, fault: type[SetupError] = DataError) -> T:
    """Returns a JSON value converted to the annotated type; ``where`` names it in errors. Unknown fields are ignored.

    Raises:
        SetupError: a field is missing or has another type, or the type rejects the values.
    """
    try:
        return msgspec.convert(value, wanted, str_keys=True)
    except (msgspec.ValidationError, SetupError) as error:
        raise fault(f"{where}: {_one_line(error)}; {remedy}") from error


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _is_odd(value: Any, depth: int = _DEEPEST) -> bool:
    """Returns whether values are nested more deeply than ``depth``, or contain half of a surrogate pair."""
    if isinstance(value, str):
        return not value.isascii() and _UNPAIRED.search(value) is not None
    if isinstance(value, dict):
        return not depth or any(_is_odd(own, depth - 1) for pair in value.items() for own in pair)
    return isinstance(value, list) and (not depth or any(_is_odd(own, depth - 1) for own in value))


def _one_line(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.{_MOST_CHARS}}"
