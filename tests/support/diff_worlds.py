"""Small worlds of pages and redirects, changed by chance, and what a slow and obvious diff says of two of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbsource.diff.making import make_diff
from kbsource.records import Element, Page
from kbsource.release.manifest import ListingManifest
from tests.support.releases import TitleRow, redirect_to, write_release

_TIME = datetime(2019, 7, 19, 20, 25, 53, tzinfo=UTC)
WORDS = "the of river town bridge opened in century mill harbour goats song tower 北京 émigré lake".split()


@dataclass(frozen=True)
class WorldPage:
    """An article: its paragraphs; a heading is one that begins with ``= ``."""

    page_id: int
    title: str
    texts: tuple[str, ...]
    qid: str | None = None
    is_disambiguation: bool = False

    def page(self) -> Page:
        """Gives the page of a release."""
        elements = [Element("title", 1, None, "", (), self.title)]
        section: tuple[str, ...] = ()
        for text in self.texts:
            heading = text.removeprefix("= ")
            section = (heading,) if heading != text else section
            kind = "heading" if heading != text else "paragraph"
            elements.append(Element(kind, 2 if kind == "heading" else 0, None, "", section, heading))
        url = f"https://en.wikipedia.org/w/index.php?oldid={self.page_id}"
        facts = (self.page_id, self.title, self.qid, self.is_disambiguation, 7, None, _TIME, url)
        return Page(*facts, tuple(elements), *((),) * 9, "ok")


@dataclass
class World:
    """A wiki: pages by id, and redirects by title, each with its id and its target's title."""

    pages: dict[int, WorldPage] = field(default_factory=dict)
    redirects: dict[str, tuple[int, str]] = field(default_factory=dict)

    def copy(self) -> World:
        """Gives the same world, to be changed."""
        return World(dict(self.pages), dict(self.redirects))

    def titles(self) -> dict[str, int]:
        """Gives the pages by title."""
        return {page.title: page.page_id for page in self.pages.values()}

    def target(self, title: str | None) -> int | None:
        """Gives the page that a redirect leads to; None where it leads nowhere."""
        seen = set()
        while title in self.redirects and title not in seen:
            seen.add(title)
            title = self.redirects[title][1]
        return self.titles().get(title or "")


def write_world(folder: Path, world: World, *, wiki: str = "enwiki", date: str = "20190801") -> Path:
    """Writes a world as a release and gives its folder."""
    pages = [world.pages[page_id] for page_id in sorted(world.pages)]
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    titles += [redirect_to(page_id, title, target) for title, (page_id, target) in world.redirects.items()]
    n_rows = len(pages) // 2
    write_release(folder, (page.page() for page in pages), titles=titles, rows_per_shard=n_rows, wiki=wiki, date=date)
    return folder / "release"


def made_diff(folder: Path, seed: int, n_changes: int, *, n_moves: int = 0) -> Path:
    """Writes a world, the same changed by chance, and their diff, as ``old``, ``new`` and ``diff`` of a folder."""
    changes = Changes(seed)
    old = write_world(folder / "old", changes.world)
    changes.change(n_changes)
    for _ in range(n_moves):
        changes.move_text()
    make_diff(str(old), str(write_world(folder / "new", changes.world)), str(folder / "diff"))
    return folder


def sentence(rng: random.Random, n_words: int) -> str:
    """Gives a paragraph."""
    return " ".join(rng.choices(WORDS, k=n_words)) + "."


class Changes:
    """A world that changes by chance, with the ids and titles that are next."""

    def __init__(self, seed: int, n_pages: int = 24) -> None:
        self.rng, self._next_id = random.Random(seed), 1
        self.world = World()
        for _ in range(n_pages):
            self.add()
        for _ in range(n_pages // 3):
            self.world.redirects[f"Redirect {self._new_id()}"] = (self._new_id(), self.any_page().title)

    def _new_id(self) -> int:
        self._next_id += self.rng.randrange(1, 4)
        return self._next_id

    def any_page(self) -> WorldPage:
        """Gives some page."""
        return self.world.pages[self.rng.choice(sorted(self.world.pages))]

    def texts(self) -> tuple[str, ...]:
        """Gives the paragraphs of a page."""
        found: list[str] = []
        for number in range(self.rng.randrange(0, 6)):
            if self.rng.random() < 0.3:
                found.append(f"= Part {number}")
            found.append(sentence(self.rng, self.rng.choice((2, 12, 30))))
        return tuple(found)

    def put(self, page: WorldPage, **changes: Any) -> None:
        """Puts a page into the world."""
        self.world.pages[page.page_id] = replace(page, **changes)

    def add(self) -> None:
        page_id = self._new_id()
        qid = f"Q{page_id}" if self.rng.random() < 0.8 else None
        self.put(WorldPage(page_id, f"Page {page_id}", self.texts(), qid))

    def remove(self) -> WorldPage:
        page = self.any_page()
        return self.world.pages.pop(page.page_id)

    def edit(self) -> None:
        page = self.any_page()
        texts = list(page.texts) or [""]
        at = self.rng.randrange(len(texts))
        words = texts[at].split(" ")
        words[self.rng.randrange(len(words))] = "edited"
        texts[at] = " ".join(words)
        self.put(page, texts=tuple(texts))

    def shuffle(self) -> None:
        page = self.any_page()
        self.put(page, texts=tuple(self.rng.sample(page.texts, len(page.texts))))

    def rename(self) -> None:
        page = self.any_page()
        self.put(page, title=f"{page.title} ({self._new_id()})")
        if self.rng.random() < 0.7:
            self.world.redirects[page.title] = (self._new_id(), self.world.pages[page.page_id].title)

    def merge(self) -> None:
        page = self.remove()
        target = self.any_page()
        self.put(target, texts=target.texts + page.texts[:2])
        page_id = page.page_id if self.rng.random() < 0.7 else self._new_id()
        self.world.redirects[page.title] = (page_id, target.title)

    def split(self) -> None:
        if self.world.redirects:
            title = self.rng.choice(sorted(self.world.redirects))
            page_id, _ = self.world.redirects.pop(title)
            page_id = page_id if self.rng.random() < 0.7 else self._new_id()
            self.put(WorldPage(page_id, title, self.texts()))

    def recreate(self) -> None:
        page = self.remove()
        title = page.title if self.rng.random() < 0.5 else f"Again {self._new_id()}"
        qid = page.qid if self.rng.random() < 0.7 else None
        self.put(WorldPage(self._new_id(), title, page.texts if self.rng.random() < 0.5 else self.texts(), qid))

    def swap_items(self) -> None:
        first, second = self.any_page(), self.any_page()
        if first != second:
            self.put(first, qid=second.qid)
            self.put(second, qid=first.qid)

    def disambiguate(self) -> None:
        page = self.any_page()
        self.put(page, is_disambiguation=not page.is_disambiguation)

    def retarget(self) -> None:
        if self.world.redirects:
            title = self.rng.choice(sorted(self.world.redirects))
            to = self.rng.choice([self.any_page().title, "Nowhere", self.rng.choice(sorted(self.world.redirects))])
            self.world.redirects[title] = (self.world.redirects[title][0], to)

    def move_text(self) -> None:
        page, other = self.any_page(), self.any_page()
        if page.texts and page != other:
            self.put(page, texts=page.texts[1:])
            self.put(other, texts=(*other.texts, page.texts[0]))

    def change(self, n_times: int) -> None:
        """Changes the world in so many ways."""
        for _ in range(n_times):
            self.rng.choice(
                (
                    self.add, self.remove, self.edit, self.edit, self.shuffle, self.rename, self.merge, self.split,
                    self.recreate, self.swap_items, self.disambiguate, self.retarget, self.move_text,
                )
            )()  # fmt: skip


def page_rows(old: World, new: World) -> Iterator[dict[str, Any]]:
    """Gives what became of every page, by the rules of docs/diff.md, in any order."""
    pairs = {page_id: (page_id, "page_id") for page_id in old.pages if page_id in new.pages}

    def left() -> tuple[list[WorldPage], list[WorldPage]]:
        named = {new_id for new_id, _ in pairs.values()}
        return (
            [page for page_id, page in old.pages.items() if page_id not in pairs],
            [page for page_id, page in new.pages.items() if page_id not in named],
        )

    for name in ("qid", "title"):
        olds, news = left()
        by_value = {getattr(page, name): page.page_id for page in news if getattr(page, name) is not None}
        pairs |= {p.page_id: (by_value[v], name) for p in olds if (v := getattr(p, name)) in by_value}
    olds, news = left()
    for page in olds:
        if (target := _led(page, new)) is not None:
            pairs[page.page_id] = (target, "redirect")
    for page in olds:
        new_id, how = pairs.get(page.page_id, (None, None))
        yield _row(old, new, page.page_id, new_id, None, how)
    for page_id in old.pages.keys() - {page.page_id for page in olds}:
        yield _row(old, new, page_id, pairs[page_id][0], None, pairs[page_id][1])
    for page in news:
        origin = _led(page, old)
        yield _row(old, new, None, page.page_id, origin, None if origin is None else "redirect")


def _led(page: WorldPage, other: World) -> int | None:
    by_id = {page_id: title for title, (page_id, _) in other.redirects.items()}
    found = other.target(by_id.get(page.page_id))
    return other.target(page.title) if found is None and page.title in other.redirects else found


def _row(
    old: World, new: World, old_id: int | None, new_id: int | None, origin: int | None, how: str | None
) -> dict[str, Any]:
    before, after = old.pages.get(old_id or 0), new.pages.get(new_id or 0)
    row: dict[str, Any] = {"old_page_id": old_id, "new_page_id": new_id, "origin_page_id": origin, "matched_by": how}
    text_changed = title_changed = None
    if before is None:
        outcome = "added" if origin is None else "split"
    elif after is None:
        outcome = "gone"
    else:
        title_changed = before.title != after.title
        text_changed = [e.text for e in before.page().elements[1:]] != [e.text for e in after.page().elements[1:]]
        if how == "redirect":
            outcome = "merged"
        elif after.is_disambiguation and not before.is_disambiguation:
            outcome = "disambiguation"
        elif how != "page_id":
            outcome = "recreated"
        else:
            outcome = "renamed" if title_changed else "changed" if text_changed else "unchanged"
    holders = [page.page_id for page in new.pages.values() if before and before.qid and page.qid == before.qid]
    holder = holders[0] if holders else None
    moved = holder is not None and holder != new_id
    flags = {"text_changed": text_changed, "title_changed": title_changed, "qid_moved": moved, "qid_page_id": holder}
    return {**row, "outcome": outcome, **flags}


def redirect_rows(old: World, new: World, places: dict[int, int | None]) -> dict[str, str]:
    """Gives the outcome of every redirect that has one, by title; ``places`` says where old pages are now."""
    found = {}
    for title in old.redirects.keys() | new.redirects.keys():
        if title not in new.redirects:
            found[title] = "now_article" if title in new.titles() else "gone"
        elif title not in old.redirects:
            found[title] = "was_article" if title in old.titles() else "added"
        else:
            before, after = old.target(title), new.target(title)
            place = None if before is None else places[before]
            if (before is None and after is not None) or (before is not None and (after is None or after != place)):
                found[title] = "retargeted"
    return found


def outcomes(manifest: ListingManifest, table: str = "page_changes") -> dict[str, int]:
    """Gives the counts of a diff that are not zero."""
    return {name: n for name, n in manifest.facts["counts"][table].items() if n}
