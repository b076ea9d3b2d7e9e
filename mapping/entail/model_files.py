"""The files of a cross-encoder: a folder, or what is fetched from the hub; weights as safetensors or ONNX only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, sha256_of
from mapping.entail.backends import load_library, onnx_path
from mapping.entail.signal import Backend, ModelOptions

_CONFIG = ("config.json", "*token*", "vocab.*", "merges.txt", "*.model")
_WEIGHTS: dict[Backend, tuple[str, ...]] = {
    "torch": ("*.safetensors", "*.safetensors.index.json"),
    "onnx": ("model.onnx*", "onnx/model.onnx*"),
}


def model_folder(options: ModelOptions) -> str:
    """Gives a local folder with the model's files; those of the hub are fetched into its own cache.

    Raises:
        SetupError: there is no such model, or it has no weights that this backend reads without running code.
    """
    folder = options.model if os.path.isdir(options.model) else _fetched(options)
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise SetupError(f"{options.model}: holds no config.json; give the folder of a Hugging Face model.")
    if options.backend == "torch" and not weight_files(folder, "torch"):
        raise SetupError(
            f"{options.model}: holds no *.safetensors. Other weights are not read, for loading them can run code; "
            "save the model with transformers' save_pretrained, which writes safetensors."
        )
    return folder


def weight_files(folder: str, backend: Backend) -> list[str]:
    """Gives the paths of a model's weights, sorted."""
    if backend == "torch":
        return sorted(str(path) for path in Path(folder).glob("*.safetensors"))
    path = onnx_path(folder)
    # Beside a large model lies a file with its tensors.
    return [] if path is None else sorted(str(one) for one in Path(path).parent.glob("model.onnx*"))


def digest_of(paths: Sequence[str]) -> str:
    """Gives one sha256 for some files, in their order."""
    storage, digest = LocalStorage(), hashlib.sha256()
    for path in paths:
        digest.update(sha256_of(storage, path).encode())
    return digest.hexdigest()


def _fetched(options: ModelOptions) -> str:
    if options.model.startswith((".", "/", "~")) or options.model.count("/") > 1:
        raise SetupError(f"{options.model}: no such folder.")
    hub = load_library("huggingface_hub", purpose=f"{options.model} is no folder here, and a model of the hub")
    try:
        folder: str = hub.snapshot_download(
            options.model, revision=options.revision, allow_patterns=[*_CONFIG, *_WEIGHTS[options.backend]]
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise SetupError(
            f"{options.model}: neither a folder here nor fetched from the hub ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else ''}). Download the model where there is a network and "
            "give its folder."
        ) from error
    return folder
