"""A small cross-encoder, trained here: PyTorch against ONNX Runtime and against transformers' own pipeline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbsource.errors import SetupError
from mapping.entail.model import (
    FIRST_TOKEN_MODELS,
    CrossEncoder,
    OnnxComputer,
    PairEncoder,
    TorchComputer,
    export_onnx,
    keep_first_token,
    open_model,
)
from mapping.entail.signal import Backend, ModelOptions, Pair, Verdict
from tests.support.installed import skip_without
from tests.support.tiny_nli import LABELS, config, facts, trained_model, write_tokenizer

skip_without("torch", "transformers", "onnxruntime", "onnxscript", reason="needs kbsource[nli] and onnxscript")

TOLERANCE = 1e-5
PAIRS = [pair for pair, _ in facts()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_model(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def model(folder: Path) -> CrossEncoder:
    return open_model(ModelOptions(str(folder), device="cpu"))


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exported") / "model"
    return Path(export_onnx(ModelOptions(str(folder)), str(target))).parent


def verdicts(model: CrossEncoder, pairs: list[Pair]) -> list[Verdict]:
    found = model.judge(pairs)
    assert all(isinstance(verdict, Verdict) for verdict in found)
    return [verdict for verdict in found if isinstance(verdict, Verdict)]


def apart(verdicts_of_one: list[Verdict], other: list[Verdict]) -> float:
    return max(
        abs(left - right)
        for a, b in zip(verdicts_of_one, other, strict=True)
        for left, right in zip(a, b, strict=True)
        if left is not None and right is not None
    )


def test_entailment_is_told_from_contradiction(model: CrossEncoder) -> None:
    assert [verdict.label for verdict in verdicts(model, PAIRS)] == [label for _, label in facts()]


def test_both_backends_give_the_same_numbers(model: CrossEncoder, exported: Path) -> None:
    other = open_model(ModelOptions(str(exported), backend="onnx", device="cpu"))
    assert apart(verdicts(model, PAIRS), verdicts(other, PAIRS)) <= TOLERANCE


@pytest.mark.parametrize("batch_pairs", [1, 7, 64])
def test_the_size_of_batches_does_not_count(model: CrossEncoder, folder: Path, batch_pairs: int) -> None:
    other = open_model(ModelOptions(str(folder), device="cpu", batch_pairs=batch_pairs))
    assert apart(verdicts(model, PAIRS), verdicts(other, PAIRS)) <= TOLERANCE


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_the_number_of_cores_does_not_count_at_all(
    folder: Path, exported: Path, monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    import torch

    place = str(folder if backend == "torch" else exported)
    encoder = PairEncoder(write_tokenizer(exported.parent / "words"), max_tokens=64, batch_pairs=8)
    batches = [batch.arrays for batch in encoder.encode(PAIRS)[0]]
    computer: type[TorchComputer | OnnxComputer] = TorchComputer if backend == "torch" else OnnxComputer
    found = []
    n_own = torch.get_num_threads()
    torch.set_num_threads(2)
    for n_threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
        found.append(np.concatenate(computer(place, "cpu").outputs(batches)))
    n_after = torch.get_num_threads()
    torch.set_num_threads(n_own)

    assert len(batches) > 3
    assert found[0].tobytes() == found[1].tobytes()
    assert n_after == 2


def test_the_pipeline_of_transformers_gives_the_same_numbers(model: CrossEncoder, folder: Path) -> None:
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(folder), device="cpu")
    found = []
    for pair in PAIRS:
        scores = {
            verdict["label"]: verdict["score"]
            for verdict in classify({"text": pair.premise, "text_pair": pair.hypothesis}, top_k=None)
        }
        found.append(Verdict(**scores))
    assert apart(verdicts(model, PAIRS), found) <= TOLERANCE


def test_the_order_of_the_outputs_does_not_count(model: CrossEncoder, folder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder, tmp_path / "m")
    weights = load_file(tmp_path / "m" / "model.safetensors")
    order = [2, 0, 1]
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name][order].copy()
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    value = json.loads((tmp_path / "m" / "config.json").read_text())
    value["id2label"] = {str(place): LABELS[number].upper() for place, number in enumerate(order)}
    value["label2id"] = {name: int(place) for place, name in value["id2label"].items()}
    (tmp_path / "m" / "config.json").write_text(json.dumps(value))
    assert apart(verdicts(model, PAIRS), verdicts(open_model(ModelOptions(str(tmp_path / "m"))), PAIRS)) <= TOLERANCE


def test_a_model_of_two_labels_knows_no_contradiction(tmp_path: Path) -> None:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = write_tokenizer(tmp_path)
    labels = ("not_entailment", "entailment")
    BertForSequenceClassification(config(len(tokenizer), labels=labels)).save_pretrained(tmp_path)
    found = verdicts(open_model(ModelOptions(str(tmp_path))), PAIRS[:3])
    assert all(
        (verdict.neutral, verdict.contradiction) == (None, None) and 0 <= verdict.entailment <= 1 for verdict in found
    )


def test_pickled_weights_are_not_read(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").rename(tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(SetupError, match=r"has no \*\.safetensors"):
        open_model(ModelOptions(str(tmp_path / "m")))


def test_broken_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"\0" * 99)
    with pytest.raises(SetupError, match="its weights cannot be opened"):
        open_model(ModelOptions(str(tmp_path / "m")))


def test_an_export_overwrites_nothing(exported: Path, folder: Path) -> None:
    with pytest.raises(SetupError, match="not empty"):
        export_onnx(ModelOptions(str(folder)), str(exported))


def test_a_gpu_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(SetupError, match="--device cpu"):
        open_model(ModelOptions(str(folder), device="cuda:99"))


def gpu_or_skip() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")


def test_a_gpu_gives_the_same_numbers(model: CrossEncoder, folder: Path) -> None:
    gpu_or_skip()
    other = open_model(ModelOptions(str(folder), device="cuda"))
    assert apart(verdicts(model, PAIRS), verdicts(other, PAIRS)) <= 1e-4


def test_a_gpu_has_bfloat16_for_all_layers(model: CrossEncoder, folder: Path) -> None:
    gpu_or_skip()
    lower = verdicts(open_model(ModelOptions(str(folder), device="cuda", precision="bfloat16")), PAIRS)
    assert [verdict.label for verdict in lower] == [label for _, label in facts()]
    assert TOLERANCE < apart(verdicts(model, PAIRS), lower) < 0.05


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of RoBERTa's kind, as the default one is: pieces of bytes, no token types, other positions."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaForSequenceClassification, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("roberta")
    pieces = ByteLevelBPETokenizer()
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    texts = [text for pair in PAIRS for text in (pair.premise, pair.hypothesis)]
    pieces.train_from_iterator(texts, vocab_size=400, special_tokens=marks, show_progress=False)
    pieces.save_model(str(folder))
    paths = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
    tokenizer = RobertaTokenizerFast(**paths, model_max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    settings = RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=66, id2label=labels, initializer_range=0.3, **shape
    )
    RobertaForSequenceClassification(settings).save_pretrained(folder)
    return folder


def test_models_of_another_kind_agree_too(roberta: Path, tmp_path: Path) -> None:
    from transformers import pipeline

    path = export_onnx(ModelOptions(str(roberta)), str(tmp_path / "onnx"))
    classify = pipeline("text-classification", model=str(roberta), device="cpu")
    long = Pair("Nobody knows why. " * 40, PAIRS[0].hypothesis)
    # As the pipeline cuts: at the end of the premise.
    found = [
        Verdict(
            **{
                verdict["label"]: verdict["score"]
                for verdict in classify(
                    {"text": pair.premise, "text_pair": pair.hypothesis},
                    top_k=None,
                    truncation="only_first",
                    max_length=64,
                )
            }
        )
        for pair in (*PAIRS, long)
    ]

    of_torch = verdicts(open_model(ModelOptions(str(roberta), device="cpu")), [*PAIRS, long])
    other = verdicts(open_model(ModelOptions(str(Path(path).parent), backend="onnx", device="cpu")), [*PAIRS, long])

    assert apart(of_torch, found) <= TOLERANCE
    assert apart(of_torch, other) <= TOLERANCE
    assert len(set(of_torch)) > 10


ENCODER = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
    "num_labels": 3,
    "pad_token_id": 1,
    "initializer_range": 0.3,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
OF_DEBERTA_V3 = {**RELATIVE, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True}
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("albert", {"embedding_size": 16}),
    ("bart", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "eos_token_id": 2, "encoder_ffn_dim": 64}),
    ("distilbert", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
    ("mpnet", {}),
    ("t5", {"d_model": 32, "d_ff": 64, "d_kv": 16, "num_heads": 2, "decoder_start_token_id": 0, "eos_token_id": 2}),
]
KINDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {"embedding_size": 16} if name == "electra" else {}) for name in sorted(FIRST_TOKEN_MODELS)),
    ("deberta", RELATIVE),
    ("deberta-v2", OF_DEBERTA_V3),
    ("deberta-v2", {**OF_DEBERTA_V3, "conv_kernel_size": 3}),
    *OTHERS,
]


def outputs_of(model: Any) -> Any:
    import torch

    torch.manual_seed(1)
    ids = torch.randint(3, 99, (4, 17))
    mask = torch.ones_like(ids)
    mask[1, 9:], ids[1, 9:], ids[:, 0] = 0, 1, 2
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=mask).logits


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_the_first_token_alone_gives_the_outputs_of_any_model(kind: str, settings: dict[str, Any]) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **{**ENCODER, **settings})).eval()
    before = outputs_of(model)

    is_shortened = keep_first_token(model)
    seen = []
    if is_shortened:
        last = model.base_model.encoder.layer[-1].intermediate
        last.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0].shape[1]))
    after = outputs_of(model)

    assert is_shortened == (kind in FIRST_TOKEN_MODELS)
    assert seen == [1] * is_shortened
    assert float((after - before).abs().max()) <= TOLERANCE * float(before.abs().max())
    assert float(before.std(dim=0).min()) > 100 * TOLERANCE


def test_bfloat16_gives_the_same_labels_and_nearly_the_same_numbers(model: CrossEncoder, folder: Path) -> None:
    lower = verdicts(open_model(ModelOptions(str(folder), device="cpu", precision="bfloat16")), PAIRS)
    assert [verdict.label for verdict in lower] == [label for _, label in facts()]
    assert TOLERANCE < apart(verdicts(model, PAIRS), lower) < 0.05


def test_one_layer_is_computed_whole() -> None:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    settings = {**ENCODER, **OF_DEBERTA_V3, "conv_kernel_size": 3, "num_hidden_layers": 1}
    assert not keep_first_token(
        AutoModelForSequenceClassification.from_config(AutoConfig.for_model("deberta-v2", **settings))
    )


def test_a_model_without_what_judges_is_refused(tmp_path: Path, folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    other = shutil.copytree(folder, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("classifier")}
    save_file(kept, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(SetupError, match=r"lacks 2 of its weights, such as classifier\.bias; download the model again"):
        open_model(ModelOptions(str(other), device="cpu"))
