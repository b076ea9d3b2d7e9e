"""What is published: a release with those in its folders, and what is known of it beside its files."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

from kbsource.files import Storage, join
from kbsource.languages import edition_code, language_codes
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, InputFile, Manifest

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
    """Gives a TOML file of this package."""
    return tomllib.loads(resources.files("mapping.publish").joinpath(name).read_text("utf-8"))


def about(kind: Kind[Any]) -> About:
    """Gives what is said of a kind in words."""
    return About(**toml_facts("kinds.toml")[kind.format.rpartition("-")[0]])


@dataclass(frozen=True, eq=False)
class Part:
    """A release that is published: the whole, or one in a folder of it.

    Attributes:
        folder: in the whole; empty for the whole itself.
        kind, manifest: of it.
    """

    folder: str
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
        """Gives its files and its manifest, by their path in the whole."""
        for entry in self.manifest.entries():
            yield self.located(entry)
        yield self.manifest_entry

    def located(self, entry: FileEntry) -> FileEntry:
        """Gives an entry of its manifest by the file's path in the whole."""
        return FileEntry(join(self.folder, entry.file), entry.rows, entry.bytes, entry.sha256)

    def inputs(self) -> list[InputFile]:
        """Gives the files that it was made from."""
        return list(_input_files(self.values.get("inputs", ())))

    def sources(self) -> dict[str, str]:
        """Gives the releases that it was made from, by what they are: the sha256 that each manifest has of itself."""
        named = {name: value for name, value in self.values.items() if isinstance(value, dict)}
        return {name: value["manifest_sha256"] for name, value in named.items() if "manifest_sha256" in value}


def _input_files(value: Any) -> Iterator[InputFile]:
    if isinstance(value, Mapping) and {"name", "bytes", "sha256"} <= value.keys():
        yield InputFile(value["name"], value["bytes"], value["sha256"])
    elif isinstance(value, Mapping):
        for name in sorted(value):
            yield from _input_files(value[name])
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _input_files(inner)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What is published.

    Attributes:
        parts: the release, then those in its folders.
        licence: SPDX identifier of what it holds, where that is not known; None to look it up.
        repo_id: where on the hub it will lie, as ``owner/name``; None where that is not said.
        day: of publication, as ``2026-12-01``; None where that is not said.
    """

    parts: tuple[Part, ...]
    licence: str | None = None
    repo_id: str | None = None
    day: str | None = None
    about: About = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "about", about(self.whole.kind))

    @property
    def whole(self) -> Part:
        """The release."""
        return self.parts[0]

    @cached_property
    def wiki(self) -> str | None:
        """Database name of the wiki, like ``enwiki``; None where no manifest has it."""
        named = self._first("dump", "site", "dbname") or self._first("release", "wiki")
        return named or self._first("options", "site")

    @cached_property
    def host(self) -> str | None:
        """Address of the wiki, where the manifest has it."""
        return self._first("dump", "site", "base_url")

    @cached_property
    def snapshot(self) -> str | None:
        """Date of the dump, as ``20260101``; None where no manifest has it."""
        said = self._first("dump", "date") or self._first("release", "dump_date") or self._first("date") or ""
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
    def wikipedia_edition(self) -> str | None:
        """Code of the Wikipedia that the wiki is; None for another wiki, and for none."""
        name, found, rest = (self.wiki or "").partition("wiki")
        code = edition_code(name)
        return code if found and not rest and code in language_codes() else None

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
        """Gives the licence that was given for what it holds first; None for the rest."""
        return self.licence if self.about.holds[0] == held else None

    def _first(self, *path: str) -> str | None:
        """Gives the text at a path in the first manifest that has one there, without markup."""
        for part in self.parts:
            value: Any = part.values
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            if isinstance(value, str) and (text := _MARKUP.sub("", value)):
                return text
        return None


def read_parts(path: str, kinds: Sequence[Kind[Any]], storage: Storage) -> tuple[Part, ...]:
    """Gives a release and those in its folders.

    Raises:
        SetupError: there is none, or it is of none of these kinds; a DataError for a damaged one.
    """
    kind = kind_of(read_content(path, storage), join(path, MANIFEST), kinds)
    parts = [Part("", kind, kind.read(path, storage))]
    for inner in parts[0].manifest.parts:
        assert kind.parts is not None
        parts.append(Part(inner.folder, kind.parts, kind.parts.read(join(path, inner.folder), storage)))
    return tuple(parts)
