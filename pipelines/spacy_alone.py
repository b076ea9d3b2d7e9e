"""spaCy without PyTorch, for processes of our own."""

from __future__ import annotations

import importlib
import sys


def import_spacy() -> None:
    """Imports spaCy so that it does not load PyTorch: call it before anything that tokenises is imported.

    Where the extra ``nli`` is installed spaCy's library of models loads PyTorch, which takes more than a second and
    some 460 MB in every process; here only spaCy's rules are used. What has been loaded already stays as it is, and
    PyTorch itself can be imported afterwards.
    """
    if "spacy" in sys.modules or "torch" in sys.modules:
        return
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]  # None: the import of it fails
    modules["torch"] = None
    try:
        importlib.import_module("spacy")
    finally:
        del modules["torch"]
