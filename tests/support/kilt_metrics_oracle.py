"""The metrics of KILT once more: slow, plain, and sharing nothing with the product, ROUGE-L included."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]

KEYS_OF_ANSWERS = ("accuracy", "em", "f1", "rougel")


def normalise(text: str) -> str:
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(answer: str, gold: str) -> float:
    left, right = normalise(answer).split(), normalise(gold).split()
    n_left, n_right, rest, n_common = len(left), len(right), list(right), 0
    for token in left:
        if token in rest:
            rest.remove(token)
            n_common += 1
    return (
        0.0
        if n_common == 0
        else 2 * (n_common / n_left) * (n_common / n_right) / (n_common / n_left + n_common / n_right)
    )


def common_words(left: list[str], right: list[str]) -> set[str]:
    """The words of a longest common subsequence, of several the one that the package takes."""
    length = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            length[i + 1][j + 1] = length[i][j] + 1 if a == b else max(length[i][j + 1], length[i + 1][j])
    words, i, j = set(), len(left), len(right)
    while i and j:
        if left[i - 1] == right[j - 1]:
            words.add(left[i - 1])
            i, j = i - 1, j - 1
        elif length[i - 1][j] > length[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words


def rouge_l(answer: str, gold: str) -> float:
    sentences = [[" ".join(part.split()).split(" ") for part in text.split(".") if part] for text in (answer, gold)]
    if not all(sentences):
        return 0.0
    guessed, wanted = sentences
    union: set[str] = set()
    for reference in wanted:
        for hypothesis in guessed:
            union |= common_words(reference, hypothesis)
    recall = len(union) / len({word for sentence in wanted for word in sentence})
    precision = len(union) / len({word for sentence in guessed for word in sentence})
    return 2 * precision * recall / (precision + recall + 1e-8)


def ids(provenance: Sequence[Record], keys: Sequence[str]) -> list[str]:
    found: list[str] = []
    for span in provenance:
        if all(span.get(key) is not None for key in keys):
            place = "+".join(str(span[key]).strip() for key in keys)
            if place not in found:
                found.append(place)
    return found


def scores_of(gold: Record, guess: Record | None, ks: Sequence[int], keys: Sequence[str]) -> dict[str, float]:
    outputs = guess["output"] if guess is not None else []
    answer = str(outputs[0]["answer"]).strip() if len(outputs) == 1 and outputs[0].get("answer") is not None else ""
    places = [output["provenance"] for output in outputs if "provenance" in output]
    spans = places[0] if len(places) == 1 else []
    answers = {output["answer"].strip() for output in gold["output"] if (output.get("answer") or "").strip()}
    titles = {
        span["title"].strip()
        for output in gold["output"]
        for span in output.get("provenance", [])
        if (span.get("title") or "").strip()
    }
    result = dict.fromkeys(KEYS_OF_ANSWERS, 0.0)
    if answer and answers:
        result["accuracy"] = float(answer in answers)
        result["em"] = max(float(normalise(answer) == normalise(text)) for text in answers)
        result["f1"] = max(f1(answer, text) for text in answers)
        result["rougel"] = max(rouge_l(answer, text) for text in answers)
    for name in KEYS_OF_ANSWERS:
        result[f"KILT-{name}"] = result[name] if r_precision(gold, spans, ["wikipedia_id"]) == 1 else 0.0
    result["Rprec"] = r_precision(gold, spans, keys)
    sets: list[set[str]] = []
    for output in gold["output"]:
        wanted = set(ids(output.get("provenance", []), keys))
        if wanted and wanted not in sets:
            sets.append(wanted)
    # Each set stands where the last of its pages is; pages before that vanish, as do those of sets that never end.
    rank: list[Any] = []
    predicted = ids(spans, keys)
    for number, place in enumerate(predicted):
        seen = set(predicted[: number + 1])
        holders = [at for at, wanted in enumerate(sets) if place in wanted]
        for at in holders:
            rank = [entry for entry in rank if entry != ("part of", at)]
            rank.append(True if sets[at] <= seen else ("part of", at))
        if not holders:
            rank.append(False)
    for k in ks:
        n_true = len([entry for entry in rank[:k] if entry is True])
        result[f"precision@{k}"] = n_true / k
        if k > 1:
            result[f"recall@{k}"] = n_true / len(sets) if sets else 0.0
            result[f"success_rate@{k}"] = 1.0 if n_true else 0.0
        texts = [normalise(span["text"]) for span in spans[:k] if "text" in span]
        forms = [normalise(text) for text in answers if normalise(text)]
        names = [normalise(text) for text in titles if normalise(text)]
        with_answer = [text for text in texts if any(form in text for form in forms)]
        result[f"answer_in_context@{k}"] = float(bool(with_answer))
        result[f"answer_and_ent_in_context@{k}"] = float(any(name in text for text in with_answer for name in names))
        result[f"entity_in_context@{k}"] = float(any(name in text for text in texts for name in names))
    result["entity_in_input"] = float(
        any(normalise(title) in normalise(gold.get("input", "")) for title in titles if normalise(title))
    )
    return result


def r_precision(gold: Record, spans: Sequence[Record], keys: Sequence[str]) -> float:
    best = 0.0
    for output in gold["output"]:
        wanted = ids(output.get("provenance", []), keys)
        if wanted:
            best = max(best, len([place for place in ids(spans, keys)[: len(wanted)] if place in wanted]) / len(wanted))
    return best
