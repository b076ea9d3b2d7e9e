"""Which extra of kbsource brings a module that is not installed."""

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
    "lupa": "lua",
}
"""The smallest extra that brings a module, by its top name."""

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
    "lua": ("build",),
}
"""Extras that an extra brings with it."""


def _whole(extra: str) -> set[str]:
    return {extra}.union(*map(_whole, _WITHIN.get(extra, ())))


def missing_extra(error: ImportError, *, needs: str) -> SetupError | None:
    """What to say where a module of an extra is not installed; None where no extra brings it.

    >>> print(missing_extra(ModuleNotFoundError(name="lxml.etree"), needs="align"))
    lxml is not installed: pip install 'kbsource[align]'

    Args:
        error: what the import raised.
        needs: extra that the command needs altogether.
    """
    cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__  # of a command's module
    module = (getattr(cause, "name", None) or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    if extra in _whole(needs):
        extra = needs
    return SetupError(f"{module} is not installed: pip install 'kbsource[{extra}]'")


def first_missing(extra: str) -> str | None:
    """A module of an extra, or of those within it, that is not installed; None where all are."""
    return next((name for name, own in EXTRAS.items() if own in _whole(extra) and not _is_installed(name)), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
