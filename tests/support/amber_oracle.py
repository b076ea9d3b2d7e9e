"""AmbER sets a second time, slow and obvious: worked out from the description of the rules alone.

Everything is plain dictionaries in the form of the released files; nothing is imported from the product.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import string
from collections import Counter
from decimal import Decimal
from typing import Any

Json = dict[str, Any]


def make_tuples(entities: dict[str, Json], pages: list[Json], collection: Json, options: Json) -> list[Json]:
    """The sets of a collection with their tuples, by name.

    Args:
        entities: by id: ``views``, ``aliases``, ``types``, and ``pids``: values by property.
        pages: ``wikipedia_id``, ``wikipedia_title``, ``text`` (a list), ``qid``.
        collection: ``types`` (properties by type), ``labels`` of properties.
        options: ``gap_on``, ``head_scope``, ``complex_types``.
    """
    names = sorted({name for entity in entities.values() for name in entity["aliases"]})
    sets = [_tuples_of(name, entities, pages, collection, options) for name in names]
    return [answer_set for answer_set in sets if answer_set is not None]


def _tuples_of(name: str, entities: dict[str, Json], pages: list[Json], collection: Json, options: Json) -> Json | None:
    popularity = {
        qid: math.log10(own_entity["views"]) for qid, own_entity in entities.items() if name in own_entity["aliases"]
    }
    kept = {qid: rank for qid, rank in popularity.items() if set(entities[qid]["types"]) & set(collection["types"])}
    if len(kept) < 2:
        return None
    scale = kept if options["gap_on"] == "log10" else {qid: float(entities[qid]["views"]) for qid in kept}
    first, second = sorted(scale.values(), reverse=True)[:2]
    if first + second == 0 or (first - second) / ((first + second) / 2) < 0.10:
        return None
    highest = max((popularity if options["head_scope"] == "all" else kept).values())
    count = Counter(pid for qid in kept for pid in entities[qid]["pids"])
    qids: Json = {}
    for qid in sorted(kept, key=lambda qid: int(qid[1:])):
        entity = entities[qid]
        own_pages = [page for page in pages if page["qid"] == qid]
        if not own_pages:
            continue
        pids = {}
        for pid, values in entity["pids"].items():
            listings = [
                type_id for type_id in dict.fromkeys(entity["types"]) if pid in collection["types"].get(type_id, ())
            ]
            is_listed = len(listings) == 1 if options["complex_types"] else len(listings) >= 1
            if is_listed and count[pid] == 1:
                full = [complete for value in values if (complete := complete_value(value, entities))["aliases"]]
                provenance = find_values(full, own_pages)
                if provenance:
                    pids[pid] = {
                        "property": collection["labels"][pid],
                        "amber_id": _md5(repr([name, qid, pid])),
                        "provenance": provenance,
                        "values": full,
                    }
        qids[qid] = {
            "popularity": kept[qid],
            "is_head": kept[qid] == highest,
            "aliases": entity["aliases"],
            "entity_types": entity["types"],
            "wikipedia": [_reference(page) for page in own_pages],
            "pids": pids,
        }
    with_pids = [qid for qid in qids.values() if qid["pids"]]
    if len(with_pids) < 2 or not any(entity_with_pids["is_head"] for entity_with_pids in with_pids):
        return None
    return {"name": name, "qids": qids}


def complete_value(value: Json, entities: dict[str, Json]) -> Json:
    """A value with its names; without any where it is not known."""
    if value["type"] == "quantity":
        amount = value["amount"].lstrip("+-")
        return {**value, "aliases": [amount], "additional_aliases": in_words(amount)}
    entity = entities.get(value["qid"])
    if entity is None:
        return {**value, "aliases": []}
    users = [user["qid"] for pid in ("P3095", "P1535") for user in entity["pids"].get(pid, []) if "qid" in user]
    more = {alias for qid in users if qid in entities for alias in entities[qid]["aliases"]}
    return {**value, "aliases": entity["aliases"], "additional_aliases": sorted(more), "entity_types": entity["types"]}


def in_words(amount: str) -> list[str]:
    """A number in words; nothing for what is none."""
    import inflect  # which takes seconds, in every process that collects tests

    return [str(inflect.engine().number_to_words(amount))] if re.fullmatch(r"[0-9]+(\.[0-9]+)?", amount) else []


def find_values(values: list[Json], pages: list[Json]) -> list[Json]:
    """Marks the values that a page names near its beginning, and gives the pages that name one."""
    texts = [(words(" ".join(" ".join(page["text"]).split()[:350])), _reference(page)) for page in pages]
    found = []
    for value in values:
        value["found_in_passage"] = False
        for alias in value["aliases"]:
            for text, reference in texts:
                if _is_in(words(alias), text):
                    value["found_in_passage"] = True
                    if reference not in found:
                        found.append(reference)
    return found


def words(text: str) -> list[str]:
    """The normal form of a text."""
    text = text.lower().replace("-", " ")
    text = "".join(letter for letter in text if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def _is_in(sought: list[str], text: list[str]) -> bool:
    starts = range(len(text) - len(sought) + 1)
    return bool(sought) and any(text[start : start + len(sought)] == sought for start in starts)


def _reference(page: Json) -> Json:
    return {"wikipedia_id": page["wikipedia_id"], "title": page["wikipedia_title"]}


def make_queries(sets: list[Json], collection: Json, entities: dict[str, Json], options: Json) -> Json:
    """The queries of the sets as (name, qid, pid, id, input, answer), by task.

    Args:
        sets: from ``make_tuples``.
        collection: ``qa_templates`` and ``fc_templates``.
        entities: as for ``make_tuples``.
        options: ``typed_templates``, ``false_objects``.
    """
    popular = _popular(sets, entities, options)
    found: Json = {"qa": [], "sf": [], "fc": []}
    for answer_set in sets:
        for qid, entity in answer_set["qids"].items():
            for pid, info in entity["pids"].items():
                name, values = answer_set["name"], info["values"]
                answer = [alias for value in values for alias in value["aliases"]]
                answer += [alias for value in values for alias in value["additional_aliases"]]

                def add(
                    task: str, text: str, answer: Any, key: tuple[str, ...] = (answer_set["name"], qid, pid)
                ) -> None:
                    amber_id = _md5(repr(list(key)))
                    found[task].append((*key, f"{amber_id}={_md5(text)}", text, answer))

                question = choose(_question_templates(values, collection["qa_templates"][pid], options), qid, pid)
                add("qa", question.replace("$entity", name), answer)
                add("sf", f"{name} [SEP] {info['property']}", answer)
                claim = choose(collection["fc_templates"][pid], qid, pid).replace("$entity", name)
                true = next(value for value in values if value["found_in_passage"])["aliases"][0]
                add("fc", claim.replace("$object", true), "SUPPORTS")
                names = {alias for value in values for alias in value["aliases"]}
                numbers = {number(value["aliases"][0]) for value in values if value["type"] == "quantity"}
                false = [text for text in popular.get(pid, []) if text not in names]
                if numbers:
                    false = [text for text in false if number(text) not in numbers]
                if false:
                    add("fc", claim.replace("$object", false[0]), "REFUTES")
    return found


def choose(templates: Any, qid: str, pid: str) -> str:
    """The template of an entity and a property."""
    return str(random.Random(int(qid[1:] + pid[1:])).choice(list(templates)))


def _question_templates(values: list[Json], templates: Json, options: Json) -> list[str]:
    types = dict.fromkeys(type_name for value in values for type_name in value.get("entity_types", []))
    typed = [text for type_name in types for text in templates.get(type_name, [])]
    return typed if typed and options["typed_templates"] else templates["all"]


def number(text: str) -> Any:
    """The number that a text is, else the text."""
    return Decimal(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text


def _popular(sets: list[Json], entities: dict[str, Json], options: Json) -> dict[str, list[str]]:
    """What values are called by property, the most frequent first.

    In the collection's own tuples names are counted, of equal ones that which came first leads; over all entities
    values are counted, of equal ones that with the lowest number leads.
    """
    if options["false_objects"] == "code":
        names: dict[str, Counter[str]] = {}
        for answer_set in sets:
            for entity in answer_set["qids"].values():
                for pid, info in entity["pids"].items():
                    names.setdefault(pid, Counter()).update(value["aliases"][0] for value in info["values"])
        return {pid: [text for text, _ in counter.most_common()] for pid, counter in names.items()}
    used: dict[str, list[str]] = {}
    known: dict[str, Json] = {}
    for entity in entities.values():
        for pid, values in entity["pids"].items():
            for value in values:
                key = value["qid"] if "qid" in value else value["amount"].lstrip("+")
                used.setdefault(pid, []).append(key)
                known[key] = value

    popular = {}
    for pid, keys in used.items():
        places = sorted((-keys.count(key), int(key[1:]) if key.startswith("Q") else 0, key) for key in set(keys))
        full = [complete_value(known[key], entities)["aliases"] for _, _, key in places]
        popular[pid] = [aliases[0] for aliases in full if aliases]
    return popular


def _md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()
