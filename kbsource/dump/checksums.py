"""Published sizes and checksums of dump files, and the hashes of what was downloaded.

Source: https://dumps.wikimedia.org/<wiki>/<date>/ (md5sums, sha1sums, dumpstatus.json) and the Content File
Exports (SHA256SUMS), as published in 2026.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

import orjson

from kbsource.errors import SetupError
from kbsource.files import Storage, base_name, join

_LINE = re.compile(r"\A([0-9a-fA-F]{32,128})\s+\*?(.+?)\s*\Z")
_DUMP_PREFIX = re.compile(r"\A[a-z0-9_]+-(?:\d{8}|latest|\d{4}-\d\d-\d\d)(?=-)")
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_LISTS = (
    "md5sums.txt",
    "sha1sums.txt",
    "sha256sums.txt",
    "MD5SUMS",
    "SHA1SUMS",
    "SHA256SUMS",
)
_OWN_LISTS = (".md5", ".sha1", ".sha256")


@dataclass(slots=True)
class Published:
    """What is published about one file.

    Attributes:
        n_bytes: size, None when it is not told.
        digests: (algorithm, hex digest, name of the list it is from).
        unfinished_job: the job of dumpstatus.json that makes the file, where it is not done; else empty.
    """

    n_bytes: int | None = None
    digests: list[tuple[str, str, str]] = field(default_factory=list)
    unfinished_job: str = ""


def find_published(path: str, storage: Storage) -> Published:
    """Gives what the lists beside a file say about it.

    Raises:
        SetupError: a list cannot be read.
    """
    folder, name = posixpath.dirname(path), base_name(path)
    prefix = _DUMP_PREFIX.match(name)
    lists = list(_LISTS) + [name + ending for ending in _OWN_LISTS]
    if prefix:
        lists += [f"{prefix[0]}-md5sums.txt", f"{prefix[0]}-sha1sums.txt"]
    published = Published()
    for list_name in lists:
        list_path = join(folder, list_name)
        if not storage.exists(list_path):
            continue
        for line in _read(list_path, storage).decode("utf-8", "replace").splitlines():
            found = _LINE.match(line)
            if found and base_name(found[2]) == name and len(found[1]) in _ALGORITHMS:
                published.digests.append((_ALGORITHMS[len(found[1])], found[1].lower(), list_name))
    status_path = join(folder, "dumpstatus.json")
    if storage.exists(status_path):
        _add_status(published, _read(status_path, storage), name, status_path)
    return published


def _read(path: str, storage: Storage) -> bytes:
    with storage.open_read(path) as file:
        return file.read()


def _add_status(published: Published, data: bytes, name: str, path: str) -> None:
    try:
        jobs = orjson.loads(data)["jobs"]
        for job_name, job in jobs.items():
            facts = job.get("files", {}).get(name)
            if facts is None:
                continue
            published.n_bytes = facts.get("size", published.n_bytes)
            for algorithm in ("md5", "sha1"):
                if algorithm in facts:
                    published.digests.append((algorithm, facts[algorithm].lower(), "dumpstatus.json"))
            if job.get("status") != "done":
                published.unfinished_job = f"{job_name}: {job.get('status')}"
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise SetupError(f"{path} is not a dumpstatus.json as published ({error!r}). Download or remove it.") from error
