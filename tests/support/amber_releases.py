"""Small worlds as the three releases that AmbER sets are made of, and random worlds."""

from __future__ import annotations

import io
import random
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from kbsource.kilt import kilt_texts
from kbsource.records import Conflict
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.amber.records import ITEM, QUANTITY, AmberEntity, AmberValue
from pipelines.jobs.amber import make_amber
from pipelines.jobs.pageviews import make_pageviews
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.amber import AmberJobOptions
from pipelines.options.pageviews import PageviewsOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.entities import array, item, item_snak, make, snak, statement, terms
from tests.support.qampari_worlds import _page
from tests.support.releases import TitleRow, write_release

NO_ENTITY = "Q9999"
"""An item without a name."""
UNKNOWN = (("P1303", "somevalue"), ("P161", "novalue"))
"""What every entity that has no other value of these properties has."""
LABELS = {"P1303": "instrument", "P135": "movement", "P607": "conflict", "P54": "member of sports team"}


class Releases(NamedTuple):
    """Folders of the releases, and the pages that have an item."""

    kb: Path
    wikidata: Path
    pageviews: Path
    pages: list[dict[str, Any]]


def write_world(
    entities: Sequence[AmberEntity],
    texts: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    lang: str = "en",
    deprecated: Collection[tuple[str, str]] = (),
    further: Mapping[str, Sequence[str]] | None = None,
) -> Releases:
    """Writes a world as releases.

    Args:
        entities: of the world, with at least 5 views each.
        texts: paragraphs of the pages of those that have one, by item.
        folder: takes the releases.
        lang: of all names.
        deprecated: items and properties whose statements are.
        further: paragraphs of second pages, which claim the same items.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = [
        _page(entity.qid, f"{(entity.aliases or ['Nameless'])[0]} ({entity.qid})", texts[entity.qid])
        for entity in sorted(entities, key=lambda world_entity: int(world_entity.qid[1:]))
        if entity.qid in texts
    ]
    second = {
        qid: structs.replace(_page(qid, f"{qid} again", paragraphs), page_id=10 * int(qid[1:]) + side, qid=None)
        for side, (qid, paragraphs) in zip(cycle((-1, 1)), (further or {}).items(), strict=False)
    }
    conflicts = [Conflict(qid, 10 * int(qid[1:]), page.page_id) for qid, page in second.items()]
    pages = sorted([*pages, *second.values()], key=attrgetter("page_id"))
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    write_release(
        folder / "kb", pages, titles=titles, rows_per_shard=len(pages) // 3 + 1, n_shards=3, conflicts=conflicts
    )
    site = PAGES_RELEASE.read(str(folder / "kb" / "release")).site.dbname
    page_of = {page.qid: page for page in pages}
    lines: list[dict[str, Any]] = [
        {
            "type": "property",
            "id": name,
            "datatype": "quantity" if name == "P1082" else "wikibase-item",
            "labels": terms(**{lang: LABELS.get(name, name)}),
            "claims": [],
        }
        for name in sorted(
            {"P31", *(name for name, _ in UNKNOWN), *(name for entity in entities for name in entity.properties)}
        )
    ]
    views = []
    for entity in entities:
        page = page_of.get(entity.qid)
        title = f"Only {entity.qid}" if page is None else page.title
        lines.append(_item(entity, site, title, lang, deprecated))
        page_id = "null" if page is None else str(page.page_id)
        views.append(f"en.wikipedia {title.replace(' ', '_')} {page_id} desktop {entity.views} A{entity.views}")
    (folder / "dump.json").write_bytes(array(lines))
    make(folder / "dump.json", output=folder / "wikidata", languages=(lang,), sites=(site,))
    (folder / "pageviews-202601-user").write_text("".join(f"{view}\n" for view in sorted(views)), "utf-8")
    given = PageviewsOptions(input=(str(folder / "pageviews-202601-user"),), output=str(folder / "views"))
    make_pageviews(given, flags=beam_flags("local", workers=None, beam_args=()), progress=Progress(io.StringIO()))
    claimed = {page.page_id: qid for qid, page in second.items()}
    plain = [
        {"wikipedia_id": str(page.page_id), "wikipedia_title": page.title, "text": kilt_texts(page)[0], "qid": qid}
        for page in pages
        if (qid := page.qid or claimed.get(page.page_id)) is not None
    ]
    return Releases(folder / "kb" / "release", folder / "wikidata", folder / "views", plain)


def _item(
    entity: AmberEntity, site: str, title: str, lang: str, deprecated: Collection[tuple[str, str]]
) -> dict[str, Any]:
    claims = {"P31": [statement(item_snak("P31", type_name)) for type_name in entity.types]}
    for name, values in entity.properties.items():
        rank = "deprecated" if (entity.qid, name) in deprecated else "normal"
        claims[name] = [statement(_snak(name, value), rank=rank) for value in values or (AmberValue(ITEM, NO_ENTITY),)]
    for name, snak_type in UNKNOWN:
        if name not in claims:
            claims[name] = [statement({"snaktype": snak_type, "property": name, "datatype": "wikibase-item"})]
    label, *aliases = entity.aliases or (None,)
    return item(
        entity.qid,
        labels={} if label is None else terms(**{lang: label}),
        aliases={lang: [{"language": lang, "value": alias} for alias in aliases]},
        claims=claims,
        sitelinks={site: {"site": site, "title": title}},
    )


def _snak(property_id: str, value: AmberValue) -> dict[str, Any]:
    if value.kind == ITEM:
        return item_snak(property_id, value.value)
    return snak(property_id, "quantity", "quantity", {"amount": value.value, "unit": value.unit})


def random_world(seed: int, *, n_people: int = 150) -> tuple[list[AmberEntity], dict[str, list[str]]]:
    """The entities of a random world, in the order of their numbers, and the texts of their pages."""
    rng = random.Random(seed)
    words = ("the", "Kate Bush", "St. John", "!!!", "Ada-Lee", "O'Neil", "a guitar", "1,234", "Łódź")
    names = ["Kate Bush", "St. John", "O'Neil", "Ada-Lee", "Łódź", '"Q" \\ x', "The The"]
    names += [f"{name} {number}" for name in names for number in range(n_people // 20)]
    values = [
        AmberEntity(
            f"Q{n}",
            rng.randint(5, 9999),
            tuple(rng.sample([f"thing {n}", f"thing-{n} x", words[n % 9]], 2)),
            ("Q9",),
            {},
        )
        for n in range(100, 112)
    ]
    makers = [f"Q{n}" for n in range(100, 114)]
    values[0] = AmberEntity(
        "Q100", 50, ("guitar",), ("Q9",), {"P3095": (AmberValue(ITEM, "Q101"), AmberValue(ITEM, "Q113"))}
    )
    people, texts = [], {}
    of_types = {
        ("Q5",): ["P1303", "P135", "P607", "P54", "P641"],
        ("Q5", "Q9"): ["P1303", "P19"],
        ("Q11424",): ["P161", "P58"],
        ("Q482994", "Q7366"): ["P175", "P264", "P658"],
        ("Q515",): ["P1082"],
    }
    for number in range(201, 201 + n_people):
        types = rng.choice([*of_types, ("Q5",), ("Q5",), ("Q11424",)])
        properties = {
            name: tuple(AmberValue(ITEM, rng.choice(makers)) for _ in range(rng.choice((0, 1, 1, 2))))
            for name in rng.sample(of_types[types], rng.choice((1, 1, 2)) if len(of_types[types]) > 1 else 1)
        }
        if "P1082" in properties:
            properties["P1082"] = (AmberValue(QUANTITY, f"+{rng.choice((7, 1234, 50))}", "1"),)
        aliases = rng.sample(names, rng.choice((1, 2, 2, 3)))
        entity = AmberEntity(
            f"Q{number}",
            rng.choice((5, 60, 900, 10**4, 10**6)) + rng.choice((0, 0, 1)),
            tuple(aliases),
            types,
            properties,
        )
        people.append(entity)
        if rng.random() < 0.9:
            named = [f"thing {value.value[1:]}" for own in properties.values() for value in own if rng.random() < 0.9]
            texts[entity.qid] = [
                f"{aliases[0]} had {rng.choice(words)}, {', '.join(named)} and 7 more.",
                "Filler. " * 200,
            ]
            texts[entity.qid] += ["It came late: thing 105."]
    return [*people, *values], texts


def make_release(
    releases: Releases, output: Path, *, runner: str = "local", workers: int | None = None, **options: Any
) -> MadeRelease:
    """Makes a release of AmbER sets."""
    given = AmberJobOptions(
        str(releases.kb), str(releases.wikidata), str(releases.pageviews), output=str(output), **options
    )
    flags = beam_flags(runner, workers=workers, beam_args=())
    return make_amber(given, flags=flags, progress=Progress(io.StringIO()))
