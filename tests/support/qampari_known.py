"""What a release of Wikidata says, and which sentences of pages say it too: read into memory, slow and obvious."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kbsource.records import Page
from mapping.entail.signal import Pair
from mapping.qampari.evidence import CandidateSentence, SearchTarget, number_names, text_names, year_names
from mapping.qampari.questions import Relations
from mapping.qampari.records import ProofText, QuestionEntity
from tests.support.builds import open_release, rows
from tests.support.qampari_proofs import fact_candidates


class Thing(NamedTuple):
    """Something with a name, and perhaps with a page."""

    names: tuple[str, ...]
    page: Page | None = None
    item_id: str | None = None

    @property
    def sought(self) -> SearchTarget:
        return SearchTarget(self.names, None if self.page is None else self.page.page_id)

    @property
    def title(self) -> str | None:
        return None if self.page is None else self.page.title

    @property
    def entity(self) -> QuestionEntity:
        return QuestionEntity(self.names[0], self.names, self.title, self.item_id)


class Fact(NamedTuple):
    """That a subject has a value: of a simple query the subject is the answer, of a composition the value is."""

    subject: str
    property_id: str
    value: str
    is_simple: bool


class Known:
    """What is known of items, and what proves it.

    Args:
        wikidata: release of Wikidata.
        kb: knowledge source.
        relations: hold the words of hypotheses and the types.
        judge: gives the probability that a premise entails a hypothesis; None: the first candidate is the proof.
        least: what the probability of an accepted candidate is above.
        n_before: sentences before the one that names something.

    Attributes:
        pages: of the knowledge source, in its order.
        page_of: page by item.
        statements: that hold, in the order of the release.
        judged: facts that were put before the judge, candidates of them, and facts that were proved.
    """

    def __init__(
        self,
        wikidata: Path,
        kb: Path,
        relations: Relations,
        *,
        judge: Callable[[Pair], float] | None,
        least: float,
        n_before: int,
    ) -> None:
        self._relations, self._judge, self._least, self._n_before = relations, judge, least, n_before
        self.pages = list(open_release(kb))
        self.page_of = {page.qid: page for page in self.pages if page.qid is not None}
        self._items = {row["item_id"]: row for row in rows(wikidata, "items")}
        self._all_statements = [row for row in rows(wikidata, "statements") if row["entity_id"].startswith("Q")]
        self.statements = [row for row in self._all_statements if _holds(row)]
        self._kinds = {row["property_id"]: row["value_type"] for row in self.statements}
        self._superclasses = defaultdict(set)
        for row in rows(wikidata, "classes"):
            self._superclasses[row["class_id"]].add(row["superclass_id"])
        self._candidates: dict[Fact, list[CandidateSentence]] = {}
        self._proved: dict[Fact, ProofText | None] = {}
        self.judged: Counter[str] = Counter()

    @cached_property
    def class_of(self) -> dict[str, str]:
        """The class that each label means."""
        uses = [row for row in self._all_statements if row["property_id"] in ("P31", "P279")]
        uses = [row for row in uses if row["value_type"] == "entity" and row["rank"] != "deprecated"]
        n_instances = Counter(row["value"] for row in uses if row["property_id"] == "P31")
        used = {row["value"] for row in uses}
        found = {}
        for label in self._relations.wanted_types:
            named = [
                item_id for item_id, row in self._items.items() if item_id in used and _english_label(row) == label
            ]
            if named:
                found[label] = sorted(named, key=lambda item_id: (-n_instances[item_id], number_of(item_id)))[0]
        return found

    def has_type(self, subject: str, label: str) -> bool:
        classes = [value for value in self.values(subject, "P31") if value.startswith("Q")]
        return any(self.class_of[label] in self._superclasses[class_id] for class_id in classes)

    @cached_property
    def _by_subject(self) -> dict[str, list[dict[str, Any]]]:
        found = defaultdict(list)
        for row in self.statements:
            found[row["entity_id"]].append(row)
        return found

    def values(self, subject: str, property_id: str) -> list[str]:
        """What a subject has under a property: items, texts, the first time, the first amount."""
        found: list[str] = []
        for row in self._by_subject.get(subject, []):
            if row["property_id"] != property_id:
                continue
            kind, value = row["value_type"], _plain(row["value"])
            if kind == "time" and not found:
                found.append(str(row["year"]))
            if kind == "quantity" and not found:
                found.append(value)
            is_item = kind == "entity" and value.startswith("Q")
            if is_item or kind == "string" or (kind == "monolingualtext" and row["language"] == "en"):
                found.append(value)
        return found

    def item(self, item_id: str) -> Thing:
        page, row = self.page_of.get(item_id), self._items.get(item_id)
        labels = {label_text["language"]: _plain(label_text["text"]) for label_text in row["labels"]} if row else {}
        label = labels.get("en") or labels.get("mul")
        label = label or next(
            (
                labels[label_text]
                for label_text in sorted(labels)
                if label_text.startswith("en-") and labels[label_text]
            ),
            None,
        )
        label = label or (page.title if page else None)
        aliases = (
            [_plain(alias["text"]) for alias in row["aliases"] if re.match("en(-|$)", alias["language"])] if row else []
        )
        names = [*([label] if label else []), *(alias for alias in aliases if len(alias) > 3)]
        return Thing(tuple(dict.fromkeys(names)), page, item_id)

    def value(self, property_id: str, value: str) -> Thing:
        kind = self._kinds[property_id]
        if kind == "entity":
            return self.item(value)
        if kind == "time":
            return Thing(year_names(int(value)))
        return Thing(number_names(value) if kind == "quantity" else text_names(value))

    def answer(self, fact: Fact) -> str | Decimal:
        """What the value is told apart by: amounts are numbers."""
        return Decimal(fact.value) if self._kinds[fact.property_id] == "quantity" else fact.value

    def found(self, fact: Fact) -> list[CandidateSentence]:
        if fact not in self._candidates:
            subject, value = self.item(fact.subject), self.value(fact.property_id, fact.value)
            self._candidates[fact] = fact_candidates(
                subject.page, subject.sought, value.page, value.sought, n_before=self._n_before
            )
        return self._candidates[fact]

    def proof(self, fact: Fact) -> ProofText | None:
        """The first candidate that is accepted; each fact is judged once."""
        if fact in self._proved:
            return self._proved[fact]
        subject, value = self.item(fact.subject), self.value(fact.property_id, fact.value)
        hypothesis, proof = None, None
        if subject.names and value.names:
            names = subject.names[0], value.names[0]
            simple, composition = self._relations.simple, self._relations.composition
            if fact.is_simple:
                hypothesis = simple[fact.property_id].hypothesis(*names)
            else:
                hypothesis = composition[fact.property_id].hypothesis(names[1], names[0])
        for candidate in self.found(fact):
            entailment = None
            if self._judge is not None and hypothesis is not None:
                self.judged["judged"] += 1
                core = candidate.sentence_char - candidate.start_char, len(candidate.text)
                entailment = self._judge(Pair(candidate.text, hypothesis, core))
            if entailment is None or entailment > self._least:
                title = next(page.title for page in self.pages if page.page_id == candidate.page_id)
                place = candidate.element, candidate.start_char, candidate.end_char, candidate.sentence_char
                proof = ProofText(candidate.text, candidate.page_id, title, *place, entailment, hypothesis)
                break
        self.judged.update(facts=1, proved=proof is not None)
        self._proved[fact] = proof
        return proof

    def is_proved(self, fact: Fact) -> bool:
        return self.proof(fact) is not None

    def count(self, facts: set[Fact]) -> dict[str, int]:
        n_searches = 0
        for fact in facts:
            subject, value = self.item(fact.subject), self.value(fact.property_id, fact.value)
            n_searches += subject.page is not None and bool(value.names)
            n_searches += value.page is not None and bool(subject.names)
        counts = {name: self.judged[name] for name in ("facts", "judged", "proved")} if facts else {}
        return {"all": len(facts), "searches": n_searches, "timed_out": 0, **counts}


def _holds(row: dict[str, Any]) -> bool:
    has_ended = any(qualifier["property_id"] == "P582" for qualifier in row["qualifiers"])
    return row["value"] is not None and row["rank"] != "deprecated" and not has_ended


def _plain(text: str) -> str:
    return " ".join(word for word in re.split("[ \\t\\r\\n\u00a0]", text) if word)


def _english_label(row: dict[str, Any]) -> str | None:
    labels = {label["language"]: label["text"] for label in row["labels"]}
    found: str | None = labels.get("en", labels.get("mul"))
    return found


def number_of(item_id: str) -> int:
    return int(item_id[1:])
