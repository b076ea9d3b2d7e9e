"""Measures the two NLI back ends in pairs per second, compared in the same run with the pipeline of transformers.

The weights are random, because the speed depends only on the shape of a model; no weights are downloaded. The pairs are
those that ``kbsource map fever --verify`` judges for real claims and real articles. The pipeline of transformers runs
with its default settings, including torch's own number of threads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.map_speed import real_release
from benchmarks.slices import data_root
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from mapping.entail.model import count_threads, export_onnx, open_model
from mapping.entail.signal import BATCH_PAIRS, MAX_TOKENS, ModelOptions, Pair, Precision, Verdict
from mapping.entail.verification import likely_sentences, questions
from mapping.records import Alignment, PageKey, Span
from mapping.search.page_search import PageSearch, SearchSettings
from mapping.search.tokens import Tokeniser

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
    "24 layers of 1024": {
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
}
"""Of BERT-tiny, of MiniLM-L6, of BERT- and RoBERTa-base, and of BERT- and RoBERTa-large, as the default model is."""
KINDS = ("rescue", "spans")
N_PAIRS = {"2 layers of 128": 1_000, "6 layers of 384": 512, "12 layers of 768": 128, "24 layers of 1024": 32}
N_PIECES = 30_000
"""Of the tokenizer, as BERT's has."""
ROUNDS = 3
LEAST_GAIN = 2.0
TOLERANCE = 1e-5


def read_claims(data: str | None, titles: Collection[str]) -> list[tuple[str, str]]:
    """Returns the claims of FEVER whose evidence is only in one of these articles, each with its title.

    Raises:
        SystemExit: the claims are missing, or no claim is about an article.
    """
    path = data_root(data) / "datasets" / "fever" / "paper_dev.jsonl"
    if not path.is_file():
        raise SystemExit(f"{path} is missing.")
    found = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            claim = json.loads(line)
            named = {piece[2].replace("_", " ") for evidence in claim["evidence"] for piece in evidence if piece[2]}
            if len(named) == 1 and named <= set(titles):
                found.append((claim["claim"], *named))
    if not found:
        raise SystemExit(f"{path}: no claim is about an article of the slice.")
    return found


def make_pairs(pages: Mapping[str, Page], claims: Sequence[tuple[str, str]], kind: str) -> list[Pair]:
    """Returns the pairs of a kind, in a random order.

    Args:
        pages: articles by title.
        claims: claims with their titles.
        kind: ``rescue`` for the pairs that ``--candidate-sentences`` judges for a claim whose evidence was not found:
            the span with its neighbours, and up to 100 sentences of the page. ``spans`` for the pairs without that
            option: only spans, one of every article, each with some claim. The span is the sentence that shares most
            words with the claim.
    """
    pairs = []
    if kind == "rescue":
        for claim, title in claims:
            pairs += _asked(pages[title], claim, n_sentences=100)
    else:
        for number, page in enumerate(pages.values()):
            claim, _ = claims[number % len(claims)]
            pairs += _asked(page, claim, n_sentences=0)
    random.Random(SEED).shuffle(pairs)
    return pairs


def _asked(page: Page, claim: str, *, n_sentences: int) -> list[Pair]:
    search = PageSearch(page, Tokeniser("en"), SearchSettings(numbering="elements"))
    best = likely_sentences(page, claim, elements=search.elements, n_most=1)
    span = Span(best[0].element, best[0].start_char, best[0].element, best[0].end_char, 0.0, "bleu") if best else None
    wanted = Alignment(PageKey("title", page.title), claim, hypothesis=claim, span=span)
    asked = questions(wanted, search, n_sentences=n_sentences)
    return [Pair(question.premise, claim, (question.core_start, question.core_end)) for question in asked]


def make_model(folder: Path, texts: Sequence[str], shape: dict[str, int]) -> None:
    """Writes a model with random weights, and a WordPiece tokenizer trained on the texts."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator(texts, vocab_size=N_PIECES, show_progress=False)
    pieces.save_model(str(folder))
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    torch.manual_seed(SEED)
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    # Larger weights than usual, so that probabilities differ from pair to pair.
    model = BertForSequenceClassification(BertConfig(**shape, id2label=labels, initializer_range=0.05))
    model.save_pretrained(folder)


def naive(
    folder: Path, device: str, *, n_at_once: int | None = None, precision: Precision = "float32"
) -> Callable[[Sequence[Pair]], list[Verdict]]:
    """Returns a function that judges pairs as most scripts do: with the pipeline of transformers.

    Args:
        folder: folder of the model.
        device: device of the model.
        n_at_once: the ``batch_size`` of a single call with all pairs; None to call the pipeline in a loop, once for
            each pair.
        precision: precision of the whole model.
    """
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(folder), device=device, dtype=precision)
    settings = {"top_k": None, "truncation": "only_first", "max_length": MAX_TOKENS}

    def judge(pairs: Sequence[Pair]) -> list[Verdict]:
        texts = [{"text": pair.premise, "text_pair": pair.hypothesis} for pair in pairs]
        found: list[list[dict[str, Any]]]
        if n_at_once is None:
            found = [classify(text, **settings) for text in texts]
        else:
            found = classify(texts, batch_size=n_at_once, padding=True, **settings)
        return [Verdict(**{score["label"]: score["score"] for score in scores}) for scores in found]

    return judge


def measure(
    data: str | None,
    *,
    device: str,
    shapes: Sequence[str] = tuple(SHAPES),
    kinds: Sequence[str] = KINDS,
    n_pairs: int | None = None,
) -> dict[str, Any]:
    """Returns the figures.

    Args:
        data: folder of the real data.
        device: ``cpu``, or ``cuda`` to compare torch on a GPU with torch on the CPU.
        shapes: names of ``SHAPES``.
        kinds: names of ``KINDS``.
        n_pairs: number of pairs to judge; None for ``N_PAIRS``.
    """
    with KnowledgeSource.open(str(real_release(data))) as source:
        pages = {page.title: page for page in source}
    claims = read_claims(data, pages)
    texts = [*(claim for claim, _ in claims), *(element.text for page in pages.values() for element in page.elements)]
    rows = []
    for name in shapes:
        folder = WORK / "entailment" / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        make_model(folder / "torch", texts, SHAPES[name])
        export_onnx(ModelOptions(str(folder / "torch")), str(folder / "onnx"))
        judges: dict[str, Callable[[Sequence[Pair]], Sequence[Any]]] = {
            "pipeline, pair by pair": naive(folder / "torch", device),
            f"pipeline, {BATCH_PAIRS} at once": naive(folder / "torch", device, n_at_once=BATCH_PAIRS),
            "pipeline, pair by pair, bfloat16": naive(folder / "torch", device, precision="bfloat16"),
            "torch": open_model(ModelOptions(str(folder / "torch"), device=device)).judge,
            "torch, bfloat16": open_model(
                ModelOptions(str(folder / "torch"), device=device, precision="bfloat16")
            ).judge,
            "onnx": open_model(ModelOptions(str(folder / "onnx"), backend="onnx", device="cpu")).judge,
        }
        if device != "cpu":
            judges["torch, CPU"] = open_model(ModelOptions(str(folder / "torch"), device="cpu")).judge
        for kind in kinds:
            pairs = make_pairs(pages, claims, kind)[: n_pairs or N_PAIRS[name]]
            rows += [{"pairs_of": kind, **row} for row in _measured(name, pairs, judges)]
    return {
        "machine": machine(),
        "device": device,
        "pipeline_threads": importlib.import_module("torch").get_num_threads(),
        "threads": count_threads(),
        "claims": len(claims),
        "tokens_per_pair": {kind: _tokens_per_pair(folder, make_pairs(pages, claims, kind)) for kind in kinds},
        "rows": rows,
        "tolerance": TOLERANCE,
    }


def _tokens_per_pair(folder: Path, pairs: Sequence[Pair]) -> float:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "torch")
    rows = tokenizer([pair.premise for pair in pairs], [pair.hypothesis for pair in pairs], verbose=False)
    return mean(len(row) for row in rows["input_ids"])


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
                for answer, other in zip(answers[judge], answers[first], strict=True)
                for left, right in zip(answer, other, strict=True)
            ),
        }
        for judge in judges
    ]


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(
        f"\nNLI, pairs a second on {result['device']}, median of {ROUNDS} rounds; at least × {LEAST_GAIN:g} is wanted"
    )
    print(f"tokens per pair: {', '.join(f'{kind} {n:.0f}' for kind, n in result['tokens_per_pair'].items())}")
    columns = (
        "model",
        "pairs_of",
        "judge",
        "pairs",
        "pairs_per_s",
        "gain",
        "gain_on_batches",
        "pairs_per_cpu_s",
        "cpu_gain",
    )
    rows = [(*(row[name] for name in columns), f"{row['apart']:.1e}") for row in result["rows"]]
    head = (
        *("model", "pairs of", "judge", "pairs", "pairs/s", "× loop", "× batches", "pairs/CPU s", "× loop"),
        "probabilities apart",
    )
    print(table(head, rows))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entailment_speed", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), help="models to measure")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of pairs to judge")
    parser.add_argument("--pairs", type=int, help=f"pairs to judge (default: {N_PAIRS})")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, device=args.device, shapes=args.shapes, kinds=args.kinds, n_pairs=args.pairs)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
