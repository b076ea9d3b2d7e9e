"""Small knowledge sources with known sentences, and corpora of passages cut from them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kbsource.records import Element, Page
from mapping.passages.cut import CutOptions
from pipelines.jobs.passages import make_passages
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.passages import PassagesOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, write_release

_BLANK = next(iter(synthetic_pages(1)))


def page(page_id: int, title: str, *texts: str, kinds: Sequence[str] = ()) -> Page:
    """A page with those texts behind its title, paragraphs unless ``kinds`` says otherwise."""
    given = [*kinds, *["paragraph"] * (len(texts) - len(kinds))]
    elements = [Element("title", 1, None, "", (), title)]
    for kind, text in zip(given, texts, strict=True):
        is_item = kind == "list_item"
        elements.append(Element(kind, int(kind != "paragraph"), None, "*" * is_item, (), text))
    bare: dict[str, Any] = {"anchors": (), "tables": (), "infoboxes": ()}
    return replace(_BLANK, page_id=page_id, title=title, qid=None, elements=tuple(elements), **bare)


def write_kb(folder: Path, pages: Iterable[Page], *, rows_per_shard: int = 2, n_shards: int = 2) -> Path:
    """Writes a finished release of pages and gives its folder."""
    given = list(pages)
    titles = [TitleRow(made_page.page_id, made_page.title) for made_page in given]
    write_release(folder, given, titles=titles, rows_per_shard=rows_per_shard, n_shards=n_shards)
    return folder / "release"


def cut_release(
    output: Path,
    kb: Path,
    *,
    cut: CutOptions | None = None,
    formats: tuple[str, ...] = (),
    runner: str = "local",
    workers: int | None = None,
    beam_args: Sequence[str] = (),
    **options: Any,
) -> MadeRelease:
    """Makes a corpus of the passages of a release."""
    return make_passages(
        PassagesOptions(str(kb), output=str(output), cut=cut or CutOptions(), formats=formats, **options),
        flags=beam_flags(runner, workers=workers, beam_args=beam_args),
        progress=Progress(io.StringIO()),
    )


CORPUS_FORMS = ("pyserini", "dpr")
CORPUS_CUT = CutOptions(max_words=6)
CORPUS_PAGES = (
    page(3, "Sorn", "Headed", "The Sorn is a river. It rises in Brack.", "Its fish are old.", kinds=["heading"]),
    page(5, "Tey", "A town of no more than forty goats. It is old.", 'Goats, "kids" and\tmore.', kinds=["list_item"]),
    page(8, "Empty", "Nothing", kinds=["heading"]),
    page(9, "Last", "It is the last."),
    page(11, "Very last", "It is."),
)
