"""Pairs a second of the two NLI backends, beside transformers' own pipeline called pair by pair, in one run.

The weights are random: speed depends on the shape of a model alone, and none is fetched. Pairs are sentences of the
real articles in the lengths that a verification has; no two are alike. The pipeline runs as it comes, with torch's own
number of threads.
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from mapping.entailment import BATCH_PAIRS, MAX_TOKENS, ModelOptions, Pair, Verdict
from mapping.entailment_backends import count_threads
from mapping.entailment_model import export_onnx, open_model
from mapping.sentences import sentence_spans

SEED = 20260101
SHAPES: dict[str, dict[str, int]] = {
    "2 layers of 128": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512},
    "6 layers of 384": {
        "num_hidden_layers": 6,
        "hidden_size": 384,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
    "12 layers of 768": {
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
}
"""Of BERT-tiny, of MiniLM-L6, and of BERT- and RoBERTa-base."""
N_PAIRS = {"2 layers of 128": 512, "6 layers of 384": 96, "12 layers of 768": 32}
ROUNDS = 3
LEAST_GAIN = 2.0
TOLERANCE = 1e-5


def make_texts(data: str | None) -> list[str]:
    """Gives sentences of the real articles; made-up ones without them."""
    from benchmarks.slices import S1, data_root

    path = data_root(data) / "dumps" / S1
    if not path.is_file():
        words = [f"word{number}" for number in range(2_000)]
        rng = random.Random(SEED)
        return [" ".join(rng.choices(words, k=rng.randint(8, 40))) + "." for _ in range(3_000)]
    import bz2

    with bz2.open(path, "rt", encoding="utf-8", errors="replace") as file:
        text = file.read(4 << 20)
    lines = [line for line in text.splitlines() if len(line) > 200 and "<" not in line and "{" not in line]
    return [line[start:end] for line in lines for start, end in sentence_spans(line) if 40 <= end - start <= 300]


def make_pairs(texts: Sequence[str], n_pairs: int) -> list[Pair]:
    """Gives that many pairs, of the lengths that ``kbsource map --verify --rescue`` asks about.

    Every other premise is a sentence with its neighbours, 1 to 5 in all, as for a span; the others are one sentence, as
    for a rescue. A hypothesis is the beginning of a sentence, 6 to 16 words.
    """
    rng = random.Random(SEED)
    pairs = []
    for number in range(n_pairs):
        start = rng.randrange(len(texts) - 6)
        n_sentences = 1 if number % 2 else rng.randint(1, 5)
        words = texts[rng.randrange(len(texts))].split()[: rng.randint(6, 16)]
        pairs.append(Pair(" ".join(texts[start : start + n_sentences]), " ".join(words)))
    return pairs


def make_model(folder: Path, texts: Sequence[str], shape: dict[str, int]) -> None:
    """Writes a model with random weights and a WordPiece tokenizer that was trained on the texts."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator(texts, vocab_size=8_000, show_progress=False)
    pieces.save_model(str(folder))
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    torch.manual_seed(SEED)
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    # Larger weights than usual, so that probabilities differ from pair to pair.
    model = BertForSequenceClassification(BertConfig(**shape, id2label=labels, initializer_range=0.05))
    model.save_pretrained(folder)


def naive(folder: Path, device: str, *, n_at_once: int | None = None) -> Callable[[Sequence[Pair]], list[Verdict]]:
    """Gives what most scripts do: the pipeline of transformers.

    Args:
        folder: of the model.
        device: what it runs on.
        n_at_once: its ``batch_size``, over all pairs in one call; None to call it in a loop, one pair after the other.
    """
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(folder), device=device)
    settings = {"top_k": None, "truncation": "only_first", "max_length": MAX_TOKENS}

    def judge(pairs: Sequence[Pair]) -> list[Verdict]:
        texts = [{"text": one.premise, "text_pair": one.hypothesis} for one in pairs]
        found: list[list[dict[str, Any]]]
        if n_at_once is None:
            found = [classify(one, **settings) for one in texts]
        else:
            found = classify(texts, batch_size=n_at_once, padding=True, **settings)
        return [Verdict(**{score["label"]: score["score"] for score in scores}) for scores in found]

    return judge


def measure(
    data: str | None, *, device: str, shapes: Sequence[str] = tuple(SHAPES), n_pairs: int | None = None
) -> dict[str, Any]:
    """Gives the figures.

    Args:
        data: folder of the real data.
        device: ``cpu``, or ``cuda`` for torch on a GPU beside torch on the CPU.
        shapes: names of ``SHAPES``.
        n_pairs: pairs that are judged; None for ``N_PAIRS``.
    """
    texts = make_texts(data)
    rows = []
    for name in shapes:
        folder = WORK / "entailment" / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        make_model(folder / "torch", texts, SHAPES[name])
        export_onnx(ModelOptions(str(folder / "torch")), str(folder / "onnx"))
        pairs = make_pairs(texts, n_pairs or N_PAIRS[name])
        judges: dict[str, Callable[[Sequence[Pair]], Sequence[Any]]] = {
            "pipeline, pair by pair": naive(folder / "torch", device),
            f"pipeline, {BATCH_PAIRS} at once": naive(folder / "torch", device, n_at_once=BATCH_PAIRS),
            "torch": open_model(ModelOptions(str(folder / "torch"), device=device)).judge,
            "onnx": open_model(ModelOptions(str(folder / "onnx"), backend="onnx", device="cpu")).judge,
        }
        if device != "cpu":
            judges["torch, CPU"] = open_model(ModelOptions(str(folder / "torch"), device="cpu")).judge
        rows += _measured(name, pairs, judges)
    return {
        "machine": machine(),
        "device": device,
        "pipeline_threads": importlib.import_module("torch").get_num_threads(),
        "threads": count_threads(),
        "rows": rows,
        "tolerance": TOLERANCE,
    }


def _measured(
    name: str, pairs: Sequence[Pair], judges: dict[str, Callable[[Sequence[Pair]], Sequence[Any]]]
) -> list[dict[str, Any]]:
    answers: dict[str, Sequence[Any]] = {}
    wall: dict[str, list[float]] = {judge: [] for judge in judges}
    cpu: dict[str, list[float]] = {judge: [] for judge in judges}
    for judge in judges.values():
        judge(pairs[:8])
    # In turn, so that whatever else the machine does meets all of them.
    for _ in range(ROUNDS):
        for judge_name, judge in judges.items():
            started = time.perf_counter(), time.process_time()
            answers[judge_name] = judge(pairs)
            wall[judge_name].append(time.perf_counter() - started[0])
            cpu[judge_name].append(time.process_time() - started[1])
    first, second = list(judges)[:2]
    speeds = {judge: len(pairs) / median(found) for judge, found in wall.items()}
    costs = {judge: len(pairs) / median(found) for judge, found in cpu.items()}
    return [
        {
            "model": name,
            "judge": judge,
            "pairs": len(pairs),
            "pairs_per_s": speeds[judge],
            "gain": speeds[judge] / speeds[first],
            "pairs_per_cpu_s": costs[judge],
            "cpu_gain": costs[judge] / costs[first],
            "gain_on_batches": speeds[judge] / speeds[second],
            "apart": max(
                abs(left - right)
                for one, other in zip(answers[judge], answers[first], strict=True)
                for left, right in zip(one, other, strict=True)
            ),
        }
        for judge in judges
    ]


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(
        f"\nNLI, pairs a second on {result['device']}, median of {ROUNDS} rounds; at least × {LEAST_GAIN:g} is wanted"
    )
    columns = ("model", "judge", "pairs", "pairs_per_s", "gain", "gain_on_batches", "pairs_per_cpu_s", "cpu_gain")
    rows = [(*(row[name] for name in columns), f"{row['apart']:.1e}") for row in result["rows"]]
    head = (
        *("model", "judge", "pairs", "pairs/s", "× loop", "× batches", "pairs/CPU s", "× loop"),
        "probabilities apart",
    )
    print(table(head, rows))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entailment_speed", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), help="models to measure")
    parser.add_argument("--pairs", type=int, help=f"pairs to judge (default: {N_PAIRS})")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, device=args.device, shapes=args.shapes, n_pairs=args.pairs)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
