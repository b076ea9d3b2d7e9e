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
from mapping.retrieval.mentions import open_mention_finder
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vectors import VectorIndex
from tests.support.builds import contents
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
        rows = [model(input_ids=token_ids).last_hidden_state[0].numpy() for token_ids in given]
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
        {name: tensor for name, tensor in tensors.items() if name != gone},
        other / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(SetupError, match=r"lacks 1 of its weights, such as .*layer\.1"):
        open_encoder(EncoderOptions(str(other), pooling="mean"))


def _dpr(folder: Path, name: str, *, seed: int) -> Path:
    """One of DPR's two encoders, of drawn weights, as transformers writes it."""
    import transformers

    n_tokens = len(write_tokenizer(folder))
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    made = transformers.DPRConfig(vocab_size=n_tokens, max_position_embeddings=64, **sizes)
    getattr(transformers, name)(made).save_pretrained(folder)
    return folder


def test_dprs_encoders_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    passages, questions = (
        _dpr(tmp_path / name, name, seed=seed)
        for seed, name in enumerate(("DPRContextEncoder", "DPRQuestionEncoder"), start=5)
    )
    encoder = open_encoder(EncoderOptions(str(passages), device="cpu"))
    facts = {name: encoder.facts[name] for name in ("pooling", "text_form", "normalisation", "max_tokens")}
    assert facts == {"pooling": "pooler", "text_form": "pair", "normalisation": "none", "max_tokens": 64}
    titles, texts = ["ada", "bruno"], ["lives in corvo", "the weather was fine . " * 20]
    tokenizer, model = AutoTokenizer.from_pretrained(passages), DPRContextEncoder.from_pretrained(passages).eval()
    found, n_cut = encoder.encode_passages(list(zip(titles, texts, strict=True)))
    assert n_cut == 1
    with torch.inference_mode():
        for row, title, text in zip(found, titles, texts, strict=True):
            ids = tokenizer(title, text, truncation=True, max_length=64, return_tensors="pt")["input_ids"]
            np.testing.assert_allclose(row, model(input_ids=ids).pooler_output[0], atol=1e-5)
        asked = open_encoder(EncoderOptions(str(questions), device="cpu")).encode_queries(["who lives in corvo"])
        ids = tokenizer("who lives in corvo", return_tensors="pt")["input_ids"]
        other = DPRQuestionEncoder.from_pretrained(questions).eval()
        np.testing.assert_allclose(asked[0], other(input_ids=ids).pooler_output[0], atol=1e-5)

    corpus, vectors = str(tmp_path / "passages"), str(tmp_path / "vectors")
    cut_release(tmp_path / "passages", write_kb(tmp_path, CORPUS_PAGES), cut=CORPUS_CUT)
    encode_corpus(corpus, passages, vectors, query_model=str(questions))
    encode_corpus(corpus, passages, f"{vectors}-2", query_model=str(questions), workers=2)
    assert contents(Path(vectors)) == contents(Path(f"{vectors}-2"))
    ((best,),) = VectorIndex(corpus, vectors, str(questions)).search(["who lives in corvo"], 1, "passage")
    assert best.score != 0
    with pytest.raises(SetupError, match="leave out --pooling"):
        open_encoder(EncoderOptions(str(passages), pooling="cls"))


def test_a_pooler_is_read_where_it_is_asked_for(folder: Path) -> None:
    if json.loads((folder / "config.json").read_text())["model_type"] != "bert":
        pytest.skip("DistilBERT has no pooler")
    from transformers import AutoTokenizer, BertModel

    encoder = open_encoder(EncoderOptions(str(folder), pooling="pooler", text_form="pair", device="cpu"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = tokenizer("ada", "lives in corvo", return_tensors="pt")["input_ids"]
        wanted = model(input_ids=ids).pooler_output[0]
    np.testing.assert_allclose(encoder.encode_passages([("ada", "lives in corvo")])[0][0], wanted, atol=1e-5)


def test_a_token_classifier_is_run_by_pytorch(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertForTokenClassification

    folder = tmp_path / "tagger"
    n_tokens = len(write_tokenizer(folder))
    torch.manual_seed(5)
    model = BertForTokenClassification(config(n_tokens, labels=("O", "PER", "LOC"))).eval()
    model.save_pretrained(folder)
    text = "ada lives in corvo . the weather was fine ."
    tokenizer = AutoTokenizer.from_pretrained(folder)
    given = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    with torch.inference_mode():
        labels = model(input_ids=given["input_ids"]).logits[0].argmax(dim=-1).tolist()[1:-1]
    words = text.split()  # each is a token
    assert len(words) == len(labels)
    finder = open_mention_finder(str(folder), device="cpu")
    (found,) = finder.find([text])
    marked = {at for span in found for at in range(span.start_char, span.end_char)}
    starts = [sum(len(word) + 1 for word in words[:number]) for number in range(len(words))]
    assert [start in marked for start in starts] == [label > 0 for label in labels]
    assert len(found) > 0
    assert finder.find([text, "ada"])[0] == found
