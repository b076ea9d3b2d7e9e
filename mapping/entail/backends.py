"""What computes the outputs of a cross-encoder: PyTorch or ONNX Runtime, both from files that run no code.

torch, transformers and onnxruntime come with the extra ``nli`` and are imported when a model is opened.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kbsource.errors import SetupError
from mapping.entail.encoder import Arrays
from mapping.entail.shortcuts import keep_first_token
from mapping.entail.signal import Precision

ONNX_FILES = ("model.onnx", os.path.join("onnx", "model.onnx"))
"""Where an exported model lies in its folder, the first that is there."""

Outputs = npt.NDArray[np.float32]


class Computer(Protocol):
    """A loaded model.

    Attributes:
        device: what it runs on.
    """

    device: str

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """Gives the outputs before softmax, pairs × labels, of each batch in their order.

        On the CPU as many batches are computed at once as there are cores, each by one thread: threads that share a
        batch wait for each other in every layer, and where something else has their core they wait long. So the
        numbers do not depend on how many cores there are.
        """
        ...


def load_library(name: str, *, purpose: str) -> Any:
    """Imports a library of the extra ``nli``.

    Raises:
        SetupError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(f"{purpose} needs {name} ({error}). Install the extra: pip install 'kbsource[nli]'") from error


class TorchComputer:
    """Runs safetensors weights with PyTorch."""

    def __init__(self, folder: str, device: str, precision: Precision = "float32") -> None:
        self._n_threads = count_threads()
        self._torch = load_library("torch", purpose="--backend torch")
        transformers = load_library("transformers", purpose="--backend torch")
        self.device = _torch_device(self._torch, device)
        safetensors = load_library("safetensors", purpose="--backend torch")
        try:
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, use_safetensors=True, trust_remote_code=False, local_files_only=True, dtype=self._torch.float32
            )
        except (OSError, ValueError, KeyError, RuntimeError, safetensors.SafetensorError) as error:
            raise SetupError(f"{folder}: these are no weights that can be opened: {error}") from error
        self._model = model.to(self.device).eval()
        keep_first_token(self._model)
        self._dtype = getattr(self._torch, precision)
        if precision != "float32" and self.device != "cpu":
            _check_bfloat16(self._torch)

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """Gives the outputs before softmax, pairs × labels, of each batch in their order."""
        if self.device != "cpu":
            return [self._computed(batch) for batch in batches]
        # That holds for the threads of the pool and those that start later, not for the one that is here.
        return compute_at_once(
            self._computed, batches, n_threads=self._n_threads, prepare=lambda: self._torch.set_num_threads(1)
        )

    def _computed(self, arrays: Arrays) -> Outputs:
        torch = self._torch
        is_lower = self._dtype != torch.float32
        kind = self.device.partition(":")[0]
        with torch.inference_mode(), torch.autocast(kind, dtype=self._dtype) if is_lower else nullcontext():
            tensors = {name: torch.from_numpy(values).to(self.device) for name, values in arrays.items()}
            found: Outputs = self._model(**tensors).logits.float().cpu().numpy()
        return found


class OnnxComputer:
    """Runs an exported model with ONNX Runtime."""

    def __init__(self, folder: str, device: str) -> None:
        self._n_threads = count_threads()
        runtime = load_library("onnxruntime", purpose="--backend onnx")
        path = onnx_path(folder)
        if path is None:
            raise SetupError(
                f"{folder}: no {' or '.join(ONNX_FILES)}, which --backend onnx runs. Make one: "
                "kbsource nli --model MODEL --export-onnx FOLDER, then --model FOLDER."
            )
        self.device, provider = _onnx_device(runtime, device)
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        faults = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        try:
            self._session = runtime.InferenceSession(path, options, providers=[provider])
        except (faults.Fail, faults.InvalidProtobuf, faults.InvalidGraph, faults.NoSuchFile) as error:
            raise SetupError(f"{path}: these are no weights that can be opened: {error}") from error
        self._names = [one.name for one in self._session.get_inputs()]

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """Gives the outputs before softmax, pairs × labels, of each batch in their order."""
        if self.device != "cpu":
            return [self._computed(batch) for batch in batches]
        return compute_at_once(self._computed, batches, n_threads=self._n_threads)

    def _computed(self, arrays: Arrays) -> Outputs:
        found: Outputs = self._session.run(None, {name: arrays[name] for name in self._names})[0]
        return found


def onnx_path(folder: str) -> str | None:
    """Gives the path of the exported model in a folder; None for no such file."""
    paths = (os.path.join(folder, name) for name in ONNX_FILES)
    return next((path for path in paths if os.path.isfile(path)), None)


def count_threads() -> int:
    """Gives how many batches the CPU computes at once: ``OMP_NUM_THREADS``, else the cores that this process may use.

    Raises:
        SetupError: the variable is no number of threads.
    """
    # OpenMP's form is a list, a number for each level of nesting.
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if not asked:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise SetupError(f"OMP_NUM_THREADS is {asked}; give a number of threads, at least 1.")
    return int(asked)


def compute_at_once(
    compute: Callable[[Arrays], Outputs],
    batches: Sequence[Arrays],
    *,
    n_threads: int,
    prepare: Callable[[], None] | None = None,
) -> list[Outputs]:
    """Gives the outputs of each batch in their order, computed by so many threads, each of which is prepared first."""
    # Threads last as long as the list: a process may be forked between two lists, and threads do not come along.
    with ThreadPoolExecutor(n_threads, initializer=prepare) as pool:
        return list(pool.map(compute, batches))


def _torch_device(torch: Any, device: str) -> str:
    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if not device.startswith("cuda"):
        return device
    number = int(device.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise SetupError(f"--device {device}: torch sees {torch.cuda.device_count()} GPUs here. Use --device cpu.")
    return f"cuda:{number}"


def _check_bfloat16(torch: Any) -> None:
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise SetupError("--precision bfloat16: this GPU has no instructions for it. Use --precision float32.")


def _onnx_device(runtime: Any, device: str) -> tuple[str, Any]:
    has_gpu = "CUDAExecutionProvider" in runtime.get_available_providers()
    if device == "cpu" or (device == "auto" and not has_gpu):
        return "cpu", "CPUExecutionProvider"
    if not has_gpu:
        raise SetupError(
            f"--device {device}: this onnxruntime has no CUDA. Install onnxruntime-gpu in its place, or use "
            "--device cpu."
        )
    number = int(device.partition(":")[2] or 0)
    # TF32 would cost three digits of the outputs.
    return f"cuda:{number}", ("CUDAExecutionProvider", {"device_id": number, "use_tf32": 0})
