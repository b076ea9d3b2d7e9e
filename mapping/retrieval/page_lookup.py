"""Look-ups of readers in a release: the page with a title, and the first sentences of a page.

Source: Petroni et al., KILT (2021), section 5: the provenance of a predicted title is its page, and the fact checker
reads the beginning of retrieved pages.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from kbsource.errors import RecordError
from kbsource.lookup import KnowledgeSource
from kbsource.sentences import sentence_spans
from mapping.retrieval.queries import Hit

_PAGES_KEPT = 4096


class PageLookup:
    """Pages of a release.

    Args:
        kb: folder of the release; raises SetupError if it is not a release.
        accepts_redirects: whether the title of a redirect is accepted for its article.
    """

    def __init__(self, kb: str, *, accepts_redirects: bool = False) -> None:
        self._source = KnowledgeSource.open(kb)
        self._accepts_redirects = accepts_redirects
        self._beginning = lru_cache(_PAGES_KEPT)(self._read_beginning)

    def titled(self, title: str) -> Hit | None:
        """Returns the page with exactly this title, or None."""
        found = self._source.resolve(title)
        if found.by != "title" or found.requested != title or found.page_id is None or found.title is None:
            return None
        if found.hops and not self._accepts_redirects:
            return None
        return Hit(str(found.page_id), str(found.page_id), found.title, "")

    def beginning(self, page_id: str, n_sentences: int) -> Hit:
        """Returns a page with its first sentences as text.

        Raises:
            RecordError: ``unknown_page``.
        """
        return self._beginning(page_id, n_sentences)

    def _read_beginning(self, page_id: str, n_sentences: int) -> Hit:
        page = self._source.by_id(int(page_id)) if page_id.isascii() and page_id.isdecimal() else None
        if page is None:
            raise RecordError("unknown_page", f"the release has no page {page_id[:80]!r}")
        paragraphs = (element.text for element in page.elements if element.kind == "paragraph")
        sentences = (text[start:end] for text in paragraphs for start, end in sentence_spans(text))
        return Hit(page_id, page_id, page.title, " ".join(islice(sentences, n_sentences)))
