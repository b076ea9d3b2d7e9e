"""Finds the extra of kbsource that installs a missing module."""

from __future__ import annotations

from importlib.util import find_spec

from kbsource.errors import SetupError

EXTRAS: dict[str, str] = {
    "duckdb": "verify",
    "fsspec": "verify",
    "numpy": "verify",
    "apache_beam": "build",
    "grpc": "build",
    "inflect": "align",
    "lupa": "build",
    "lxml": "build",
    "mwparserfromhell": "build",
    "pytz": "build",
    "yaml": "publish",
    "rapidfuzz": "diff",
    "rouge": "align",
    "sacrebleu": "align",
    "spacy": "align",
    "onnxruntime": "dense",
    "safetensors": "dense",
    "tokenizers": "dense",
    "usearch": "dense",
    "transformers": "nli-onnx",
    "onnx": "nli",
    "onnxscript": "nli",
    "torch": "nli",
    "accelerate": "read",
    "gguf": "read",
    "murmurhash": "search",
    "regex": "search",
    "tantivy": "search",
    "jinja2": "inspect",
    "starlette": "inspect",
    "uvicorn": "inspect",
    "mcp": "serve",
}
"""The smallest extra that installs a module, by the module's top-level name."""

_WITHIN: dict[str, tuple[str, ...]] = {
    "publish": ("verify",),
    "build": ("publish",),
    "align": ("build", "diff"),
    "dense": ("align",),
    "nli-onnx": ("dense",),
    "nli": ("nli-onnx",),
    "read": ("nli",),
    "search": ("align",),
    "inspect": ("verify",),
    "serve": ("inspect", "search"),
    "diff": ("verify",),
}
"""Extras that an extra includes."""


def _whole(extra: str) -> set[str]:
    return {extra}.union(*map(_whole, _WITHIN.get(extra, ())))


def missing_extra(error: ImportError, *, needs: str) -> SetupError | None:
    """Returns the message for a missing module; None if no extra installs it.

    >>> print(missing_extra(ModuleNotFoundError(name="lxml.etree"), needs="align"))
    lxml is not installed: pip install 'kbsource[align]'

    Args:
        error: the exception of the import.
        needs: extra with everything that the command needs.
    """
    cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__  # raised by a command's module
    module = (getattr(cause, "name", None) or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    if extra in _whole(needs):
        extra = needs
    return SetupError(f"{module} is not installed: pip install 'kbsource[{extra}]'")


def first_missing(extra: str) -> str | None:
    """Returns a missing module of an extra or of its included extras; None if all are installed."""
    return next((name for name, own in EXTRAS.items() if own in _whole(extra) and not _is_installed(name)), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
