"""What may prove a fact, out of whole pages: the slow and obvious form of what the job does page by page."""

from __future__ import annotations

from typing import Any

from kbsource.records import Anchor, Element, Page
from mapping.qampari.evidence import N_BEFORE, CandidateSentence, PageSentences, SearchTarget
from mapping.qampari.records import ProofText
from mapping.qampari.table_questions import TableFact, find_words, value_names


def page_of(
    page_id: int, *paragraphs: str, links: tuple[tuple[int, str, int], ...] = (), kind: str = "paragraph"
) -> Page:
    """A page with title, heading and paragraphs; links are (element, text, page id) at the text's first occurrence."""
    title = f"Page {page_id}"
    elements = [Element("title", 1, None, "", (), f"{title}, lakes in Sweden")]
    elements += [Element("heading", 2, None, "", (), "Ullane")]
    elements += [Element(kind, 0, None, "", (), paragraph) for paragraph in paragraphs]
    anchors = []
    for number, text, target in links:
        start = elements[number].text.index(text)
        anchors.append(Anchor(number, start, start + len(text), text, "T", None, target, "T"))
    values: dict[str, Any] = dict.fromkeys(Page.__struct_fields__, ())
    values |= {"page_id": page_id, "title": title, "elements": tuple(elements), "anchors": tuple(anchors)}
    return Page(**values)


def find_candidates(page: Page, sought: SearchTarget, *, n_before: int = N_BEFORE) -> list[CandidateSentence]:
    """The sentences of a page's paragraphs and list items that name a thing or link to its page."""
    return PageSentences(page, n_before=n_before).find(sought)


def fact_candidates(
    answer_page: Page | None,
    answer: SearchTarget,
    entity_page: Page | None,
    entity: SearchTarget,
    *,
    n_before: int = N_BEFORE,
) -> list[CandidateSentence]:
    """The sentences that may say that answer and entity are related, in the order in which they are to be tried.

    First those of the answer's page that name the entity, then those of the entity's page that name the answer; within
    a page as ``find_candidates`` gives them. Either page may be missing.
    """
    found = find_candidates(answer_page, entity, n_before=n_before) if answer_page is not None else []
    if entity_page is not None:
        found += find_candidates(entity_page, answer, n_before=n_before)
    return found


def prove_fact(
    fact: TableFact, key_page: Page | None, value_page: Page | None = None, *, n_before: int = N_BEFORE
) -> ProofText | None:
    """The proof of a fact, None where there is none.

    Of a row's belonging it is the sentence of ``find_words`` in the key's page. Of a value it is the first sentence of
    the key's page that names it, else the first of the value's page that names the key; links do not count.

    Args:
        fact: what is to be proved.
        key_page: page ``fact.page_id``; None where there is none.
        value_page: page ``fact.value_page_id``; None where there is none.
        n_before: most sentences before the one that names something.
    """
    for page, names in ((key_page, fact.names), (value_page, value_names(fact.text))):
        if page is None:
            continue
        if fact.column is None:
            found = find_words(PageSentences(page, n_before=n_before), names)
        else:
            found = next(iter(find_candidates(page, SearchTarget(names), n_before=n_before)), None)
        if found is not None:
            place = found.element, found.start_char, found.end_char, found.sentence_char
            return ProofText(found.text, page.page_id, page.title, *place)
    return None
