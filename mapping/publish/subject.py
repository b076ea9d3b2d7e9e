"""What is published: a release with those in its folders, what is known of it in words, and whose work it is."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.languages import edition_code, language_codes
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, InputFile, Manifest, input_files_of, snapshot_of, sources_of
from kbsource.web_addresses import web_address, with_scheme
from mapping.sources import all_sources

_MARKUP = re.compile(r"[^\w.:/?&=%,()+@~-]+")


@dataclass(frozen=True, slots=True)
class About:
    """What ``kinds.toml`` says of a kind; the meanings stand there."""

    title: str
    summary: str
    main: str
    holds: Sequence[str]
    tasks: Sequence[str]
    tags: Sequence[str]
    limits: Sequence[str]


@cache
def toml_facts(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads(resources.files("mapping.publish").joinpath(name).read_text("utf-8"))


def about(kind: Kind[Any], values: Mapping[str, Any]) -> About:
    """What is said of a kind in words, and of a release by what its manifest says."""
    facts = dict(toml_facts("kinds.toml")[kind.format.rpartition("-")[0]])
    if (ways := facts.pop("templates", None)) is not None:
        has_definitions = (values.get("findings") or {}).get("template_definitions")
        way = (values.get("options") or {}).get("templates") if has_definitions else "rules"
        facts["limits"] = [ways.get(way, ways["rules"]), *facts["limits"]]
    return About(**facts)


@dataclass(frozen=True, eq=False)
class Part:
    """A release that is published: the whole, or one in a folder of it."""

    folder: str  #: in the whole; empty for the whole itself
    kind: Kind[Any]
    manifest: Manifest

    @cached_property
    def values(self) -> dict[str, Any]:
        """What its manifest says, as JSON values."""
        return self.manifest.to_json()

    @cached_property
    def manifest_entry(self) -> FileEntry:
        """Its manifest as a file."""
        content = self.manifest.to_bytes()
        path = join(self.folder, MANIFEST)
        return FileEntry(path, None, len(content), hashlib.sha256(content).hexdigest())

    def entries(self) -> Iterator[FileEntry]:
        """Its files and its manifest, by their path in the whole."""
        for entry in self.manifest.entries():
            yield self.located(entry)
        yield self.manifest_entry

    def located(self, entry: FileEntry) -> FileEntry:
        """An entry of its manifest by the file's path in the whole."""
        return FileEntry(join(self.folder, entry.file), entry.rows, entry.bytes, entry.sha256)

    def inputs(self) -> list[InputFile]:
        """The files that it was made from."""
        return [file for _, file in input_files_of(self.values.get("inputs"))]

    def sources(self) -> dict[str, str]:
        """The releases that it was made from, by what they are: the sha256 that each manifest has of itself."""
        return sources_of(self.values)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What is published."""

    parts: tuple[Part, ...]  #: the release, then those in its folders
    licence: str | None = None  #: SPDX identifier of what it holds, where that is not known; None to look it up
    repo_id: str | None = None  #: where on the hub it will lie, as ``owner/name``; None where that is not said
    newest: str | None = None  #: day of the newest revision in it, as ``20240102``; None where it was not looked for
    day: str | None = None  #: of publication, as ``2026-12-01``; None where that is not said
    about: About = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "about", about(self.whole.kind, self.whole.values))

    @property
    def whole(self) -> Part:
        """The release."""
        return self.parts[0]

    @cached_property
    def wiki(self) -> str | None:
        """Database name of the wiki, like ``enwiki``; None where no manifest has it."""
        return next(filter(None, (_without_markup(snapshot_of(part.values)[0]) for part in self.parts)), None)

    @cached_property
    def host(self) -> str | None:
        """Address of the wiki, where the manifest has it."""
        return next(filter(None, map(web_address, map(with_scheme, self._at("dump", "site", "base_url")))), None)

    @cached_property
    def snapshot(self) -> str | None:
        """Date of the dump, as ``20260101``; None where no manifest has it."""
        said = next(filter(None, (snapshot_of(part.values)[1] for part in self.parts)), "")
        return said if re.fullmatch("[0-9]{8}", said) else None

    @property
    def snapshot_day(self) -> str | None:
        """Date of the dump, as ``2026-01-01``."""
        return None if self.snapshot is None else "-".join((self.snapshot[:4], self.snapshot[4:6], self.snapshot[6:8]))

    @property
    def version(self) -> str:
        """Version of what is published: the date of the dump, ``2026.1.1``; ``1.0.0`` without one."""
        return "1.0.0" if self.snapshot_day is None else ".".join(str(int(n)) for n in self.snapshot_day.split("-"))

    @property
    def project(self) -> str | None:
        """What the name of the wiki's database ends in, like ``wiktionary``; None where no language goes before."""
        found = re.fullmatch(r"([a-z_]+?)(wik[a-z]+)", self.wiki or "")
        return found[2] if found and edition_code(found[1]) in language_codes() else None

    @property
    def wikipedia_edition(self) -> str | None:
        """Code of the Wikipedia that the wiki is; None for another wiki, and for none."""
        return edition_code((self.wiki or "").removesuffix("wiki")) if self.project == "wiki" else None

    @cached_property
    def languages(self) -> list[str]:
        """Codes of the languages of its texts, as far as the manifests say."""
        said = self._first("dump", "site", "lang") or self._first("lang") or self.wikipedia_edition
        several = self.whole.values.get("options", {}).get("languages") or []
        return [code for code in (several if said is None else [said]) if code.isalpha() and len(code) in (2, 3)]

    @property
    def title(self) -> str:
        """What it is called."""
        of = ", ".join(text for text in (self.wiki, self.snapshot_day) if text is not None)
        return f"{self.about.title} ({of})" if of else self.about.title

    @property
    def url(self) -> str | None:
        """Where on the hub it will lie."""
        return None if self.repo_id is None else f"https://huggingface.co/datasets/{self.repo_id}"

    @property
    def datasets(self) -> list[str]:
        """Names of the benchmarks that its parts are of, each once."""
        named = (part.values.get("dataset") for part in self.parts)
        return list(dict.fromkeys(name for name in named if isinstance(name, str)))

    def licence_of(self, held: str) -> str | None:
        """The licence that was given for what it holds first; None for the rest."""
        return self.licence if self.about.holds[0] == held else None

    def _first(self, *path: str) -> str | None:
        """The text at a path in the first manifest that has one there, without markup."""
        return next(filter(None, map(_without_markup, self._at(*path))), None)

    def _at(self, *path: str) -> Iterator[Any]:
        """What each manifest has at a path, None for nothing."""
        for part in self.parts:
            value: Any = part.values
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            yield value


def _without_markup(value: Any) -> str:
    return _MARKUP.sub("", value) if isinstance(value, str) else ""


def read_parts(path: str, kinds: Sequence[Kind[Any]]) -> tuple[Part, ...]:
    """A release and those in its folders.

    Raises:
        SetupError: there is none, or it is of none of these kinds; a DataError for a damaged one.
    """
    kind = kind_of(read_content(path), join(path, MANIFEST), kinds)
    parts = [Part("", kind, kind.read(path))]
    for inner in parts[0].manifest.parts:
        assert kind.parts is not None
        parts.append(Part(inner.folder, kind.parts, kind.parts.read(join(path, inner.folder))))
    return tuple(parts)


TERMS_OF_4 = "20230607"
"""Dumps of this day and later are under version 4.0, see ``licences.toml``."""
LICENCES: dict[str, dict[str, str]] = toml_facts("licences.toml")["licences"]
"""Licences that may be named, by SPDX identifier, with the hub's name and the address of their text."""


@dataclass(frozen=True, slots=True)
class Right:
    """A licence, or that none is known."""

    what: str  #: is under it
    holder: str  #: whom to name
    licence: str | None  #: SPDX identifier; None where the owners name none
    source: str  #: address where that is said
    note: str = ""  #: what else to know

    @property
    def shown(self) -> str:
        """The licence for reading."""
        return "none named; ask its owners" if self.licence is None else self.licence


def rights_of(subject: Subject) -> tuple[Right, ...]:
    """Whose work is in a release.

    Raises:
        SetupError: it is from a wiki whose licence is not known, and none is given.
    """
    return tuple(_rights(subject))


def _rights(subject: Subject) -> Iterator[Right]:
    known = toml_facts("licences.toml")
    for held in subject.about.holds:
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
    """Licence, holder and source of a wiki's text, and what else to know."""
    known = toml_facts("licences.toml")
    if (own := known.get(f"{subject.wiki}@{subject.snapshot}")) is not None:
        return subject.licence or own["licence"], own["holder"], own["source"] or subject.host or "", ""
    facts, given = known["wikipedia"], subject.licence_of("wikipedia")
    if (holder := known["projects"].get(subject.project)) is None:
        if given is None:
            raise SetupError(
                f"wiki {subject.wiki or '?'}: none of Wikimedia's whose licence is known here; give that of its text "
                f"with --licence ({', '.join(LICENCES)})."
            )
        return given, f"contributors of {subject.wiki or 'the wiki'}", subject.host or "", ""
    if given is not None:
        return given, holder, facts["source"], ""
    is_new = (subject.snapshot or subject.newest or "") >= TERMS_OF_4  # an older revision says nothing of its dump
    note = "" if is_new or subject.snapshot else facts["undated"]
    return facts["from_20230607" if is_new or note else "before"], holder, facts["source"], note


def _of_dataset(name: str) -> Right:
    source = all_sources().get(name)
    if source is None or (owned := source.ownership) is None:
        return Right(f"records of {name}", "their authors", None, "")
    return Right(f"records of {owned.title}", owned.holder, owned.licence, owned.url, owned.note)


def hub_licences(rights: tuple[Right, ...]) -> list[str]:
    """The hub's names of the licences, each once; ``other`` where one is not known."""
    if any(right.licence is None for right in rights):
        return ["other"]
    return list(dict.fromkeys(LICENCES[right.licence]["hub"] for right in rights if right.licence is not None))


def holders(rights: tuple[Right, ...]) -> list[str]:
    """Whom to name, each once."""
    return list(dict.fromkeys(right.holder for right in rights))


def licence_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """The file ``LICENSE``: what is under which licence, and where its text is."""
    parts = [f"{subject.title}\n\nEach part is under the licence that is named here; ATTRIBUTION.md says whom to name."]
    for right in rights:
        lines = [f"{right.what}: {right.shown}"]
        if right.licence is not None:
            lines.append(f"  {LICENCES[right.licence]['url']}")
        if right.note:
            lines.append(f"  {right.note}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def attribution_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """The file ``ATTRIBUTION.md``: whose work it is, where it is, and that it was changed."""
    parts = [f"# Attribution\n\n{subject.title}. Snapshot: {subject.snapshot_day or 'see what it was made from'}."]
    for right in rights:
        said = f" See <{right.source}>." if right.source else ""
        licence = right.shown
        if right.licence is not None:
            licence = f"[{right.licence}]({LICENCES[right.licence]['url']})"
        parts.append(f"- {right.what}: by {right.holder}. Licence: {licence}.{said} {right.note}".rstrip())
    if "wikipedia" in subject.about.holds:
        parts.append(_permanent_links(subject))
    parts.append(
        "Changes: the text was taken out of its markup, and what the card names among the limitations was left out; "
        "nothing was reworded. Whoever shares what is made from it names the same authors, and shares text under the "
        "same licence."
    )
    return "\n\n".join(parts) + "\n"


def _permanent_links(subject: Subject) -> str:
    if "pages" in subject.whole.manifest.tables:
        where = f" of <{subject.host}>" if subject.host else ""
        return (
            f"Every row of `pages` has in `url` the permanent link to the revision{where} that its text is of; the "
            "history that this leads to names all of its authors."
        )
    edition = subject.wikipedia_edition
    if edition is None:
        return "The release of pages that this was made from has the permanent link to every revision."
    return (
        f"The page with the id N is at <https://{edition}.wikipedia.org/?curid=N>, and its history names all of its "
        "authors; the release of pages that this was made from has the permanent link to every revision."
    )
