"""Sentence encoders that tests make for themselves: a vector a token, drawn by a seed, and nothing in between."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mapping.retrieval.system_options import EncoderOptions
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.jobs.vectors import make_vectors
from pipelines.options.vectors import VectorsOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.tiny_nli import config, write_tokenizer

DIMENSION = 12
LABELS = ("O", "B-PER", "I-PER", "LOC")
"""Labels of a tagger."""


def token_table(n_tokens: int, dimension: int = DIMENSION, *, seed: int = 7) -> npt.NDArray[np.float32]:
    """The vectors of all tokens."""
    return np.random.default_rng(seed).standard_normal((n_tokens, dimension), dtype=np.float32)


def tiny_encoder(
    folder: Path,
    *,
    texts: Iterable[str] = (),
    further_inputs: Iterable[str] = (),
    dimension: int = DIMENSION,
    further_tokens: Iterable[str] = (),
    seed: int = 7,
    **files: Any,
) -> Path:
    """Writes an ONNX encoder whose tokens have the vectors of ``token_table``, with its tokenizer.

    Args:
        texts: whose words are tokens.
        further_inputs: of the graph, which it does not look at.
        files: what sentence-transformers has beside it, by name; ``pooling`` is that of ``1_Pooling``.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = token_table(len(write_tokenizer(folder, texts=texts, further=further_tokens)), dimension, seed=seed)
    names = ("input_ids", "attention_mask", *further_inputs)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ("texts", "tokens")) for name in names]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ("texts", "tokens", dimension))]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, [numpy_helper.from_array(table, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    said = {"pooling": {"pooling_mode_mean_tokens": True}, "sentence_bert_config": {"max_seq_length": 64}} | files
    for name, value in said.items():
        path = folder / ("1_Pooling/config.json" if name == "pooling" else f"{name}.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return folder


def tagger(folder: Path, words: Mapping[str, str], *, max_tokens: int = 64, labels: tuple[str, ...] = LABELS) -> Path:
    """Writes an ONNX token classifier that gives each of some words its label, and every other token O."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    tokenizer = write_tokenizer(folder, texts=words, max_tokens=max_tokens)
    table = np.zeros((len(tokenizer), len(labels)), np.float32)
    table[:, 0] = 1
    for word, label in words.items():
        table[tokenizer.convert_tokens_to_ids(word), labels.index(label)] = 2
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("texts", "tokens"))
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("texts", "tokens", len(labels)))]
    node = helper.make_node("Gather", ["table", "input_ids"], ["logits"])
    graph = helper.make_graph([node], "tagger", inputs, outputs, [numpy_helper.from_array(table, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    made = config(len(tokenizer), labels=labels, max_tokens=max_tokens).to_dict()
    (folder / "config.json").write_text(json.dumps(made | {"architectures": ["BertForTokenClassification"]}))
    return folder


def encode_corpus(
    passages: Path | str,
    model: Path | str,
    output: Path | str,
    *,
    runner: str = "local",
    workers: int | None = None,
    max_tokens: int | None = None,
    pooling: Any = None,
    text_form: Any = None,
    **given: Any,
) -> Any:
    """Makes the vectors of a corpus; what is given goes into the options."""
    encoder = EncoderOptions(str(model), device="cpu", max_tokens=max_tokens, pooling=pooling, text_form=text_form)
    options = VectorsOptions(str(passages), encoder=encoder, output=str(output), **given)
    flags = beam_flags(runner, workers=workers, beam_args=())
    made: MadeRelease[Any] = make_vectors(options, flags=flags, progress=Progress(io.StringIO()))
    return made
