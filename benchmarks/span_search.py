"""Compares three searches for the best span of a page for a piece of evidence: kbsource's, NLTK over candidate
paragraphs, and brute force over all spans.

A piece of evidence is a part of a real page, 5 to 150 tokens long. 10 to 30 % of its tokens are dropped, replaced, or
preceded by an inserted token. The search with NLTK repeats the steps of KILT's released matcher in new code. It selects
at least three paragraphs, those that share most distinct tokens with the evidence, and computes NLTK's BLEU of every
span in them.
"""

from __future__ import annotations

import argparse
import math
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median, quantiles
from typing import Any

import spacy
from nltk.translate.bleu_score import sentence_bleu

from benchmarks.environment import machine, table, write_json
from benchmarks.slices import S1, data_root, read_slices
from kbsource.pages.articles import PageParser
from kbsource.records import Element
from mapping.search.bleu import best_span
from mapping.search.page_search import align_evidence
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser

SEED = 20190801
LANG = "en"
N_CANDIDATES = 3
SHORTEST, LONGEST = 5, 150
BAR_TOKENISED, BAR_TOKENISING = 1_000.0, 100.0
_KILT_RULES = spacy.blank(LANG).tokenizer


@dataclass(frozen=True)
class Query:
    """A piece of evidence and the elements of its page."""

    evidence: str
    forms: list[str]
    page: TokenisedPage


def made_up_queries(pages: list[TokenisedPage], n_queries: int, rng: random.Random) -> list[Query]:
    """Returns queries in random order, whose lengths are evenly distributed over 5 to 150 tokens."""
    by_length: list[tuple[int, TokenisedPage, int]] = [
        (page.bounds[place + 1] - page.bounds[place], page, place) for page in pages for place in range(page.n_body)
    ]
    queries = []
    for number in range(n_queries):
        n_tokens = SHORTEST + round(number * (LONGEST - SHORTEST) / max(1, n_queries - 1))
        page, place = rng.choice([(page, place) for size, page, place in by_length if size >= n_tokens])
        text = page.elements[page.order[place]].text
        tokens = [text[token.start : token.end] for token in page.tokeniser.tokens(text)]
        start = rng.randrange(len(tokens) - n_tokens + 1)
        evidence = " ".join(changed(tokens[start : start + n_tokens], tokens, rng))
        queries.append(Query(evidence, page.tokeniser.forms(evidence), page))
    rng.shuffle(queries)
    return queries


def changed(tokens: list[str], others: list[str], rng: random.Random) -> list[str]:
    """Returns the tokens with 10 to 30 % of them dropped, replaced, or preceded by an inserted token."""
    rate, result = rng.uniform(0.1, 0.3), []
    for token in tokens:
        change = rng.choice(("drop", "insert", "replace")) if rng.random() < rate else None
        if change in ("insert", "replace"):
            result.append(rng.choice(others))
        if change in ("insert", None):
            result.append(token)
    return result or tokens


def tokenise_like_kilt(rules: Callable[[str], Any], text: str) -> list[str]:
    """Returns lower-case tokens without punctuation and three-byte characters, as in the released matcher."""
    tokens = (
        "".join(char for char in rule.text.lower() if char.isalnum() and ord(char) < 0x800) for rule in rules(text)
    )
    return [token for token in tokens if token]


def search_with_nltk(evidence: list[str], paragraphs: Sequence[list[str]]) -> tuple[float, int, int, int]:
    """Returns (score, paragraph, first token, end) of the best span in the candidate paragraphs.

    Of spans with the same score, the shortest is chosen, then the earliest paragraph, then the earliest start, as in
    kbsource.
    """
    words = set(evidence)
    n_shared = [len(words & set(paragraph)) for paragraph in paragraphs]
    candidates: list[int] = []
    for count in sorted({count for count in n_shared if count}, reverse=True):
        if len(candidates) >= N_CANDIDATES:
            break
        candidates += [number for number, shared in enumerate(n_shared) if shared == count]
    order = min(4, len(evidence))
    weights = (1 / order,) * order
    best = (0.0, 0, 0, 0)
    for number in sorted(candidates):
        paragraph = paragraphs[number]
        for first in range(len(paragraph)):
            for end in range(first + 1, len(paragraph) + 1):
                score = sentence_bleu([paragraph[first:end]], evidence, weights=weights)
                longer = score > best[0] + 1e-12
                if longer or (score > best[0] - 1e-12 and end - first < best[3] - best[2]):
                    best = (score, number, first, end)
    return best


def search_everywhere(evidence: list[str], page: TokenisedPage) -> tuple[float, int, int]:
    """Returns (score, first token, end) of the best of all spans within elements, by counting tokens one by one."""
    n_evidence, order = len(evidence), min(4, len(evidence))
    form_of = list(page.vocabulary)
    tokens = [form_of[number] for number in page.ids]
    wanted = Counter(
        tuple(evidence[start : start + length])
        for length in range(1, order + 1)
        for start in range(n_evidence - length + 1)
    )
    possible = math.prod(n_evidence - length for length in range(order))
    best = (0.0, 0, 0)
    for start_of_place, end_of_place in pairwise(page.bounds):
        for first in range(start_of_place, end_of_place):
            seen: Counter[tuple[str, ...]] = Counter()
            shared = [0] * order
            for end in range(first + 1, end_of_place + 1):
                for length in range(1, min(order, end - first) + 1):
                    gram = tuple(tokens[end - length : end])
                    seen[gram] += 1
                    shared[length - 1] += seen[gram] <= wanted[gram]
                score = math.exp(min(0.0, 1 - (end - first) / n_evidence))
                score *= (math.prod(shared) / possible) ** (1 / order)
                if score and (-score, end - first, first) < (-best[0], best[2] - best[1], best[1]):
                    best = (score, first, end)
    return best


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Returns wall seconds and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(data: str | None, *, n_queries: int, n_nltk: int, n_everywhere: int) -> dict[str, Any]:
    """Measures and compares the searches. NLTK gets ``n_nltk`` queries with the same distribution of lengths."""
    tokeniser = Tokeniser(LANG)
    (wiki_slice,) = read_slices(data_root(data), (S1,))
    parser = PageParser(wiki_slice.site)
    elements: list[tuple[Element, ...]] = [parser.parse(raw).text.elements for raw in wiki_slice.articles()]
    pages = [TokenisedPage(page, tokeniser) for page in elements]
    rng = random.Random(SEED)
    queries = made_up_queries(pages, n_queries, rng)
    small = made_up_queries(pages, n_nltk, rng)
    ours = [_time_ours(query) for query in queries]
    beside_nltk = [{**_time_ours(query), **_time_nltk(query)} for query in small]
    differences = 0
    for query in queries[:n_everywhere]:
        found, best = best_span(query.page, query.forms), search_everywhere(query.forms, query.page)
        same = found is not None and (found.first, found.end) == best[1:] and math.isclose(found.score, best[0])
        differences += not (same or (best[0] == 0.0 and (found is None or found.score == 0.0)))
    return {
        "machine": machine(),
        "tokeniser": tokeniser.name,
        "pages": len(pages),
        "tokens_per_page": mean(len(page.ids) for page in pages),
        "tokens_per_s_cold": _tokens_per_s(elements, Tokeniser(LANG)),
        "tokens_per_s_warm": _tokens_per_s(elements, tokeniser),
        "queries": n_queries,
        "ours": {key: _spread([row[key] for row in ours]) for key in ours[0]},
        "nltk_queries": n_nltk,
        "beside_nltk": {key: _spread([row[key] for row in beside_nltk]) for key in beside_nltk[0] if key != "differs"},
        "nltk_differences": sum(row["differs"] for row in beside_nltk),
        "everywhere_queries": min(n_everywhere, n_queries),
        "everywhere_differences": differences,
    }


def _time_ours(query: Query) -> dict[str, float]:
    elements, tokeniser = query.page.elements, query.page.tokeniser
    search_s, _ = timed(lambda: best_span(query.page, query.forms))
    tokenising_s, _ = timed(lambda: best_span(TokenisedPage(elements, tokeniser), tokeniser.forms(query.evidence)))
    align_s, _ = timed(lambda: align_evidence(query.evidence, query.page))
    return {"search": search_s, "tokenising and search": tokenising_s, "align_evidence": align_s}


def _time_nltk(query: Query) -> dict[str, float]:
    """Times NLTK on kbsource's own tokens, so that both search the same spans and must agree."""
    form_of = list(query.page.vocabulary)
    bounds, ids = query.page.bounds, query.page.ids
    paragraphs = [[form_of[number] for number in ids[first:end]] for first, end in pairwise(bounds)]
    tokenise_s, _ = timed(
        lambda: [
            tokenise_like_kilt(_KILT_RULES, text)
            for text in (query.evidence, *(element.text for element in query.page.elements))
        ]
    )
    with warnings.catch_warnings():
        # NLTK warns of every span without a common 4-gram.
        warnings.simplefilter("ignore")
        search_s, found = timed(lambda: search_with_nltk(query.forms, paragraphs))
    return {
        "NLTK search": search_s,
        "NLTK tokenising and search": tokenise_s + search_s,
        "differs": _differs(query, found),
    }


def _differs(query: Query, found: tuple[float, int, int, int]) -> bool:
    """Returns whether kbsource finds another span in the same paragraph, and whether its best span of the page is
    worse.
    """
    score, place, first, end = found
    whole = best_span(query.page, query.forms)
    if score < 1e-9:
        return whole is not None and whole.score > 0
    alone = TokenisedPage([query.page.elements[query.page.order[place]]], query.page.tokeniser)
    ours = best_span(alone, query.forms)
    if ours is None or whole is None or whole.score < score - 1e-9:
        return True
    return (ours.first, ours.end) != (first, end) or not math.isclose(ours.score, score, rel_tol=1e-9)


def _tokens_per_s(elements: list[tuple[Element, ...]], tokeniser: Tokeniser) -> float:
    seconds, n_tokens = timed(lambda: sum(len(tokeniser.forms(element.text)) for page in elements for element in page))
    return float(n_tokens / seconds)


def _spread(seconds: list[float]) -> dict[str, float]:
    return {
        "median_ms": median(seconds) * 1e3,
        "mean_ms": mean(seconds) * 1e3,
        "p90_ms": quantiles(seconds, n=10)[-1] * 1e3,
        "max_ms": max(seconds) * 1e3,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the tables."""
    print(
        f"\nspan search: {result['pages']} pages of {result['tokens_per_page']:,.0f} tokens on average, "
        f"{result['tokeniser']}; tokens/s {result['tokens_per_s_cold']:,.0f} at first sight, "
        f"{result['tokens_per_s_warm']:,.0f} once words are known"
    )
    for head, key in ((result["queries"], "ours"), (result["nltk_queries"], "beside_nltk")):
        rows = [
            (name, figures["median_ms"], figures["mean_ms"], figures["p90_ms"], figures["max_ms"])
            for name, figures in result[key].items()
        ]
        print(f"\n{head} queries, ms per query")
        print(table(("", "median", "mean", "p90", "max"), rows))
    beside = result["beside_nltk"]
    for ours, theirs, bar in (
        ("search", "NLTK search", BAR_TOKENISED),
        ("tokenising and search", "NLTK tokenising and search", BAR_TOKENISING),
    ):
        ratio = beside[theirs]["median_ms"] / beside[ours]["median_ms"]
        means = beside[theirs]["mean_ms"] / beside[ours]["mean_ms"]
        verdict = "met" if ratio >= bar else "MISSED"
        print(f"{ours}: {ratio:,.0f} x NLTK at the median, {means:,.0f} x at the mean (bar {bar:,.0f}: {verdict})")
    print(
        f"differences: {result['nltk_differences']} of {result['nltk_queries']} from NLTK, "
        f"{result['everywhere_differences']} of {result['everywhere_queries']} from every span of the page"
    )


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.span_search", description=__doc__)
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--queries", type=int, default=1_000, help="queries for kbsource")
    parser.add_argument("--nltk-queries", type=int, default=5, help="queries for NLTK, which takes some 20 s for each")
    parser.add_argument("--everywhere", type=int, default=20, help="queries compared with every span of the page")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, n_queries=args.queries, n_nltk=args.nltk_queries, n_everywhere=args.everywhere)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
