"""Whether the beginning of a page names a value."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence

from mapping.amber.records import AmberTuple, Document, PageRef, SetEntity

N_TOKENS = 350
"""Source: section 3.3 of the paper, https://aclanthology.org/2021.acl-long.345."""
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_UNPUNCTUATED = str.maketrans("-", " ", string.punctuation.replace("-", ""))


def normalised(text: str) -> list[str]:
    """Gives the words of a text as answers are compared.

    >>> normalised("The Spider-Man's 1,234")
    ['spider', 'mans', '1234']
    """
    return _ARTICLE.sub(" ", text.lower().translate(_UNPUNCTUATED)).split()


class Passage:
    """The beginning of a page, to be looked into."""

    def __init__(self, document: Document) -> None:
        self.page = document.page
        self._words = _joined(normalised(" ".join(document.text.split()[:N_TOKENS])))

    def names(self, alias: str) -> bool:
        """Says whether it has the words of an alias one after the other; one without words is nowhere."""
        words = normalised(alias)
        return bool(words) and _joined(words) in self._words


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def align_entity(entity: SetEntity, documents: Iterable[Document]) -> SetEntity:
    """Gives an entity with its pages and those of its properties that any of them names a value of."""
    passages = [Passage(document) for document in documents]
    aligned = (_aligned(one, passages) for one in entity.tuples)
    return entity._replace(
        pages=tuple(passage.page for passage in passages),
        tuples=tuple(amber_tuple for amber_tuple in aligned if amber_tuple.provenance),
    )


def _aligned(amber_tuple: AmberTuple, passages: Sequence[Passage]) -> AmberTuple:
    found: dict[PageRef, None] = {}
    values = []
    for value in amber_tuple.values:
        of_value = [passage.page for alias in value.aliases for passage in passages if passage.names(alias)]
        found.update(dict.fromkeys(of_value))
        values.append(value._replace(is_found=bool(of_value)))
    return amber_tuple._replace(provenance=tuple(found), values=tuple(values))
