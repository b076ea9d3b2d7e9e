"""Generates documents in the tab-separated format of AIDA and WNED: 200 tokens, 20 mentions, a fifth of them without a
page.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.synthetic.form import Words

_PIECES = 20
_TOKENS = 9
_URL = "http://en.wikipedia.org/wiki/"


def documents(words: Words, names: Iterator[str]) -> Iterator[str]:
    """Yields a document for each name, without end. One mention in ten thousand has no address."""
    rng = words.rng
    n_mentions = 0
    for name in names:
        lines = [f"-DOCSTART- ({name})"]
        for _ in range(_PIECES):
            lines += words.list(_TOKENS)
            lines.append("")
            n_mentions += 1
            mention = words.list(rng.choice((1, 2, 2, 3)))
            title = words.title(rng.randrange(1_000_000)).replace(" ", "_")
            if rng.random() < 0.2:
                page = "--NME--"
            elif n_mentions % 10_000 == 0:
                page = f"{title}\t\t000"
            else:
                page = f"{title}\t{_URL}{title}\t{rng.randrange(10**7)}\t/m/0a"
            text = " ".join(mention)
            lines += [f"{token}\t{'I' if at else 'B'}\t{text}\t{page}" for at, token in enumerate(mention)]
        yield "\n".join(lines) + "\n\n"
