"""Cross-encoders for natural-language inference that tests make for themselves: small, on disk, no network.

``trained_model`` is a BERT that learns from sentences made by templates which fact entails or contradicts which; it
needs torch. ``overlap_model`` is a graph for ONNX Runtime, laid out by hand: what is said in the same words is
entailed, unless one of the two says ``not``. As a ranker it gives the share of the first text's words that stand in the
second.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from mapping.entail.signal import Pair

LABELS = ("contradiction", "neutral", "entailment")
PEOPLE = ("Ada", "Bruno")
PLACES = ("Arlin", "Corvo")
FACTS = ("{who} was born in {where}.", "{who} lives in {where}.")
CONTEXT = ("", "The weather was fine.", "Nobody knows why.")
NEGATION = "not"

_MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SEEDS = (2, 3, 4)
_ROUND, _MOST_ROUNDS = 50, 12


def facts() -> list[tuple[Pair, str]]:
    """Every fact, in every context, against itself, another place and other people."""
    pairs = []
    for (who, where), (other, elsewhere), fact, context in product(
        product(PEOPLE, PLACES), product(PEOPLE, PLACES), FACTS, CONTEXT
    ):
        label = "neutral" if who != other else "entailment" if where == elsewhere else "contradiction"
        premise = f"{context} {fact.format(who=who, where=where)}".strip()
        pairs.append((Pair(premise, fact.format(who=other, where=elsewhere)), label))
    return pairs


def write_tokenizer(
    folder: Path, *, texts: Iterable[str] = (), max_tokens: int = 64, further: Iterable[str] = ()
) -> Any:
    """Writes a WordPiece tokenizer that has the words of the templates and of the texts whole, and returns it.

    Args:
        further: tokens that no text is split into, such as BERT's ``[unused0]``.
    """
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    known = [NEGATION, *(text for pair, _ in facts() for text in (pair.premise, pair.hypothesis)), *texts]
    words = sorted({word for text in known for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)] + list("0123456789")
    tokens = dict.fromkeys(
        [*_MARKS, *further, *words, *letters, *".,;:?!'\"()-", *(f"##{letter}" for letter in letters)]
    )
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=max_tokens)
    tokenizer.save_pretrained(folder)
    return tokenizer


def config(n_tokens: int, *, labels: Sequence[str] = LABELS, max_tokens: int = 64) -> Any:
    """The config of a small BERT."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=n_tokens,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=max_tokens,
        # With the usual small weights it would take minutes until two equal words are noticed.
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(labels)),
        label2id={name: number for number, name in enumerate(labels)},
    )


def trained_model(folder: Path) -> Path:
    """Trains a model until it judges all facts rightly, a matter of seconds, and writes it as safetensors."""
    import torch
    from transformers import BertForSequenceClassification

    tokenizer = write_tokenizer(folder)
    pairs = facts()
    rows = tokenizer(
        [pair.premise for pair, _ in pairs], [pair.hypothesis for pair, _ in pairs], padding=True, return_tensors="pt"
    )
    labels = torch.tensor([LABELS.index(label) for _, label in pairs])
    # With one thread the same numbers come out anywhere. Not every beginning leads somewhere.
    torch.set_num_threads(1)
    for seed in _SEEDS:
        torch.manual_seed(seed)
        rng = random.Random(seed)
        model = BertForSequenceClassification(config(len(tokenizer)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for step in range(1, _ROUND * _MOST_ROUNDS + 1):
            some = rng.sample(range(len(pairs)), 64)
            found = model(**{name: values[some] for name, values in rows.items()}).logits
            loss = torch.nn.functional.cross_entropy(found, labels[some], weight=torch.tensor([1.0, 0.5, 1.0]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % _ROUND == 0 and _is_sure(model, rows, labels):
                model.save_pretrained(folder)
                return folder
    raise AssertionError("no model came of the training")


def _is_sure(model: Any, rows: Any, labels: Any) -> bool:
    import torch

    with torch.inference_mode():
        shares = torch.softmax(model(**rows).logits, dim=1)
    return bool(shares[range(len(labels)), labels].min() > 0.8)


def overlap_model(
    folder: Path,
    *,
    texts: Iterable[str] = (),
    max_tokens: int = 256,
    shape: Sequence[str | int] = ("pairs", "tokens"),
    is_quantised: bool = False,
    is_ranker: bool = False,
) -> Path:
    """Writes an ONNX model that compares words, with its tokenizer and config.

    Args:
        folder: takes it.
        texts: whose words the tokenizer has whole.
        max_tokens: of the tokenizer.
        shape: of the inputs; a number is a fixed size.
        is_quantised: the shares of a batch are rounded to 256 numbers between the lowest and the highest of it.
        is_ranker: it has one output.
    """
    import onnx
    from onnx import TensorProto, helper

    tokenizer = write_tokenizer(folder, texts=texts, max_tokens=max_tokens)
    values = {"axis_1": [1], "axis_2": [2], "not": [tokenizer.convert_tokens_to_ids(NEGATION)], "sep": [3]}
    numbers = {"half": 0.75, "steep": 20.0, "twice": 40.0}
    node = helper.make_node
    nodes = [
        node("Cast", ["token_type_ids"], ["second_or_sep"], to=TensorProto.BOOL),
        node("Equal", ["input_ids", "sep"], ["is_sep"]),
        node("Not", ["is_sep"], ["no_sep"]),
        node("And", ["second_or_sep", "no_sep"], ["in_second"]),
        node("Not", ["second_or_sep"], ["first_or_pad"]),
        node("Cast", ["attention_mask"], ["is_there"], to=TensorProto.BOOL),
        node("And", ["first_or_pad", "is_there"], ["in_first"]),
        # Which tokens of the hypothesis stand in the premise?
        node("Unsqueeze", ["input_ids", "axis_2"], ["down"]),
        node("Unsqueeze", ["input_ids", "axis_1"], ["across"]),
        node("Equal", ["down", "across"], ["same"]),
        node("Unsqueeze", ["in_first", "axis_1"], ["first_across"]),
        node("And", ["same", "first_across"], ["same_in_first"]),
        node("Cast", ["same_in_first"], ["same_number"], to=TensorProto.FLOAT),
        node("ReduceMax", ["same_number", "axis_2"], ["is_found"], keepdims=0),
        node("Cast", ["in_second"], ["second_number"], to=TensorProto.FLOAT),
        node("Mul", ["is_found", "second_number"], ["found_second"]),
        node("ReduceSum", ["found_second", "axis_1"], ["n_found"], keepdims=1),
        node("ReduceSum", ["second_number", "axis_1"], ["n_second"], keepdims=1),
        node("Div", ["n_found", "n_second"], ["share"]),
        node("Sub", ["share", "half"], ["above"]),
        node("Mul", ["above", "steep"], ["entailed"]),
        # Does one of the two deny?
        node("Equal", ["input_ids", "not"], ["denies"]),
        node("Cast", ["denies"], ["denies_number"], to=TensorProto.FLOAT),
        node("ReduceSum", ["denies_number", "axis_1"], ["n_denials"], keepdims=1),
        node("Mul", ["n_denials", "twice"], ["denied"]),
        node("Sub", ["entailed", "entailed"], ["nothing"]),
        node("Sub", ["denied", "steep"], ["contradicted"]),
        node("Concat", ["contradicted", "nothing", "entailed"], ["logits"], axis=1),
    ]
    if is_quantised:
        nodes.insert(-8, node("DynamicQuantizeLinear", ["above"], ["level", "scale", "zero"]))
        nodes.insert(-8, node("DequantizeLinear", ["level", "scale", "zero"], ["rounded"]))
        next(model_node for model_node in nodes if "entailed" in model_node.output).input[0] = "rounded"
    labels: Sequence[str] = LABELS
    if is_ranker:
        labels, nodes[-1] = ("LABEL_0",), node("Identity", ["share"], ["logits"])
        nodes[3].output[0], nodes[6].output[0] = "in_first", "in_second"
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    ]
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], value) for name, value in values.items()]
    constants += [helper.make_tensor(name, TensorProto.FLOAT, [1], [value]) for name, value in numbers.items()]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], len(labels)])]
    graph = helper.make_graph(nodes, "overlap", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    write_config(folder, labels, max_tokens=max_tokens)
    return folder


def write_config(folder: Path, labels: Sequence[str], *, max_tokens: int = 64) -> None:
    """Writes a config that names the outputs."""
    value = {"model_type": "bert", "id2label": dict(enumerate(labels)), "max_position_embeddings": max_tokens}
    (folder / "config.json").write_text(json.dumps(value), encoding="utf-8")
