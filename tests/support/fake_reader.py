"""A reader without a model: a token is a word, and what it writes stands between << and >> in what it is given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mapping.retrieval.reader import Generator
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
        return ["#".join(re.findall(r"<<(.*?)>>", " ".join(one))) for one in prompts]

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        return options.model
