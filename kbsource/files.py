"""Files and folders, on a local disk or in a cloud bucket, through one class: ``Folder``."""

from __future__ import annotations

import glob as globbing
import hashlib
import io
import json
import os
import posixpath
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kbsource.errors import SetupError
from kbsource.ranges import RANGE_BYTES

if TYPE_CHECKING:
    from kbsource.stores import Store

CHUNK_BYTES = 1 << 20
TEMPORARY = ".tmp"
"""Suffix of a local file's name until the file is complete."""
_READ_BYTES = 4 << 20
"""Number of bytes requested at a time for a file in a store that is read sequentially."""
_OPTIONS = "KBSOURCE_STORAGE"
_WILDCARD = re.compile(r"[*?[]")


def use_options(options: Mapping[str, str]) -> None:
    """Sets storage options for this process and its child processes. Every later ``Folder.of`` uses them.

    Options are named like environment variables, in lower case (``aws_endpoint_url``), and take precedence over them.

    Raises:
        SetupError: no store has an option with that name.
    """
    if options:
        from kbsource.stores import check_store_options

        check_store_options(options)
    os.environ[_OPTIONS] = json.dumps(options, sort_keys=True)


def options_in_use() -> dict[str, str]:
    """Returns the options set by ``use_options``, in this process or in the process that started it."""
    return dict(json.loads(os.environ.get(_OPTIONS, "{}")))


@dataclass(frozen=True, order=True)
class Folder:
    """A folder or a file: a local path or a URL of ``s3``, ``gs``, ``az``, ``http(s)``, ``hdfs`` or ``memory``, with
    its storage options. It can be pickled, because it holds no connection.

    Every method accepts a name below the folder. Without a name, the method applies to the folder's path, which is then
    the path of a file:

    >>> Folder.of("/releases") / "kb" / "pages"
    Folder(url='/releases/kb/pages')

    ``(kb / "manifest.json").read()`` is the same as ``kb.read("manifest.json")``. ``Folder.of`` accepts a string or a
    Folder, so that public functions can accept both. A store is connected and tested on first use; if this fails, a
    SetupError names the remedy. The store's client retries after temporary faults. A missing file raises a
    FileNotFoundError, any other fault an OSError.
    """

    url: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    #: true if local tables that are read at random positions are memory-mapped, which is fastest; false if the data
    #: that was read must not stay in this process's memory
    is_mapped: bool = field(default=True, repr=False)

    @classmethod
    def of(cls, path: str | os.PathLike[str] | Folder, options: Mapping[str, str] | None = None) -> Folder:
        """Returns the folder of a path, with the given storage options, or else with the options in use."""
        if isinstance(path, Folder):
            return path
        url = os.fspath(path)
        if is_local(url):
            return cls(url.rstrip("/") or url)
        from kbsource.stores import options_for

        given = options_for(url, options_in_use() if options is None else options)
        return cls(url.rstrip("/"), tuple(sorted(given.items())))

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Folder:
        return replace(self, url=join(self.url, name)) if name else self

    @property
    def name(self) -> str:
        """The last part of the path."""
        return base_name(self.url)

    @property
    def parent(self) -> Folder:
        """The folder that contains this file or folder."""
        return replace(self, url=posixpath.dirname(self.url))

    @property
    def is_local(self) -> bool:
        """True if the path is in the local file system."""
        return is_local(self.url)

    def absolute(self) -> Folder:
        """Returns the folder with an absolute path, for workers that run in other folders."""
        return replace(self, url=os.path.abspath(self.url)) if self.is_local else self

    def _store(self, name: str) -> tuple[Store, str]:
        from kbsource.stores import split, store_of

        root, key = split(join(self.url, name) if name else self.url)
        return store_of(root, self.options), key

    def reached(self) -> Folder:
        """Checks that the store answers, and returns the folder. Call it before long work that needs the store later.

        Raises:
            SetupError: the store does not answer, the bucket does not exist, or the credentials are rejected.
        """
        if not self.is_local:
            self._store("")
        return self

    def open(self, name: str = "") -> BinaryIO:
        """Opens the stored bytes as a seekable file for sequential reading; nothing is decompressed.

        Raises:
            FileNotFoundError: there is no such file.
            SetupError: the path is a folder or a pipe.
        """
        if not self.is_local:
            store, key = self._store(name)
            return store.open(key, _READ_BYTES)
        path = join(self.url, name) if name else self.url
        check_regular(path)
        return open(path, "rb")

    def open_ranges(self, name: str = "") -> BinaryIO:
        """Opens a file like ``open``, but for random access, so it reads only a little ahead."""
        if self.is_local:
            return self.open(name)
        store, key = self._store(name)
        return store.open(key, RANGE_BYTES)

    def read(self, name: str = "") -> bytes:
        """Returns the content of a file."""
        if not self.is_local:
            store, key = self._store(name)
            return store.read(key)[0]
        with self.open(name) as file:
            return file.read()

    def size(self, name: str = "") -> int:
        """Returns the size of a file in bytes."""
        if self.is_local:
            return os.path.getsize(join(self.url, name) if name else self.url)
        store, key = self._store(name)
        return store.size(key)

    def exists(self, name: str = "") -> bool:
        """Returns whether a file or a non-empty folder of that name exists."""
        if self.is_local:
            return os.path.exists(join(self.url, name) if name else self.url)
        store, key = self._store(name)
        with suppress(FileNotFoundError):
            store.size(key)
            return True
        return not self.url.startswith(("http://", "https://")) and next(store.list(key), None) is not None

    def files(self, pattern: str = "**") -> list[str]:
        """Returns the names of matching files below the folder, sorted. ``*`` matches within a folder, ``**/`` any
        number of folders, including none.
        """
        fixed, wild = _split_pattern(pattern)
        folder = self / fixed if fixed else self
        if self.is_local:
            prefix = folder.url.rstrip("/") + "/" if folder.url else ""
            found = globbing.glob(globbing.escape(prefix) + wild, recursive=True)
            names = [path.removeprefix(prefix) for path in found if os.path.isfile(path)]
        else:
            store, key = folder._store("")
            prefix = f"{key}/" if key else ""
            fits = _pattern(wild)
            names = [name for object_key in store.list(key) if fits.fullmatch(name := object_key.removeprefix(prefix))]
        return sorted(f"{fixed}/{name}" if fixed else name for name in names)

    @contextmanager
    def create(self, name: str = "") -> Iterator[BinaryIO]:
        """Opens a file for writing. When the context ends without an error, the file replaces an older file of that
        name.

        A pipe or a device is written to directly.
        """
        if not self.is_local:
            store, key = self._store(name)
            with store.create(key) as file:
                yield file
            return
        path = join(self.url, name) if name else self.url
        if is_special(path):
            with open(path, "wb") as file:
                yield file
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with completed_file(path) as temporary, open(temporary, "wb") as file:
            yield file

    def write(self, content: bytes, name: str = "") -> None:
        """Writes a file, replacing an older one."""
        with self.create(name) as file:
            file.write(content)

    def read_tagged(self, name: str = "") -> tuple[bytes, str]:
        """Returns the content of a file in a store, and its tag for ``replace``."""
        store, key = self._store(name)
        return store.read(key)

    def write_new(self, content: bytes, name: str = "") -> str | None:
        """Writes a file to a store if it does not exist, and returns its tag; None if it exists. If several
        processes try at once, exactly one succeeds.
        """
        store, key = self._store(name)
        return store.write_new(key, content)

    def replace(self, content: bytes, tag: str, name: str = "") -> str | None:
        """Overwrites a file in a store if it is unchanged since ``tag`` was read, and returns the new tag; None if
        it has changed. (HDFS has no such operation, so two simultaneous writers may both succeed.)
        """
        store, key = self._store(name)
        return store.replace(key, content, tag)

    def move(self, name: str, target: Folder) -> None:
        """Moves a file within the store, replacing another one."""
        if self.is_local:
            os.makedirs(os.path.dirname(target.url) or ".", exist_ok=True)
            os.replace(join(self.url, name) if name else self.url, target.url)
        else:
            store, key = self._store(name)
            store.move(key, target._store("")[1])

    def delete(self, name: str = "") -> None:
        """Removes a file, or a folder with everything in it. A missing file or folder is not an error."""
        if not self.is_local:
            store, key = self._store(name)
            store.delete(key)
            return
        path = join(self.url, name) if name else self.url
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)

    def sha256(self, name: str = "") -> str:
        """Returns the hex sha256 of a file."""
        with self.open(name) as file:
            digest = hashlib.file_digest(cast(io.BufferedReader, file), "sha256")
        return digest.hexdigest()

    def write_json(self, value: object, name: str = "") -> None:
        """Writes JSON with sorted keys."""
        import orjson  # a slow import, which few readers need

        self.write(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), name)

    def read_json(self, name: str = "") -> Any:
        """Returns the value of a JSON file."""
        import orjson

        return orjson.loads(self.read(name))


Files = Callable[[str], Folder]
"""A function that returns the file at a path: ``Folder.of``, or one whose files are compared with their hashes."""


@contextmanager
def completed_file(path: str) -> Iterator[str]:
    """Yields the temporary name of a local file. The file gets its final name when the context ends without an error,
    and is removed otherwise.
    """
    temporary = f"{path}{TEMPORARY}"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(temporary)
        raise


def glob(pattern: str) -> list[str]:
    """Returns the paths of the files that match a path or URL with wildcards, sorted."""
    fixed, wild = _split_pattern(pattern)
    if not wild:
        return [pattern] if Folder.of(pattern).exists() else []
    folder = Folder.of(fixed or ("/" if pattern.startswith("/") else ""))
    return [join(folder.url, name) for name in folder.files(wild)]


def _split_pattern(pattern: str) -> tuple[str, str]:
    """Splits a pattern into its leading folders without wildcards, and the rest.

    >>> _split_pattern("pages/pages-*.parquet"), _split_pattern("**"), _split_pattern("a/b")
    (('pages', 'pages-*.parquet'), ('', '**'), ('a', 'b'))
    """
    wildcard = _WILDCARD.search(pattern)
    folder, _, rest = pattern[: wildcard.start() if wildcard else len(pattern)].rpartition("/")
    return folder, rest + (pattern[wildcard.start() :] if wildcard else "")


def _pattern(pattern: str) -> re.Pattern[str]:
    """Returns a pattern of ``glob`` as a regular expression for names below a folder."""
    parts = []
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]+\])", pattern):
        fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part)
        is_set = part.startswith("[") and part.endswith("]")
        parts.append(fixed or (part.replace("[!", "[^") if is_set else re.escape(part)))
    return re.compile("".join(parts), re.DOTALL)


def is_special(path: str) -> bool:
    """Returns whether a local path is something that a new file cannot replace: a pipe, a device, or an open file of a
    process.
    """
    folder = os.path.realpath(os.path.dirname(path) or ".")
    if folder == "/dev" or folder.startswith("/proc/"):
        return os.path.lexists(path)
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def check_regular(path: str) -> None:
    """Checks that a path can be read as a file. It is called before every file is opened or mapped.

    Raises:
        SetupError: it is a folder, a socket, or a pipe, which may block when opened and can be read only once.
        FileNotFoundError: the file does not exist.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise SetupError(f"{path} is a folder; name a file.")
    if stat.S_ISSOCK(mode):
        raise SetupError(f"{path} is a socket; name a file.")
    if stat.S_ISFIFO(mode):
        raise SetupError(f"{path} is a pipe; write its output to a file, and name that file.")


def is_local(path: str) -> bool:
    """Returns whether a path is in the local file system, i.e. has no ``scheme://``."""
    return "://" not in path


def absolute(path: str) -> str:
    """Returns a local path as an absolute path, for workers that run in other folders; other paths are unchanged."""
    return os.path.abspath(path) if is_local(path) else path


def join(*parts: str) -> str:
    """Joins parts of a path with forward slashes, for local paths and bucket URLs alike."""
    return posixpath.join(*parts)


def base_name(path: str) -> str:
    """Returns the last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


class HashingWriter(io.RawIOBase):
    """A write-only binary file that counts and hashes the bytes written to it; pyarrow accepts it as a sink."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._sha256 = hashlib.sha256()
        self.n_bytes = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._sha256.update(view)
        self._sink.write(view)
        self.n_bytes += view.nbytes
        return view.nbytes

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.n_bytes

    def hexdigest(self) -> str:
        """Returns the sha256 of everything written so far."""
        return self._sha256.hexdigest()
