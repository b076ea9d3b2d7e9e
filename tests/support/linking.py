"""Entity-linking data for end-to-end tests, and the same made in the plainest way."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbsource.records import Page
from mapping.entity_linking.links import N_BUCKETS
from pipelines.jobs.entity_linking import make_entity_linking
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.entity_linking import EntityLinkingOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags


def make_linking(
    kb: Path,
    output: Path,
    *,
    runner: str = "local",
    workers: int | None = None,
    beam_args: Sequence[str] = (),
    **options: Any,
) -> MadeRelease:
    """Makes entity-linking data of a release."""
    flags = beam_flags(runner, workers=workers, beam_args=beam_args)
    given = EntityLinkingOptions(str(kb), output=str(output), **options)
    return make_entity_linking(given, flags=flags, progress=Progress(io.StringIO()))


def plain_links(pages: Sequence[Page]) -> list[tuple[Page, Any, str, str, str]]:
    """Every link that is taken with its page, contexts of 128 tokens and mention, in order."""
    known = {page.page_id: page for page in pages}
    links = []
    for page in pages:
        for anchor in page.anchors:
            element, target = page.elements[anchor.element], known.get(anchor.target_page_id or 0)
            if element.kind not in ("paragraph", "list_item") or target is None or target.is_disambiguation:
                continue
            sides = (element.text[: anchor.start], anchor.text, element.text[anchor.end :])
            before, own, after = (side.split() for side in sides)
            left, mention, right = (" ".join(tokens) for tokens in (before[-128:], own, after[:128]))
            if target is not page and mention:
                links.append((page, anchor, left, mention, right))
    return links


def plain_sample(pages: Sequence[Page], *, train: int, dev: int) -> dict[str, list[tuple[str, ...]]]:
    """Gives (left, mention, right, title, id) of the records of each split in order, as they are drawn."""
    distinct: dict[bytes, tuple[int, int, tuple[str, ...]]] = {}
    for number, (page, anchor, left, mention, right) in enumerate(plain_links(pages)):
        said = "\x1f".join(("kilt", left, mention, right, str(anchor.target_page_id)))
        drawn = hashlib.sha256(f"kilt\x1fpage\x1f{page.page_id}".encode()).hexdigest()
        bucket = int(drawn[:8], 16) * N_BUCKETS // (1 << 32)
        record = (left, mention, right, anchor.target_title, str(anchor.target_page_id))
        distinct.setdefault(hashlib.sha256(said.encode()).digest(), (bucket, number, record))
    needed, n_dev = -(-dev * len(distinct) // (train + dev)), 0
    while sum(bucket < n_dev for bucket, _, _ in distinct.values()) < needed:
        n_dev += 1
    sample = {}
    for split, wanted in (("train", train), ("dev", dev)):
        own = [key for key, (bucket, _, _) in sorted(distinct.items()) if (bucket < n_dev) == (split == "dev")]
        sample[split] = [
            record for _, _, record in sorted((distinct[key] for key in own[:wanted]), key=lambda keyed: keyed[1])
        ]
    return sample


def plain_aliases(pages: Sequence[Page]) -> list[tuple[str, int, str, int]]:
    """Mention, page, title and count of the alias table."""
    links = plain_links(pages)
    counts = Counter((mention, anchor.target_page_id, anchor.target_title) for _, anchor, _, mention, _ in links)
    rows = [(*key, n_links) for key, n_links in counts.items()]
    return sorted(rows, key=lambda row: (row[0].encode(), -row[3], row[1]))


def plain_link_probabilities(pages: Sequence[Page]) -> dict[str, float]:
    """The link probability of every mention."""
    by_page: defaultdict[int, list[str]] = defaultdict(list)
    for page, _, _, mention, _ in plain_links(pages):
        by_page[page.page_id].append(mention)
    links, occurrences = Counter[str](), Counter[str]()
    for page in pages:
        texts = [element.text for element in page.elements if element.kind in ("paragraph", "list_item")]
        for mention, n_links in Counter(by_page[page.page_id]).items():
            links[mention] += n_links
            occurrences[mention] += max(n_links, _n_occurrences(mention, texts))
    return {mention: n_links / occurrences[mention] for mention, n_links in links.items()}


def _n_occurrences(mention: str, texts: Iterable[str]) -> int:
    wanted = _spaced(mention)
    return bool(wanted.strip()) * sum(len(re.findall(f"(?={re.escape(wanted)})", _spaced(text))) for text in texts)


def _spaced(text: str) -> str:
    tokens = "  ".join(re.findall(r"\w+", text))
    return f" {tokens} "
