"""Folders of models in which one file is damaged, of another kind, or has another type somewhere: told in one line."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kbsource.errors import SetupError
from mapping.entail.model import model_facts, open_model
from mapping.entail.signal import ModelOptions, Pair
from mapping.retrieval.encoder import open_encoder
from mapping.retrieval.system_options import EncoderOptions, RerankerOptions
from mapping.retrieval.systems import Reranker
from tests.support.installed import skip_without
from tests.support.tiny_encoder import tiny_encoder
from tests.support.tiny_nli import LABELS, overlap_model, write_config

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")

PAIRS = [Pair("Ada lives in Arlin.", "Ada lives in Arlin."), Pair("a", "b")]
WRONG_VALUES = (None, -1, "x", [], {"a": 1}, 10**30)
DOCUMENTS = ("[1]", "null", "7", '"x"', "{}", "[" * 100_000 + "]" * 100_000, '{"a":', "\udcff{")
MOST_CHARS = 1000


def judge(folder: Path) -> None:
    options = ModelOptions(str(folder), backend="onnx")
    open_model(options).judge(PAIRS)
    model_facts.cache_clear()
    model_facts(options)


def rerank(folder: Path) -> None:
    Reranker(RerankerOptions(str(folder), device="cpu")).scores("a", [("b", "c"), ("d", "")])


def encode(folder: Path) -> None:
    open_encoder(EncoderOptions(str(folder), device="cpu")).encode(["a river", "b"], prefix="")


def static_encoder(folder: Path, *, n_missing: int = 0) -> Path:
    from safetensors.numpy import save_file

    tiny_encoder(folder)
    (folder / "model.onnx").unlink()
    n_tokens = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
    save_file({"embeddings": np.ones((n_tokens - n_missing, 4), np.float32)}, folder / "model.safetensors")
    return folder


USES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None]]] = {
    "nli": (overlap_model, judge),
    "ranker": (lambda folder: overlap_model(folder, is_ranker=True), rerank),
    "encoder": (tiny_encoder, encode),
    "static": (static_encoder, encode),
}


def changes(path: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """What may be wrong with a file."""
    content = path.read_bytes()
    yield "missing", os.remove
    yield "folder", lambda model_file: (model_file.unlink(), model_file.mkdir())
    for name, other in (
        ("empty", b""),
        ("half", content[: len(content) // 2]),
        ("noise", random.Random(1).randbytes(3000)),
    ):
        yield name, lambda model_file, other=other: model_file.write_bytes(other)
    if path.suffix != ".json":
        return
    for text in DOCUMENTS:
        yield text[:9], lambda model_file, text=text: model_file.write_text(text, "utf-8", "surrogateescape")
    values = json.loads(content)
    for key in values:
        for wrong in WRONG_VALUES:
            changed = json.dumps({**values, key: wrong})
            yield f"{key}={wrong!r:.20}", lambda model_file, changed=changed: model_file.write_text(changed)


def told(use: Callable[[Path], None], folder: Path) -> str | None:
    """What is wrong with a use; None where it is a short line, or nothing."""
    try:
        use(folder)
    except SetupError as error:
        return None if len(str(error)) <= MOST_CHARS and "\n" not in str(error) else f"says {str(error)[:200]}"
    return None


@pytest.mark.slow  # each folder is opened hundreds of times
@pytest.mark.parametrize("kind", USES)
def test_one_wrong_file_of_a_model_is_told_in_a_line(kind: str, tmp_path: Path) -> None:
    make, use = USES[kind]
    whole = make(tmp_path / "whole")
    use(whole)
    wrong = []
    for path in sorted(path for path in whole.rglob("*") if path.is_file()):
        for name, change in changes(path):
            copy = shutil.copytree(whole, tmp_path / "copy")
            change(copy / path.relative_to(whole))
            if (said := told(use, copy)) is not None:
                wrong.append((path.name, name, said))
            shutil.rmtree(copy)
    assert wrong == []


def test_a_model_of_another_kind_is_told(tmp_path: Path) -> None:
    nli, encoder = (
        overlap_model(tmp_path / "nli"),
        tiny_encoder(tmp_path / "encoder", further_inputs=["token_type_ids"]),
    )
    for folder, other in ((tmp_path / "a", nli), (tmp_path / "b", encoder)):
        shutil.copytree(other, folder)
    shutil.copyfile(encoder / "model.onnx", tmp_path / "a" / "model.onnx")
    shutil.copyfile(nli / "model.onnx", tmp_path / "b" / "model.onnx")

    with pytest.raises(SetupError, match="does not return one row of outputs for each pair"):
        judge(tmp_path / "a")
    encode(tmp_path / "b")  # its outputs are vectors of another meaning, which nothing shows

    write_config(nli, (*LABELS, "entailed not"))
    with pytest.raises(SetupError, match="means none of entailment"):
        judge(nli)
    write_config(nli, ("entailment", "contradiction"))
    with pytest.raises(SetupError, match=r"has 3 outputs, and its config\.json names 2"):
        judge(nli)


def test_static_vectors_that_lack_tokens_are_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has no vector for some tokens"):
        encode(static_encoder(tmp_path, n_missing=1))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("modules.json", {"": 7}, r"modules\.json is not a list"),
        ("modules.json", ["x"], r"modules\.json is not a list"),
        ("config_sentence_transformers.json", {"prompts": ["query"]}, "prompts in"),
        ("config_sentence_transformers.json", {"prompts": {"query": 7}}, "prompts in"),
        ("sentence_bert_config.json", {"max_seq_length": True}, "is not a number of tokens"),
        ("sentence_bert_config.json", {"max_seq_length": 10**30}, "is not a number of tokens"),
    ],
)
def test_what_sentence_transformers_writes_otherwise_is_told(
    name: str, value: object, said: str, tmp_path: Path
) -> None:
    tiny_encoder(tmp_path)
    (tmp_path / name).write_text(json.dumps(value))
    with pytest.raises(SetupError, match=said):
        encode(tmp_path)


def test_a_model_of_countless_layers_is_refused(tmp_path: Path) -> None:
    folder = overlap_model(tmp_path / "nli")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, "decoder": {"num_layers": 10**9}}))
    with pytest.raises(SetupError, match="num_layers is 1000000000, and at most 1,000 layers are supported"):
        judge(folder)
