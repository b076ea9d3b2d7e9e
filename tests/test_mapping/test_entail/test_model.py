"""NLI models without PyTorch: labels, encoding, and a model for ONNX Runtime that the tests lay out."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.entail.model import (
    Arrays,
    CrossEncoder,
    Outputs,
    PairEncoder,
    compute_at_once,
    count_threads,
    model_facts,
    open_model,
)
from mapping.entail.signal import UNJUDGED_REASONS, ModelLabels, ModelOptions, Pair, UnjudgedPair, Verdict, read_labels
from tests.support.installed import skip_without
from tests.support.tiny_nli import facts, overlap_model, write_config, write_tokenizer

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("entailment", "neutral", "contradiction"), ModelLabels(0, 1, 2, 3)),
        (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), ModelLabels(2, 1, 0, 3)),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), ModelLabels(0, 2, 1, 3)),
        (("not_entailment", "entailment"), ModelLabels(1, None, None, 2)),
        (("entailment", "Non-Entailment"), ModelLabels(0, None, None, 2)),
        (("contradiction", "entailment"), ModelLabels(1, None, 0, 2)),
    ],
)
def test_labels_are_told_by_name_whatever_their_order(names: tuple[str, ...], labels: ModelLabels) -> None:
    assert read_labels(dict(enumerate(names)), None, model="m") == labels


@pytest.mark.parametrize(
    ("names", "given_names", "complaint"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), None, "--label-names entailment,neutral,contradiction"),
        (("LABEL_0", "LABEL_1"), None, "--label-names entailment,not_entailment"),
        (("positive", "negative"), None, "'positive' means none of entailment"),
        (("neutral", "contradiction"), None, "one must be entailment"),
        (("entailment", "entails"), None, "each may occur only once"),
        (("entailment",), None, "one must be entailment"),
        (
            ("LABEL_0", "LABEL_1", "LABEL_2"),
            ("entailment", "neutral"),
            "names 2 outputs (entailment, neutral); m has 3",
        ),
    ],
)
def test_labels_that_say_nothing_are_refused_with_the_remedy(
    names: tuple[str, ...], given_names: tuple[str, ...] | None, complaint: str
) -> None:
    with pytest.raises(SetupError) as caught:
        read_labels(dict(enumerate(names)), given_names, model="m")
    assert complaint in str(caught.value)


def test_given_names_stand_in_for_those_of_the_config() -> None:
    names = dict(enumerate(("LABEL_0", "LABEL_1", "LABEL_2")))
    assert read_labels(names, ("neutral", "entailment", "contradiction"), model="m") == ModelLabels(1, 0, 2, 3)


@pytest.mark.parametrize(
    ("verdict", "label"),
    [
        (Verdict(0.5, 0.3, 0.2), "entailment"),
        (Verdict(0.2, 0.3, 0.5), "contradiction"),
        (Verdict(0.4, 0.4, 0.2), "entailment"),
        (Verdict(0.5, None, None), "entailment"),
        (Verdict(0.4, None, None), "not_entailment"),
        (Verdict(0.4, None, 0.6), "contradiction"),
    ],
)
def test_the_likeliest_label_is_named(verdict: Verdict, label: str) -> None:
    assert verdict.label == label


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"backend": "jax"}, "--backend is jax. Choose one of torch, onnx."),
        ({"device": "tpu"}, "--device is tpu. Write it like auto, cpu"),
        ({"device": "cpu:1"}, "--device is cpu:1"),
        ({"device": "cuda:x"}, "--device is cuda:x"),
        ({"precision": "float16"}, "--precision is float16. Choose one of float32, bfloat16."),
        ({"precision": "bfloat16", "backend": "onnx"}, "--precision bfloat16 works only with --backend torch"),
        ({"max_tokens": 7}, "--max-tokens is 7"),
        ({"batch_pairs": 0}, "--batch-pairs is 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint):
        ModelOptions("model", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return overlap_model(tmp_path_factory.mktemp("overlap"), max_tokens=64)


@pytest.fixture(scope="module")
def model(folder: Path) -> CrossEncoder:
    return open_model(ModelOptions(str(folder), backend="onnx", batch_pairs=4))


def test_what_is_said_in_the_same_words_is_entailed(model: CrossEncoder) -> None:
    pairs = [
        Pair("The weather was fine. Ada was born in Arlin.", "Ada was born in Arlin."),
        Pair("Ada was not born in Arlin.", "Ada was born in Arlin."),
        Pair("The weather was fine.", "Ada was born in Arlin."),
    ]
    found = model.judge(pairs)
    assert [verdict.label for verdict in found if isinstance(verdict, Verdict)] == [
        "entailment",
        "contradiction",
        "neutral",
    ]
    assert found[0] == Verdict(0.993307, 0.006693, 0.0)


def test_answers_do_not_depend_on_their_neighbours(model: CrossEncoder) -> None:
    pairs = [pair for pair, _ in facts()]
    assert model.judge(pairs) == [model.judge([pair])[0] for pair in pairs]
    assert model.judge(pairs[::-1]) == model.judge(pairs)[::-1]
    assert model.judge([]) == []


def test_pairs_that_cannot_be_judged_are_refused_with_the_reason(model: CrossEncoder) -> None:
    good = Pair("Ada was born in Arlin.", "Ada was born in Arlin.")
    found = model.judge([Pair("x", " "), good, Pair("\n", "x"), Pair("x", "Ada " * 61), Pair("x " * 99, "Ada " * 60)])
    assert found[0] == UnjudgedPair("empty_hypothesis", "")
    assert found[2] == UnjudgedPair("empty_premise", "")
    assert found[3] == UnjudgedPair("hypothesis_too_long", "61 tokens; 60 fit")
    assert isinstance(found[1], Verdict)
    assert isinstance(found[4], Verdict)
    assert {verdict.reason for verdict in found if isinstance(verdict, UnjudgedPair)} == set(UNJUDGED_REASONS)


def encoded_text(encoder: PairEncoder, tokenizer: Any, pair: Pair) -> tuple[str, str]:
    """Premise and hypothesis as a model sees them."""
    (batch,), refused = encoder.encode([pair])
    assert not refused
    ids, types = batch.arrays["input_ids"][0].tolist(), batch.arrays["token_type_ids"][0].tolist()
    first = [token_id for token_id, type_ in zip(ids, types, strict=True) if type_ == 0]
    second = [token_id for token_id, type_ in zip(ids, types, strict=True) if type_ == 1]
    return tokenizer.decode(first, skip_special_tokens=True), tokenizer.decode(second, skip_special_tokens=True)


@pytest.mark.parametrize(
    ("core", "premise"),
    [
        (None, "a b c d"),
        ("a b", "a b c d"),
        ("e", "d e f g"),
        ("d e", "c d e f"),
        ("j", "g h i j"),
        ("b c d e f g", "b c d e"),
    ],
)
def test_a_premise_is_cut_farthest_from_its_core(tmp_path: Path, core: str | None, premise: str) -> None:
    tokenizer = write_tokenizer(tmp_path)
    text = "a b c d e f g h i j"
    place = None if core is None else (text.index(core), text.index(core) + len(core))
    # four tokens are left beside three marks and five of the hypothesis
    found = encoded_text(
        PairEncoder(tokenizer, max_tokens=12, batch_pairs=8), tokenizer, Pair(text, "v w x y z", place)
    )
    assert found == (premise, "v w x y z")


def test_a_premise_begins_with_a_whole_word(tmp_path: Path) -> None:
    from transformers import BertTokenizerFast

    write_tokenizer(tmp_path)
    with (tmp_path / "vocab.txt").open("a", encoding="utf-8") as vocabulary:
        vocabulary.write("##umbrella\n")
    tokenizer = BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"))
    # Of four tokens that fit, the first would be the later piece of a word, which by itself has eight.
    pair = Pair("a xumbrella b c d e", "v w x y z", (12, 15))
    found = encoded_text(PairEncoder(tokenizer, max_tokens=12, batch_pairs=8), tokenizer, pair)
    assert found == ("b c d", "v w x y z")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@given(st.data(), st.lists(st.text(alphabet="abc \u00e9.", max_size=40), min_size=1, max_size=12))
def test_the_hypothesis_is_never_cut(tokenizer: Any, data: st.DataObject, texts: list[str]) -> None:
    pairs = [
        Pair(text, data.draw(st.text(alphabet="abc \u00e9.", max_size=12)), data.draw(st.sampled_from((None, (0, 3)))))
        for text in texts
    ]
    n_most = data.draw(st.integers(8, 24))
    n_together = data.draw(st.sampled_from((None, 1, 20, 40)))

    encoder = PairEncoder(tokenizer, max_tokens=n_most, batch_pairs=3, batch_tokens=n_together)
    batches, refused = encoder.encode(pairs)

    seen = [place for batch in batches for place in batch.places]
    assert sorted([*seen, *refused]) == list(range(len(pairs)))
    lengths = [int(row.sum()) for batch in batches for row in batch.arrays["attention_mask"]]
    assert lengths == sorted(lengths, reverse=True)
    assert max(lengths, default=0) <= n_most
    for batch in batches:
        ((n_pairs, n_tokens),) = {values.shape for values in batch.arrays.values()}
        assert n_pairs == 1 or (n_pairs <= 3 and n_pairs * n_tokens <= (n_together or 3 * n_most))
        for place, ids, types, mask in zip(
            batch.places,
            *(batch.arrays[name] for name in ("input_ids", "token_type_ids", "attention_mask")),
            strict=True,
        ):
            whole = tokenizer(pairs[place].hypothesis, add_special_tokens=False)["input_ids"]
            assert ids[(types == 1) & (mask == 1)].tolist() == [*whole, tokenizer.sep_token_id]


def test_a_batch_is_filled_as_far_as_its_tokens_go(tokenizer: Any) -> None:
    encoder = PairEncoder(tokenizer, max_tokens=64, batch_pairs=5, batch_tokens=30)
    # six tokens each, ten of them, and six again: three marks and those of the text
    batches, _ = encoder.encode([*[Pair("a b", "c")] * 4, Pair("a b c d e", "f g"), *[Pair("b a", "c")] * 5])
    assert [batch.places for batch in batches] == [(4,), (0, 1, 2, 3, 5), (6, 7, 8, 9)]


def test_batches_are_computed_at_once_and_given_in_their_order() -> None:
    meeting = threading.Barrier(2)
    prepared = []

    def compute(arrays: Arrays) -> Outputs:
        # Nobody gets past this alone.
        meeting.wait(timeout=30)
        return arrays["x"].astype(np.float32)

    batches = [{"x": np.array([[number]])} for number in range(6)]
    found = compute_at_once(compute, batches, n_threads=2, prepare=lambda: prepared.append(threading.get_ident()))

    assert [int(outputs[0, 0]) for outputs in found] == list(range(6))
    assert len(set(prepared)) == 2
    assert threading.get_ident() not in prepared


@pytest.mark.parametrize(("value", "n_threads"), [("3", 3), ("4,2", 4), (" 1 ", 1)])
def test_the_environment_says_how_many_threads(monkeypatch: pytest.MonkeyPatch, value: str, n_threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert count_threads() == n_threads


@pytest.mark.parametrize("value", ["0", "many", "-1"])
def test_a_senseless_number_of_threads_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path, value: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    with pytest.raises(SetupError, match=f"OMP_NUM_THREADS is {value}; give a number"):
        open_model(ModelOptions(str(folder), backend="onnx"))


def test_the_manifest_names_a_model_without_its_path(folder: Path) -> None:
    found = model_facts(ModelOptions(str(folder), backend="onnx"))
    assert found["model"] == folder.name
    assert found["labels"] == {"entailment": 2, "neutral": 1, "contradiction": 0, "n_outputs": 3}
    assert found["max_tokens"] == 64
    assert len(found["weights_sha256"]) == 64
    assert set(found["versions"]) == {"transformers", "tokenizers", "onnxruntime"}


def test_a_folder_that_is_not_right_is_refused_with_the_remedy(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "model.onnx").unlink()
    with pytest.raises(SetupError, match="--export-onnx FOLDER"):
        open_model(ModelOptions(str(tmp_path / "m"), backend="onnx"))
    with pytest.raises(SetupError, match=r"has no \*\.safetensors"):
        open_model(ModelOptions(str(tmp_path / "m")))
    (tmp_path / "m" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(SetupError, match="its weights cannot be opened"):
        open_model(ModelOptions(str(tmp_path / "m"), backend="onnx"))
    write_config(tmp_path / "m", ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(SetupError, match="--label-names"):
        open_model(ModelOptions(str(tmp_path / "m"), backend="onnx"))
    (tmp_path / "m" / "config.json").unlink()
    with pytest.raises(SetupError, match=r"no config\.json"):
        open_model(ModelOptions(str(tmp_path / "m"), backend="onnx"))
    with pytest.raises(SetupError, match="no such folder"):
        open_model(ModelOptions(str(tmp_path / "nothing"), backend="onnx"))


def test_a_model_brings_no_code_of_its_own(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "own.py").write_text("raise AssertionError('code was run')\n")
    (tmp_path / "m" / "config.json").write_text(
        '{"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}, "id2label": {"0": "entailment"}}'
    )
    with pytest.raises(SetupError, match="cannot be opened as a cross-encoder"):
        open_model(ModelOptions(str(tmp_path / "m"), backend="onnx"))


def test_longer_pairs_than_the_model_takes_cannot_be_asked_for(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"--max-tokens is 65; .* accepts 64"):
        open_model(ModelOptions(str(folder), backend="onnx", max_tokens=65))


def test_verdicts_of_a_quantised_model_do_not_depend_on_the_others_in_a_list(tmp_path: Path) -> None:
    model = open_model(ModelOptions(str(overlap_model(tmp_path, is_quantised=True)), backend="onnx"))
    pairs = [pair for pair, _ in facts()]
    assert model.judge(pairs) == [model.judge([pair])[0] for pair in pairs]


@pytest.mark.parametrize("shape", [(1, 32), (1, "tokens"), (4, 32), (4, "tokens"), ("pairs", 32)])
def test_a_graph_of_a_fixed_form_says_the_same_as_one_that_takes_any(
    shape: tuple[str | int, ...], tmp_path: Path
) -> None:
    pairs = [*(pair for pair, _ in facts()[:30]), Pair(" ".join(["Ada lives in Corvo."] * 12), "Ada lives in Corvo.")]
    wanted = open_model(ModelOptions(str(overlap_model(tmp_path / "any")), backend="onnx", max_tokens=32)).judge(pairs)
    options = ModelOptions(str(overlap_model(tmp_path / "fixed", shape=shape)), backend="onnx", max_tokens=32)
    assert open_model(options).judge(pairs) == wanted


def test_a_graph_of_a_fixed_length_takes_no_longer_pairs(tmp_path: Path) -> None:
    folder = str(overlap_model(tmp_path, shape=("pairs", 32)))
    assert model_facts(ModelOptions(folder, backend="onnx"))["max_tokens"] == 32
    with pytest.raises(SetupError, match=r"--max-tokens is 64; .* accepts 32"):
        open_model(ModelOptions(folder, backend="onnx", max_tokens=64))


def test_a_file_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    folder = overlap_model(tmp_path)
    for content in (b"", b"noise" * 20, b"\x3a\xff\xff\x03", (folder / "model.onnx").read_bytes()[:300]):
        (folder / "model.onnx").write_bytes(content)
        with pytest.raises(SetupError, match=r"model\.onnx: its weights cannot be opened"):
            open_model(ModelOptions(str(folder), backend="onnx"))
