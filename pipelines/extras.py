"""Which extra of kbsource brings a module that is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from kbsource.errors import SetupError

EXTRAS: dict[str, str] = {
    "numpy": "verify",
    "apache_beam": "build",
    "grpc": "build",
    "lxml": "build",
    "mwparserfromhell": "build",
    "yaml": "build",
    "inflect": "align",
    "rapidfuzz": "align",
    "rouge": "align",
    "sacrebleu": "align",
    "spacy": "align",
    "onnxruntime": "nli-onnx",
    "safetensors": "nli-onnx",
    "transformers": "nli-onnx",
    "onnx": "nli",
    "onnxscript": "nli",
    "torch": "nli",
    "tantivy": "search",
    "jinja2": "inspect",
    "starlette": "inspect",
    "uvicorn": "inspect",
    "duckdb": "diff",
    "argcomplete": "completion",
    "lupa": "lua",
}
"""The smallest extra that brings a module, by its top name."""

_WITHIN = {"verify": 1, "build": 2, "align": 3, "nli-onnx": 4, "search": 4}
# Where a command needs one of these extras it brings all those before it.


def missing_extra(error: ModuleNotFoundError, *, needs: str) -> SetupError | None:
    """Gives what to say where a module of an extra is not installed; None where no extra brings it.

    >>> print(missing_extra(ModuleNotFoundError(name="lxml.etree"), needs="align"))
    lxml is not installed: pip install 'kbsource[align]'

    Args:
        error: what the import raised.
        needs: extra that the command needs altogether.
    """
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    if _WITHIN.get(extra, 9) < _WITHIN.get(needs, 0):
        extra = needs
    return SetupError(f"{module} is not installed: pip install 'kbsource[{extra}]'")


def first_missing(extra: str) -> str | None:
    """Gives a module of an extra, or of those within it, that is not installed; None where all are."""
    highest = _WITHIN.get(extra, 0)
    for module, own in EXTRAS.items():
        if (own == extra or _WITHIN.get(own, 9) <= highest) and not _is_installed(module):
            return module
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
