"""Made-up worlds: items with statements, the pages of some of them, and QAMPARI releases made of them."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from kbsource.records import Anchor, Element, Page
from pipelines.jobs import qampari as job
from pipelines.options.qampari import QampariOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support.entities import array, item, item_snak, make, snak, statement, terms
from tests.support.releases import TitleRow, write_release

RELATIONS = """
wanted_types = ["film", "painting", "ship"]
type_words = { painting = "canvas" }
[simple]
P50 = { label = "author", ask = "Which", noun = "books", predicate = "were written by {entity}", \
claim = "was written by {entity}" }
P57 = { label = "director", ask = "Which", predicate = "was directed by {entity}" }
P19 = { label = "place of birth", ask = "Who", predicate = "was born in {entity}" }
P27 = { label = "citizenship", ask = "Who", predicate = "is a citizen of {entity}", enabled = false }
[types]
P57 = ["film", "painting"]
[composition]
P407 = { noun = "languages", ask = "What", link = "of", claim = "{entity} is in {value}" }
P577 = { noun = "years", ask = "What", link = "of", claim = "{entity} came out in {value}" }
P1082 = { noun = "sizes", ask = "What", link = "of", claim = "{entity} has {value} parts" }
P1476 = { noun = "titles", ask = "What", link = "of", claim = "{entity} is called {value}" }
P50 = { noun = "authors", ask = "Who", link = "of" }
P58 = { noun = "screenwriters", ask = "Who", link = "of", claim = "{value} wrote {entity}", enabled = false }
"""
_DATATYPES = {"P577": "time", "P1082": "quantity", "P1476": "monolingualtext", "P582": "time"}
_CLAIM = re.compile(r"(?P<rank>[+-]?)(?P<property>P\d+) (?P<value>.+?)(?P<ended> ended)?")
_RANKS = {"+": "preferred", "-": "deprecated", "": "normal"}
AWKWARD = (
    "C++|U2|A.B. Yehoshua|What?|x.*y|[a-z]+|Łódź|Москва|東京|İzmir|ΟΔΥΣΣΕΥΣ|Straße|Kate|Kate Bush|Bush|"
    "Dr. No. Who|foo\\bar|$100|a|1984|12|R.E.M.|{entity}|{value}|%s|e\u0301t|ſtone|-dash-|It is|the|"
    f"  padded|padded |    |No\u00a0break|Ring Ring|Long {'very long name ' * 12}end"
).split("|")
"""Names that are parts of one another, of questions, of numbers, or of patterns; with blanks around, or blanks
alone."""
_LINK = re.compile(r"\[\[Q(\d+)\|([^]]*)\]\]")


class World(NamedTuple):
    """Folders of the two releases and the file of relations."""

    kb: Path
    wikidata: Path
    relations: Path


class Maker:
    """Takes items with their pages, and writes them as releases.

    Args:
        without: properties that Wikidata has no entity of.
    """

    def __init__(self, *, without: Sequence[str] = ()) -> None:
        self._entities: list[dict[str, Any]] = [
            {"type": "property", "id": name, "datatype": _DATATYPES.get(name, "wikibase-item"), "claims": []}
            for name in ("P19", "P27", "P31", "P50", "P57", "P58", "P279", "P407", "P577", "P582", "P1082", "P1476")
            if name not in without
        ]
        self._pages: list[Page] = []

    def add(
        self,
        item_id: str,
        label: str | None,
        *claims: str,
        page: Sequence[str] | None = None,
        title: str | None = None,
        language: str = "en",
        aliases: Sequence[str] = (),
    ) -> None:
        """Takes an item.

        Args:
            item_id: such as Q7; its page has ten times the number.
            label: None for none.
            claims: ``P50 Q7``; a deprecated one begins with ``-``, a preferred one with ``+``; `` ended`` behind it.
            page: its paragraphs, with links ``[[Q7|text]]``; None for no page.
            title: of the page, where it is not the label.
            language: of the label.
            aliases: in English.
        """
        by_property: dict[str, list[Any]] = {}
        for claim in claims:
            found = _CLAIM.fullmatch(claim)
            assert found, claim
            ended = {"qualifiers": {"P582": [_snak("P582", "1990")]}} if found["ended"] else {}
            made_statement = statement(_snak(found["property"], found["value"]), rank=_RANKS[found["rank"]], **ended)
            by_property.setdefault(found["property"], []).append(made_statement)
        labels = terms(**{language: label}) if label else []
        also = {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else []
        self._entities.append(item(item_id, labels=labels, aliases=also, claims=by_property))
        if page is not None:
            self._pages.append(_page(item_id, title or label or item_id, page))

    def claim(self, item_id: str, statement_json: dict[str, Any]) -> None:
        """Takes a statement of an item that was added, which comes before its others."""
        (found,) = (entity for entity in self._entities if entity["id"] == item_id)
        found["claims"].setdefault(statement_json["property"], []).insert(0, statement(statement_json))

    def write(self, folder: Path) -> World:
        """Writes both releases and the relations."""
        pages = sorted(self._pages, key=lambda page: page.page_id)
        titles = [TitleRow(page.page_id, page.title) for page in pages]
        write_release(folder / "kb", pages, titles=titles, rows_per_shard=len(pages) // 3 + 1, n_shards=3)
        (folder / "dump.json").write_bytes(array(self._entities))
        make(folder / "dump.json", output=folder / "wikidata")
        (folder / "relations.toml").write_text(RELATIONS, "utf-8")
        return World(folder / "kb" / "release", folder / "wikidata", folder / "relations.toml")


def _snak(property_id: str, value: str) -> dict[str, Any]:
    kind = _DATATYPES.get(property_id, "wikibase-item")
    if kind == "wikibase-item":
        return item_snak(property_id, value)
    if kind == "quantity":
        return snak(property_id, kind, kind, {"amount": f"+{value}", "unit": "1"})
    if kind == "monolingualtext":
        return snak(property_id, kind, kind, {"language": "en", "text": value})
    day = {"time": f"+{int(value):04d}-00-00T00:00:00Z", "timezone": 0, "before": 0, "after": 0, "precision": 9}
    return snak(property_id, kind, kind, {**day, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"})


def _page(item_id: str, title: str, paragraphs: Sequence[str]) -> Page:
    elements, anchors = [Element("title", 1, None, "", (), title)], []
    for number, written in enumerate(paragraphs, 1):
        text, at = "", 0
        for link in _LINK.finditer(written):
            text += written[at : link.start()]
            words, target = link[2], 10 * int(link[1])
            anchors.append(Anchor(number, len(text), len(text) + len(words), words, words, None, target, words))
            text, at = text + words, link.end()
        elements.append(Element("paragraph", 0, None, "", (), text + written[at:]))
    empty: tuple[Any, ...] = ()
    return Page(
        page_id=10 * int(item_id[1:]),
        title=title,
        qid=item_id,
        is_disambiguation=False,
        revision_id=1,
        parent_revision_id=None,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        url=f"https://en.wikipedia.org/w/index.php?title={item_id}&oldid=1",
        elements=tuple(elements),
        anchors=tuple(anchors),
        categories=empty,
        template_categories=empty,
        category_sort_keys=empty,
        redirects=empty,
        tables=empty,
        infoboxes=empty,
        templates=empty,
        losses=empty,
        parse_status="ok",
    )


def random_maker(seed: int, *, n_works: int = 200, n_awkward: int = 0) -> Maker:
    """A world of works with authors, directors and languages, where pages say a part of it.

    Args:
        seed: of the world.
        n_works: works in it.
        n_awkward: names in ten that are ``AWKWARD`` ones.
    """
    rng = random.Random(seed)
    maker = Maker()
    maker.add("Q1", "film")
    maker.add("Q2", "painting")
    maker.add("Q3", "short film", "P279 Q1")
    people, tongues = range(11, 23), range(41, 52)
    names = {number: _name(rng, n_awkward) for number in (*people, *tongues)}
    said: dict[int, list[str]] = {number: [] for number in names}
    for work in range(101, 101 + n_works):
        name, own = _name(rng, n_awkward) if rng.random() < 0.9 else "Same Again", list[str]()
        claims = [f"P31 Q{type_number}" for type_number in (1, 2, 3, 9) if rng.random() < 0.4]
        author = min(rng.choices(people, k=2))
        for property_id, targets, words in (
            ("P50", people, "was written by"),
            ("P57", people, "was directed by"),
            ("P407", tongues, "is in"),
        ):
            chosen = rng.sample(list(targets), rng.choice((0, 1, 1, 2)))
            if property_id == "P50" or (property_id == "P57" and rng.random() < 0.6):
                chosen = sorted({author if property_id == "P50" else 30 - author, *chosen[:1]} & set(targets))
            for target in chosen:
                rank, ended = rng.choice(("", "", "", "", "", "-", "+")), " ended" * (rng.random() < 0.1)
                claims.append(f"{rank}{property_id} Q{target}{ended}")
                other = names[target]
                sentence = rng.choice(
                    (
                        f"{name} {words} {other}.",
                        f"{name} {words} {other}.",
                        f"Some day {other} saw {name} there.",
                        f"They know {name} and [[Q{target}|this one]].",
                        rng.choice((f"It {words} {other}.", "Nothing is known.")),
                    )
                )
                rng.choice((own, said[target])).append(f"{sentence} {rng.choice(('It rains. ', ''))}It is old.")
        for property_id, value, words in (
            ("P577", str(rng.randint(900, 2020)), "came out in"),
            ("P1082", str(rng.choice((7, 120, 1250, 61390))), "has"),
            ("P1476", _name(rng, n_awkward), "is called"),
        ):
            if rng.random() < 0.6:
                claims.append(f"{property_id} {value}")
                shown = f"{int(value):,}" if property_id == "P1082" else value
                own += [f"{name} {words} {shown} parts."] if rng.random() < 0.85 else []
        has_page, label = rng.random() < 0.8, name if rng.random() < 0.95 else None
        maker.add(
            f"Q{work}",
            label,
            *claims,
            page=[f"{name} is a work.", *own] if has_page else None,
            title=" ".join(f"{name} ({work})".split()),
            language=rng.choice(("en", "en", "mul", "en-gb")),
            aliases=[name[:3], f"The {name}"] if rng.random() < 0.3 else (),
        )
    for number, name in names.items():
        has_page, is_named = rng.random() < 0.7, rng.random() < 0.7
        paragraphs = [f"{name} is here.", *said[number]] if has_page else None
        aliases = [(name.split() or [name])[0]] if is_named else ()
        title = " ".join(f"{name} ({number})".split()) if n_awkward else name
        maker.add(f"Q{number}", name if is_named else None, page=paragraphs, title=title, aliases=aliases)
    return maker


def _name(rng: random.Random, n_awkward: int = 0) -> str:
    if n_awkward and rng.randrange(10) < n_awkward:
        return rng.choice(AWKWARD)
    words = ("".join(rng.choices(("ka", "lo", "mi", "ru", "te", "vo", "sa"), k=3)).title() for _ in range(2))
    return " ".join(words)


def run_job(options: QampariOptions, *, runner: str = "local", workers: int | None = None) -> job.MadeRelease:
    """Makes a release as the command does."""
    flags = beam_flags(runner, workers=workers, beam_args=())
    return job.make_qampari(options, flags=flags, progress=Progress(io.StringIO()))


def options_for(world: World, output: Path, **options: Any) -> QampariOptions:
    """The options of a release of a world, without a model unless told otherwise."""
    given = {"model": None, "relations": str(world.relations), **options}
    return QampariOptions(kb=str(world.kb), wikidata=str(world.wikidata), output=str(output), **given)
