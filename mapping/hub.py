"""Models by name: the files of a model on the Hugging Face hub, from its cache on this machine.

Wherever a model is named, ``OWNER/NAME`` or ``OWNER/NAME@REVISION`` can be used instead of its folder. A connection is
opened only after ``allow_downloads``, which the option ``--download`` calls in the process of the command; its workers
read the cache. ``HF_ENDPOINT`` sets the hub.

Source of the layout of the cache: https://huggingface.co/docs/huggingface_hub/guides/manage-cache (2026).
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from kbsource.errors import SetupError
from kbsource.files import is_local

Backend = Literal["torch", "onnx"]

CONFIG_FILES = ("*.json", "*token*", "*_tokenizer/*", "vocab.*", "merges.txt", "*.model", "1_Pooling/*")
"""Patterns of the files that a model needs in addition to its weights."""
WEIGHTS: dict[Backend, tuple[str, ...]] = {
    "torch": ("*.safetensors", "*.safetensors.index.json"),
    "onnx": ("model.onnx*", "onnx/model.onnx*"),
}
"""Patterns of weight files. Files in other formats are not downloaded, because loading them can run code."""
ONNX_FILES = ("model.onnx", os.path.join("onnx", "model.onnx"))
"""Possible paths of an exported model in its folder; the first existing one is used."""

_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?", re.ASCII)
_SNAPSHOT = re.compile(r"models--([^/]+?)--([^/]+)/snapshots/([0-9a-f]{40})/?$")
_downloads_are_allowed = False
_commits: dict[str, str] = {}
"""Commits of the models that this process has downloaded, by the models' names as given. They ensure that all
files of a model come from the same commit."""


def allow_downloads(is_allowed: bool) -> None:
    """Allows this process to download models by name, or forbids it again."""
    global _downloads_are_allowed
    _downloads_are_allowed = is_allowed
    _folder_of.cache_clear()
    _commits.clear()


def is_hub_name(model: str) -> bool:
    """Returns whether a model is given by its name on the hub: it looks like such a name, and there is no path with
    that name.

    >>> is_hub_name("cross-encoder/nli-deberta-v3-base@main"), is_hub_name("./nli"), is_hub_name("s3://models/nli")
    (True, False, False)
    """
    return is_local(model) and _NAME.fullmatch(model) is not None and not os.path.exists(model)


def local_model(model: str, *backends: Backend) -> str:
    """Returns the folder of a model that is given by its name on the hub; any other value is returned unchanged.

    Args:
        model: a path, an address in a store, ``OWNER/NAME`` or ``OWNER/NAME@REVISION``.
        backends: backends that can run the model, the preferred one first; its weights are downloaded.

    Raises:
        SetupError: the model is not in the cache, and downloading is not allowed or fails.
    """
    return _folder_of(model, backends or ("onnx", "torch")) if is_hub_name(model) else model


def model_name(model: str, folder: str) -> str:
    """Returns the name of a model for manifests: ``OWNER/NAME@COMMIT`` if it comes from the hub, otherwise the last
    part of its path.

    Args:
        model: as named by the user.
        folder: folder of the model's files on this machine.

    >>> model_name("models/nli/", "models/nli/")
    'nli'
    """
    if found := _SNAPSHOT.search(folder):
        return "{}/{}@{}".format(*found.groups())
    return os.path.basename(os.path.normpath(model))


@lru_cache(maxsize=32)
def _folder_of(model: str, backends: tuple[Backend, ...]) -> str:
    found = _NAME.fullmatch(model)
    assert found is not None, model
    name, revision = found.groups()
    try:
        hub = importlib.import_module("huggingface_hub")
        constants = importlib.import_module("huggingface_hub.constants")
        errors = importlib.import_module("huggingface_hub.errors")
    except ImportError as error:
        raise SetupError(
            f"{model}: no such folder, and a model from the hub needs huggingface_hub ({error}). Install the extra: "
            f"pip "
            "install 'kbsource[nli]'"
        ) from error
    if not _downloads_are_allowed:
        return _cached(constants, model, name, revision)
    revision = _commits.get(model, revision)
    try:
        weights = _weights(hub.list_repo_files(name, revision=revision), backends)
        folder: str = hub.snapshot_download(name, revision=revision, allow_patterns=[*CONFIG_FILES, *weights])
    except (OSError, ValueError, RuntimeError, errors.HfHubHTTPError) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]
        raise SetupError(
            f"{model}: not downloaded from {constants.ENDPOINT} ({type(error).__name__}: {said}). Check the name "
            "and the network, or give the folder of a copy."
        ) from error
    _commits[model] = os.path.basename(folder)
    return folder


def _cached(constants: Any, model: str, name: str, revision: str | None) -> str:
    """Returns the folder of a model in the cache. Missing files are reported when the model is opened."""
    cache = Path(constants.HF_HUB_CACHE)
    own = cache / f"models--{name.replace('/', '--')}"
    commit = wanted = revision or "main"
    if ".." not in wanted and (reference := own / "refs" / wanted).is_file():
        commit = reference.read_text("utf-8").strip()
    folder = own / "snapshots" / commit
    if not _SNAPSHOT.search(str(folder)) or not folder.is_dir():
        at = f" --revision {revision}" if revision else ""
        raise SetupError(
            f"{model}: no such folder, and no such model in {cache}. Add --download to fetch it from "
            f"{constants.ENDPOINT}, run 'hf download {name}{at}' where there is a network, or give the folder of a "
            "copy."
        )
    return str(folder)


def _weights(files: Sequence[str], backends: Sequence[Backend]) -> tuple[str, ...]:
    """Returns the patterns of the weights to download: those of the first backend that the model has weights for."""
    has: dict[Backend, bool] = {
        "onnx": any(name in files for name in map(Path.as_posix, map(Path, ONNX_FILES))),
        "torch": any(name.endswith(".safetensors") and "/" not in name for name in files),
    }
    return next((WEIGHTS[backend] for backend in backends if has[backend]), ())
