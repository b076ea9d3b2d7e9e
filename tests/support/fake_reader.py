"""A reader without a model: a token is a word, what it writes is between << and >> in its prompt, and the score of that
follows an @.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mapping.retrieval.generator import Generator
from mapping.retrieval.reader import ModelOutput, WeightedTexts
from mapping.retrieval.system_options import ReaderOptions

OPENER = f"{__name__}:FakeGenerator"
FUSING = "fusing"
"""Name of a model that has an encoder."""


class FakeGenerator(Generator):
    """It, without a model."""

    def __init__(self, options: ReaderOptions) -> None:
        self.max_tokens, self.can_fuse = options.max_tokens, options.model == FUSING

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def cut(self, text: str, n_tokens: int) -> str:
        return "".join(re.findall(r"\s*\S+", text)[:n_tokens])

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        return ["#".join(re.findall(r"<<(.*?)>>", " ".join(prompt))) for prompt in prompts]

    def write_scored(self, prompts: Sequence[str]) -> list[ModelOutput]:
        scores = [re.search(r"@(-?\d+)", prompt) for prompt in prompts]
        texts = self.write([(prompt,) for prompt in prompts])
        return [ModelOutput(text, float(score[1]) if score else 0.0) for text, score in zip(texts, scores, strict=True)]

    def write_marginal(self, prompts: Sequence[WeightedTexts], *, by_token: bool) -> list[str]:
        best = [max(zip(weights, texts, strict=True))[1] for texts, weights in prompts]
        return [f"{text} by token" if by_token else text for text in self.write([(marginal,) for marginal in best])]

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        return options.model
