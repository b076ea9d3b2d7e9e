"""Random worlds for AmbER sets: few names for many entities, and everything that rules trip over."""

from __future__ import annotations

import random
from typing import Any

from mapping.amber.records import ITEM, QUANTITY, AmberEntity, AmberValue, Collection, PageRef
from mapping.amber.sets import PageBeginning

Json = dict[str, Any]

_NAMES = ("Abe", "Lantern", "O'Hara", 'The "Who"', "The The", "!!!", "A $object", "Bell-Rock", "Élan", "Zoë\u200b")
_VALUE_NAMES = ("Piano", "a guitar", "The The", "!!!", "Blue-Note", "Rock, Paper", "Kelp War", "football", "Sound")
_VALUE_TYPES = ("Q1344", "Q968159", "Q2198855", "Q476028", "Q4498974", "Q11424")
_VIEWS = (1, 2, 9, 10, 1000, 1000, 30_000, 31_000, 50_000, 80_000)
_AMOUNTS = ("+2", "+2.0", "+1234", "+0.5", "-3", "+100000")
_FILLER = ("of", "the", "sea", "was", "in", "A", "town.", "harbour", "old", "—", "1234", "2")


class World:
    """A world of about twenty entities that share names, and as many values.

    Attributes:
        entities: by id, as the oracle wants them.
        pages: likewise.
        labels: of properties.
    """

    def __init__(self, seed: int, collections: list[Collection]) -> None:
        """Draws a world.

        Args:
            seed: that decides all of it.
            collections: whose types and properties are drawn, mostly those of one of them.
        """
        draw = self._draw = random.Random(seed)
        self.labels = {pid: f"label of {pid}" for collection in collections for pid in collection.property_ids}
        chosen = collections[seed % len(collections)]
        listed = [pid for pids in chosen.types.values() for pid in pids]
        types = [*chosen.types, *[*chosen.types][-4:], "Q12345", *collections[0].types]
        names = draw.sample(_NAMES, 9)
        self.entities: dict[str, Json] = {}
        numbers = draw.sample(range(1, 3000), 50)
        values = [f"Q{number}" for number in numbers[:14]]
        for qid in values:
            if draw.random() < 0.85:
                pids = {pid: self._items(values) for pid in draw.sample(["P3095", "P1535", "P17"], draw.randrange(3))}
                aliases = draw.choices(_VALUE_NAMES, k=draw.choice((0, 1, 1, 2, 3)))
                self._add(qid, aliases, draw.sample(_VALUE_TYPES, draw.randrange(3)), pids)
        for number in numbers[14:]:
            own_types = draw.choices(types, k=draw.choice((0, 1, 1, 1, 2, 3)))
            likely = [pid for type_id in own_types for pid in chosen.types.get(type_id, ())] or listed
            pids = {}
            for pid in [*draw.choices([*likely, *likely, *listed], k=draw.randrange(1, 4)), "P31"]:
                is_number = pid in ("P1082", "P2437") or draw.random() < 0.1
                pids[pid] = [self._quantity() for _ in range(2)] if is_number else self._items([*values, "Q9999"])
            self._add(f"Q{number}", draw.choices(names, k=draw.choice((0, 1, 1, 2))), own_types, pids)
        self.pages = [page for qid in self.entities for page in self._pages_of(qid)]

    def _add(self, qid: str, aliases: list[str], types: list[str], pids: Json) -> None:
        if aliases:  # what has no name is no entity
            views = self._draw.choice(_VIEWS)
            self.entities[qid] = {"views": views, "aliases": aliases, "types": types, "pids": pids}

    def _items(self, qids: list[str]) -> list[Json]:
        return [
            {"type": ITEM, "qid": qid} for qid in self._draw.choices(qids, k=self._draw.choice((0, 1, 1, 2, 2, 2, 3)))
        ]

    def _quantity(self) -> Json:
        return {"type": QUANTITY, "amount": self._draw.choice(_AMOUNTS), "unit": "1"}

    def _pages_of(self, qid: str) -> list[Json]:
        draw, pages = self._draw, []
        values = [value for many in self.entities[qid]["pids"].values() for value in many]
        named = [alias for value in values for alias in self._names(value)]
        for number in range(draw.choice((0, 1, 1, 1, 1, 1, 2))):
            words = draw.choices(_FILLER, k=draw.choice((5, 50, 340)))
            for alias in named if draw.random() < 0.5 else draw.sample(named, draw.randrange(len(named) + 1)):
                form = draw.choice((alias, alias, alias.upper(), f"“{alias}”,", f"{alias}s"))
                words.insert(draw.randrange(len(words)), form)
            cut = draw.randrange(len(words))
            text = [f"{qid} page\n", " ".join(words[:cut]), "Section::::History.", " ".join(words[cut:])]
            page_id = f"{qid[1:]}{number}"
            pages.append({"wikipedia_id": page_id, "wikipedia_title": f"{qid} {number}", "text": text, "qid": qid})
        return pages

    def _names(self, value: Json) -> list[str]:
        if value["type"] == QUANTITY:
            return [value["amount"].lstrip("+-")]
        return list(self.entities.get(value["qid"], {"aliases": []})["aliases"])

    def product_entities(self) -> list[AmberEntity]:
        """The entities as the product has them."""
        return [
            AmberEntity(
                qid,
                entity["views"],
                tuple(entity["aliases"]),
                tuple(entity["types"]),
                {pid: tuple(map(_value, values)) for pid, values in entity["pids"].items()},
            )
            for qid, entity in self.entities.items()
        ]

    def product_passages(self) -> dict[str, list[PageBeginning]]:
        """The pages as the product has them, by item."""
        found: dict[str, list[PageBeginning]] = {}
        for page in self.pages:
            passage = PageBeginning(PageRef(page["wikipedia_id"], page["wikipedia_title"]), " ".join(page["text"]))
            found.setdefault(page["qid"], []).append(passage)
        return found


def _value(value: Json) -> AmberValue:
    if value["type"] == ITEM:
        return AmberValue(ITEM, value["qid"])
    return AmberValue(QUANTITY, value["amount"], value["unit"])
