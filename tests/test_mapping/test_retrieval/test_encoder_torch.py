"""Encoders of transformers without an ONNX export, beside plain calls of the model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from kbsource.errors import SetupError
from mapping.retrieval.encoder import open_encoder
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vectors import VectorIndex
from tests.support.passages import CORPUS_CUT, CORPUS_PAGES, cut_release, write_kb
from tests.support.tiny_encoder import encode_corpus
from tests.support.tiny_nli import config, write_tokenizer

TEXTS = ["ada lives in corvo", "bruno", "", "The weather was fine. The weather was fine."]


@pytest.fixture(scope="module", params=["bert", "distilbert"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of drawn weights; DistilBERT knows no kinds of tokens."""
    from transformers import BertModel, DistilBertConfig, DistilBertModel

    folder = tmp_path_factory.mktemp("encoder") / str(request.param)
    n_tokens = len(write_tokenizer(folder))
    torch.manual_seed(5)
    sizes = {"vocab_size": n_tokens, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}
    model: Any = BertModel(config(n_tokens)) if request.param == "bert" else DistilBertModel(DistilBertConfig(**sizes))
    model.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_tokens_are_pooled_as_asked_for(folder: Path, pooling: Any) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder = open_encoder(EncoderOptions(str(folder), pooling=pooling, device="cpu"))
    found, _ = encoder.encode(TEXTS, prefix="")
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        given = [torch.tensor([tokenizer(text)["input_ids"]]) for text in TEXTS]
        rows = [model(input_ids=one).last_hidden_state[0].numpy() for one in given]
    wanted = np.stack([row.mean(axis=0) if pooling == "mean" else row[0] for row in rows])
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True), atol=1e-5)
    said = {name: encoder.facts[name] for name in ("form", "pooling", "dimension")}
    assert said == {"form": "torch", "pooling": pooling, "dimension": 32}
    assert set(encoder.facts["versions"]) == {"torch", "transformers", "tokenizers"}
    assert encoder.computed == {"device": "cpu", "texts_at_once": 1}
    alone = [encoder.encode([text], prefix="")[0].tobytes() for text in TEXTS]
    assert [row.tobytes() for row in found] == alone


def test_what_the_files_do_not_say_is_asked_for(folder: Path) -> None:
    with pytest.raises(SetupError, match="give --pooling cls or --pooling mean"):
        open_encoder(EncoderOptions(str(folder)))


def test_vectors_are_made_and_searched_with_the_same_pooling(tmp_path: Path, folder: Path) -> None:
    passages, vectors = str(tmp_path / "passages"), str(tmp_path / "vectors")
    cut_release(tmp_path / "passages", write_kb(tmp_path, CORPUS_PAGES), cut=CORPUS_CUT)
    encode_corpus(passages, folder, vectors, pooling="mean")
    ((found,),) = VectorIndex(passages, vectors, str(folder)).search(["Sorn\nIt rises in Brack."], 1, "passage")
    assert (found.page_id, found.number) == (3, 1)
    assert found.score == pytest.approx(1, abs=1e-3)


def test_weights_that_are_missing_are_not_drawn(tmp_path: Path, folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    other = shutil.copytree(folder, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    gone = next(name for name in tensors if "layer.1" in name)
    save_file(
        {name: one for name, one in tensors.items() if name != gone}, other / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(SetupError, match=r"lacks 1 weights of its model, such as .*layer\.1"):
        open_encoder(EncoderOptions(str(other), pooling="mean"))
