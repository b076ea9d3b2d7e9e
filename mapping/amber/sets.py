"""Sets: the entities of a name with what tells them apart, before and after their pages are looked into."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from mapping.amber.properties import distinguishing, full_values
from mapping.amber.records import AmberOptions, AmberSet, AmberTuple, Collection, Entity, SetEntity


def amber_id(name: str, qid: str, property_id: str) -> str:
    """Gives the id of a tuple.

    >>> amber_id("Abe Lincoln", "Q91", "P607")
    '6981ec17f0438a7cc94fff740cc9bb23'
    """
    return hashlib.md5(repr([name, qid, property_id]).encode(), usedforsecurity=False).hexdigest()


def make_set(
    name: str,
    members: Sequence[tuple[Entity, bool]],
    known: Mapping[str, Entity],
    collection: Collection,
    options: AmberOptions,
) -> AmberSet:
    """Gives the set of a name, no page looked into yet.

    Args:
        name: that they share.
        members: entities of the collection, each with whether it is a head.
        known: entities that values are called by, by id.
        collection: says which properties count.
        options: likewise.
    """
    ordered = sorted(members, key=lambda member: int(member[0].qid[1:]))
    property_ids = distinguishing([entity for entity, _ in ordered], collection, options)
    entities = (
        SetEntity(
            entity.qid,
            entity.popularity,
            is_head,
            entity.aliases,
            entity.types,
            (),
            tuple(_tuples(name, entity, own, known, collection, options.lang)),
        )
        for (entity, is_head), own in zip(ordered, property_ids, strict=True)
    )
    return AmberSet(name, tuple(entities))


def _tuples(
    name: str,
    entity: Entity,
    property_ids: Iterable[str],
    known: Mapping[str, Entity],
    collection: Collection,
    lang: str,
) -> Iterable[AmberTuple]:
    for property_id in property_ids:
        if values := full_values(entity.properties[property_id], known, lang=lang):
            yield AmberTuple(
                property_id,
                collection.labels.get(property_id, property_id),
                amber_id(name, entity.qid, property_id),
                (),
                values,
            )


def lacking(amber_set: AmberSet, stage: str) -> str | None:
    """Gives why a set is none: ``few_STAGE`` or ``no_head_STAGE``; None where it is one, with two entities and a head
    that something is known of.

    Args:
        amber_set: of a name.
        stage: that its entities have come through.
    """
    told_apart = [entity for entity in amber_set.entities if entity.tuples]
    if len(told_apart) < 2:
        return f"few_{stage}"
    return None if any(one.is_head for one in told_apart) else f"no_head_{stage}"
