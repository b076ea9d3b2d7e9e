"""AmbER sets of a small world, all in memory: the steps that the pipeline takes for each name, in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mapping.amber.documents import align_entity
from mapping.amber.names import Bearer, choose_members
from mapping.amber.records import AmberOptions, AmberSet, Collection, Document, Entity
from mapping.amber.sets import lacking, make_set


def amber_sets(
    entities: Iterable[Entity], documents: Mapping[str, list[Document]], collection: Collection, options: AmberOptions
) -> list[AmberSet]:
    """Gives the sets of a collection, by name.

    Args:
        entities: of the world.
        documents: pages of the entities, by item.
        collection: which types and properties.
        options: the rules.
    """
    known = {one.qid: one for one in entities}
    named: dict[str, list[Entity]] = {}
    for entity in known.values():
        for alias in dict.fromkeys(entity.aliases):
            named.setdefault(alias, []).append(entity)
    found = []
    for name, of_name in sorted(named.items()):
        bearers = [
            Bearer(int(one.qid[1:]), one.views, any(kind in collection.types for kind in one.types)) for one in of_name
        ]
        chosen = choose_members(sorted(bearers, key=lambda one: (-one.views, one.item)), options)
        members = [(known[f"Q{one.item}"], is_head) for one, is_head in chosen.rows]
        made = make_set(name, members, known, collection, options)
        aligned = made._replace(
            entities=tuple(align_entity(one, documents[one.qid]) for one in made.entities if documents.get(one.qid))
        )
        if lacking(aligned, "found") is None:
            found.append(aligned)
    return found
