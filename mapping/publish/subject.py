"""The subject of a publication: a release with the releases in its folders, their description, and the owners of the
content."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.languages import edition_code, language_codes
from kbsource.release.kind import CardText, Kind, kind_of, read_content
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, InputFile, Manifest, input_files_of, snapshot_of, sources_of
from kbsource.web_addresses import web_address, with_scheme
from mapping.sources import all_sources

_MARKUP = re.compile(r"[^\w.:/?&=%,()+@~-]+")


@cache
def toml_facts(name: str) -> dict[str, Any]:
    """Returns the content of a TOML file of this package."""
    return tomllib.loads(resources.files("mapping.publish").joinpath(name).read_text("utf-8"))


def limits_of(card: CardText, values: Mapping[str, Any]) -> list[str]:
    """Returns the limitations of a release, given the text about its kind and the values of its manifest."""
    limits = [*card.limits]
    if ways := card.template_limits:
        has_definitions = (values.get("findings") or {}).get("template_definitions")
        way = (values.get("options") or {}).get("templates") if has_definitions else "rules"
        if (values.get("dump") or {}).get("content") == "html":
            way = "html"
        limits.insert(0, ways.get(str(way), ways["rules"]))
    return limits


@dataclass(frozen=True, eq=False)
class Part:
    """A published release: the whole, or a release in one of its folders."""

    folder: str  #: folder within the whole; empty for the whole itself
    kind: Kind[Any]
    manifest: Manifest

    @cached_property
    def values(self) -> dict[str, Any]:
        """Returns the content of its manifest as JSON values."""
        return self.manifest.to_json()

    @cached_property
    def manifest_entry(self) -> FileEntry:
        """Returns the file entry of its manifest."""
        content = self.manifest.to_bytes()
        path = join(self.folder, MANIFEST)
        return FileEntry(path, None, len(content), hashlib.sha256(content).hexdigest())

    def entries(self) -> Iterator[FileEntry]:
        """Lists its files and its manifest, by their paths in the published folder."""
        for entry in self.manifest.entries():
            yield self.located(entry)
        yield self.manifest_entry

    def located(self, entry: FileEntry) -> FileEntry:
        """Returns an entry of its manifest with the file's path in the whole."""
        return FileEntry(join(self.folder, entry.file), entry.rows, entry.bytes, entry.sha256)

    def inputs(self) -> list[InputFile]:
        """Returns the files that it was made from."""
        return [file for _, file in input_files_of(self.values.get("inputs"))]

    def sources(self) -> dict[str, str]:
        """Returns the releases that it was made from, by role, as the sha256 that each manifest has of itself."""
        return sources_of(self.values)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """The release that is published."""

    parts: tuple[Part, ...]  #: the release, then the releases in its folders
    licence: str | None = (
        None  #: SPDX identifier of the content's licence, for content whose licence is unknown; None to look it up
    )
    repo_id: str | None = None  #: future location on the hub, as ``owner/name``; None if unknown
    newest: str | None = None  #: day of the newest revision in the release, as ``20240102``; None if not determined
    day: str | None = None  #: day of publication, as ``2026-12-01``; None if not given

    @property
    def whole(self) -> Part:
        """Returns the whole release."""
        return self.parts[0]

    @property
    def card(self) -> CardText:
        """Returns the text about its kind."""
        card = self.whole.kind.card
        assert card is not None  # see ``read_parts``
        return card

    @cached_property
    def wiki(self) -> str | None:
        """Returns the database name of the wiki, like ``enwiki``; None if no manifest has it."""
        return next(filter(None, (_without_markup(snapshot_of(part.values)[0]) for part in self.parts)), None)

    @cached_property
    def host(self) -> str | None:
        """Returns the URL of the wiki, if a manifest has it."""
        return next(filter(None, map(web_address, map(with_scheme, self._at("dump", "site", "base_url")))), None)

    @cached_property
    def snapshot(self) -> str | None:
        """Returns the date of the dump, as ``20260101``; None if no manifest has it."""
        said = next(filter(None, (snapshot_of(part.values)[1] for part in self.parts)), "")
        return said if re.fullmatch("[0-9]{8}", said) else None

    @property
    def snapshot_day(self) -> str | None:
        """Returns the date of the dump, as ``2026-01-01``."""
        return None if self.snapshot is None else "-".join((self.snapshot[:4], self.snapshot[4:6], self.snapshot[6:8]))

    @property
    def version(self) -> str:
        """Returns the version of the publication: the date of the dump, as ``2026.1.1``; ``1.0.0`` without a date."""
        return "1.0.0" if self.snapshot_day is None else ".".join(str(int(n)) for n in self.snapshot_day.split("-"))

    @property
    def project(self) -> str | None:
        """Returns the end of the wiki's database name, like ``wiktionary``; None if it does not start with a language
        code."""
        found = re.fullmatch(r"([a-z_]+?)(wik[a-z]+)", self.wiki or "")
        return found[2] if found and edition_code(found[1]) in language_codes() else None

    @property
    def wikipedia_edition(self) -> str | None:
        """Returns the language code of a Wikipedia; None for another wiki, or if there is no wiki."""
        return edition_code((self.wiki or "").removesuffix("wiki")) if self.project == "wiki" else None

    @cached_property
    def languages(self) -> list[str]:
        """Returns the language codes of its texts, as far as the manifests give them."""
        said = self._first("dump", "site", "lang") or self._first("lang") or self.wikipedia_edition
        several = self.whole.values.get("options", {}).get("languages") or []
        return [code for code in (several if said is None else [said]) if code.isalpha() and len(code) in (2, 3)]

    @property
    def title(self) -> str:
        """Returns the title of the publication."""
        of = ", ".join(text for text in (self.wiki, self.snapshot_day) if text is not None)
        return f"{self.card.title} ({of})" if of else self.card.title

    @property
    def url(self) -> str | None:
        """Returns its future URL on the hub."""
        return None if self.repo_id is None else f"https://huggingface.co/datasets/{self.repo_id}"

    @property
    def datasets(self) -> list[str]:
        """Returns the distinct names of the benchmarks of its parts."""
        named = (part.values.get("dataset") for part in self.parts)
        return list(dict.fromkeys(name for name in named if isinstance(name, str)))

    def licence_of(self, held: str) -> str | None:
        """Returns the given licence for the first kind of content; None for other content."""
        return self.licence if self.card.holds[0] == held else None

    def _first(self, *path: str) -> str | None:
        """Returns the text at a path in the first manifest that has one there, without markup."""
        return next(filter(None, map(_without_markup, self._at(*path))), None)

    def _at(self, *path: str) -> Iterator[Any]:
        """Reads the value at a path in each manifest, or None."""
        for part in self.parts:
            value: Any = part.values
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            yield value


def _without_markup(value: Any) -> str:
    return _MARKUP.sub("", value) if isinstance(value, str) else ""


def read_parts(path: str, kinds: Sequence[Kind[Any]]) -> tuple[Part, ...]:
    """Returns a release and the releases in its folders.

    Raises:
        SetupError: there is no release, or its kind cannot be published; a DataError if it is damaged.
    """
    kind = kind_of(read_content(path), join(path, MANIFEST), [kind for kind in kinds if kind.card is not None])
    parts = [Part("", kind, kind.read(path))]
    for inner in parts[0].manifest.parts:
        assert kind.parts is not None
        parts.append(Part(inner.folder, kind.parts, kind.parts.read(join(path, inner.folder))))
    return tuple(parts)


TERMS_OF_4 = "20230607"
"""First dump date under version 4.0 of the licence, see ``licences.toml``."""
LICENCES: dict[str, dict[str, str]] = toml_facts("licences.toml")["licences"]
"""Licences that may be given, by SPDX identifier, with the name on the hub and the URL of their text."""


@dataclass(frozen=True, slots=True)
class Right:
    """A licence, or the statement that none is known."""

    what: str  #: description of the content under this licence
    holder: str  #: name of the owner to credit
    licence: str | None  #: SPDX identifier; None if the owners name no licence
    source: str  #: URL of the statement of the licence
    note: str = ""  #: remarks for users, or empty

    @property
    def shown(self) -> str:
        """Returns the licence as text."""
        return "none named; ask its owners" if self.licence is None else self.licence


def rights_of(subject: Subject) -> tuple[Right, ...]:
    """Returns the licences and owners of a release's content.

    Raises:
        SetupError: the release is from a wiki whose licence is unknown, and none is given.
    """
    return tuple(_rights(subject))


def _rights(subject: Subject) -> Iterator[Right]:
    known = toml_facts("licences.toml")
    for held in subject.card.holds:
        facts = known.get(held, {})
        if held == "wikipedia":
            of = " ".join(text for text in (subject.wiki, subject.snapshot_day) if text is not None)
            licence, holder, source, note = _of_wiki(subject)
            yield Right(f"text of the wiki ({of})" if of else "text of the wiki", holder, licence, source, note)
        elif held == "dataset":
            yield from map(_of_dataset, subject.datasets)
            if not subject.datasets:
                yield Right("questions of a data set", "its authors", None, "", "The manifest does not name it.")
        else:
            what = {"wikidata": "data of Wikidata", "pageviews": "page views"}[held]
            yield Right(what, facts["holder"], subject.licence_of(held) or facts["licence"], facts["source"])


def _of_wiki(subject: Subject) -> tuple[str, str, str, str]:
    """Returns licence, holder and source of a wiki's text, and further remarks."""
    known = toml_facts("licences.toml")
    if (own := known.get(f"{subject.wiki}@{subject.snapshot}")) is not None:
        return subject.licence or own["licence"], own["holder"], own["source"] or subject.host or "", ""
    facts, given = known["wikipedia"], subject.licence_of("wikipedia")
    if (holder := known["projects"].get(subject.project)) is None:
        if given is None:
            raise SetupError(
                f"wiki {subject.wiki or '?'}: kbsource does not know the licence of this wiki's text; name it with "
                f"--licence ({', '.join(LICENCES)})."
            )
        return given, f"contributors of {subject.wiki or 'the wiki'}", subject.host or "", ""
    if given is not None:
        return given, holder, facts["source"], ""
    is_new = (
        subject.snapshot or subject.newest or ""
    ) >= TERMS_OF_4  # if the newest revision is older, the date of its dump is unknown
    note = "" if is_new or subject.snapshot else facts["undated"]
    return facts["from_20230607" if is_new or note else "before"], holder, facts["source"], note


def _of_dataset(name: str) -> Right:
    source = all_sources().get(name)
    if source is None or (owned := source.ownership) is None:
        return Right(f"records of {name}", "their authors", None, "")
    return Right(f"records of {owned.title}", owned.holder, owned.licence, owned.url, owned.note)


def hub_licences(rights: tuple[Right, ...]) -> list[str]:
    """Returns the distinct names of the licences on the hub; ``other`` if one is unknown."""
    if any(right.licence is None for right in rights):
        return ["other"]
    return list(dict.fromkeys(LICENCES[right.licence]["hub"] for right in rights if right.licence is not None))


def holders(rights: tuple[Right, ...]) -> list[str]:
    """Returns the distinct holders to credit."""
    return list(dict.fromkeys(right.holder for right in rights))


def licence_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Returns the content of ``LICENSE``: the licence of each part, and where its text is."""
    parts = [
        f"{subject.title}\n\nEach part is under the licence that is named here; ATTRIBUTION.md lists the authors "
        f"to name."
    ]
    for right in rights:
        lines = [f"{right.what}: {right.shown}"]
        if right.licence is not None:
            lines.append(f"  {LICENCES[right.licence]['url']}")
        if right.note:
            lines.append(f"  {right.note}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def attribution_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Returns the content of ``ATTRIBUTION.md``: the owners, the sources, and that the work was changed."""
    day = subject.snapshot_day or "see the releases that it was made from"
    parts = [f"# Attribution\n\n{subject.title}. Snapshot: {day}."]
    for right in rights:
        said = f" See <{right.source}>." if right.source else ""
        licence = right.shown
        if right.licence is not None:
            licence = f"[{right.licence}]({LICENCES[right.licence]['url']})"
        parts.append(f"- {right.what}: by {right.holder}. Licence: {licence}.{said} {right.note}".rstrip())
    if "wikipedia" in subject.card.holds:
        parts.append(_permanent_links(subject))
    parts.append(
        "Changes: the text was extracted from its markup, without the parts that the card lists under limitations; "
        "nothing was reworded. If you share anything made from it, name the same authors, and share text under the "
        "same licence."
    )
    return "\n\n".join(parts) + "\n"


def _permanent_links(subject: Subject) -> str:
    if "pages" in subject.whole.manifest.tables:
        where = f" of <{subject.host}>" if subject.host else ""
        return (
            f"Every row of `pages` has in `url` the permanent link to the revision of its text{where}; the history of "
            f"that page names all of its authors."
        )
    edition = subject.wikipedia_edition
    if edition is None:
        return "The release of pages that this was made from has the permanent link to every revision."
    return (
        f"The page with the id N is at <https://{edition}.wikipedia.org/?curid=N>, and its history names all of its "
        "authors; the release of pages that this was made from has the permanent link to every revision."
    )
