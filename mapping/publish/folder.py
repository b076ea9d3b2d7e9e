"""Writes the folder to upload: the files of a release unchanged, and files that describe it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from kbsource.errors import SetupError
from kbsource.files import Folder, is_local, join
from kbsource.release.kind import Kind
from kbsource.release.layout import EXTRA, MANIFEST
from kbsource.release.manifest import canonical_json
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_sizes
from kbsource.release.sql import add_release, connected
from mapping.publish.card import card_text
from mapping.publish.catalogues import citation_file, croissant_of, prov_of
from mapping.publish.configs import Config, configs_of, write_as_parquet
from mapping.publish.subject import Subject, attribution_text, licence_text, read_parts, rights_of

LinkMode = Literal["auto", "link", "copy"]
"""How files are added to the folder: as hard links, which take no space; as copies; or as links if possible."""


def publish_release(
    path: str,
    output: str,
    kinds: Sequence[Kind[Any]],
    *,
    link_mode: LinkMode = "auto",
    licence: str | None = None,
    repo_id: str | None = None,
    day: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Subject:
    """Writes a release and its descriptions to a folder, and returns a description of the result. The release stays
    unchanged.

    The same release and options produce the same bytes. ``on_progress`` is called with the bytes done and the total.

    Raises:
        SetupError: there is no such release, a file of it is missing or truncated, its licence is unknown, hard links
            are requested but impossible, or ``output`` is not empty.
    """
    subject = Subject(parts=read_parts(path, kinds), licence=licence, repo_id=repo_id, day=day)
    whole, folders = subject.whole, [part.folder for part in subject.parts[1:]]
    entries = [entry for part in subject.parts for entry in part.entries()]
    check_sizes(path, entries)
    if subject.snapshot is None and subject.whole.kind is PAGES_RELEASE:
        with connected(reads=[path]) as db:
            add_release(db, PAGES_RELEASE, path)
            asked = "select strftime(make_timestamp(epoch_us(max(timestamp))), '%Y%m%d') from pages"
            subject = replace(subject, newest=db.execute(asked).fetchall()[0][0])
    rights_of(subject)  # fails before anything is written
    configs = configs_of(subject, path)
    done, total = 0, sum(entry.bytes for entry in entries)
    with ReleaseFolder(output, kind=whole.kind, further=(*EXTRA, *folders)):
        for entry in entries:
            if entry.file != MANIFEST:  # commit writes it last
                _bring(join(path, entry.file), join(output, entry.file), link_mode)
            done += entry.bytes
            if on_progress is not None:
                on_progress(done, total)
        for number, config in enumerate(configs):
            if config.table is None:  # line files, which are converted into one file
                schema, splits = write_as_parquet(config.splits, config.name, folder=path, output=output)
                configs[number] = replace(config, schema=schema, splits=splits)
        for name, content in _texts(subject, configs).items():
            with Folder.of(join(output, name)).create() as file:
                file.write(content)
        commit(whole.kind, whole.manifest, output, kept=folders)
    return subject


def _texts(subject: Subject, configs: Sequence[Config]) -> dict[str, bytes]:
    """Returns the files that describe a release, by name."""
    rights = rights_of(subject)
    return {
        "README.md": card_text(subject, configs, rights).encode(),
        "LICENSE": licence_text(subject, rights).encode(),
        "ATTRIBUTION.md": attribution_text(subject, rights).encode(),
        "CITATION.cff": citation_file(subject, rights).encode(),
        "croissant.json": canonical_json(croissant_of(subject, configs, rights)),
        "prov.json": canonical_json(prov_of(subject)),
    }


def _bring(source: str, target: str, link_mode: LinkMode) -> None:
    """Links or copies a file."""
    if link_mode != "copy":
        try:
            if not (is_local(source) and is_local(target)):
                raise OSError("not on a local disk")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.link(source, target)
            return
        except OSError as error:
            if link_mode == "link":
                raise SetupError(f"{target}: cannot make a hard link to {source} ({error}); use --copy.") from error
    with Folder.of(source).open() as read, Folder.of(target).create() as written:
        shutil.copyfileobj(read, written, 1 << 20)
