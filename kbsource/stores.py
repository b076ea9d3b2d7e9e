"""The back ends of ``Folder`` other than the local disk: object stores, web servers and HDFS.

A store uses keys: paths without scheme and bucket. Like files, it raises ``OSError``.
"""

from __future__ import annotations

import getpass
import hashlib
import io
import json
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast
from urllib.parse import urlsplit

from kbsource.errors import SetupError, StoreError
from kbsource.ranges import RangesFile

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_SPOOL_BYTES = 16 << 20
"""A file written to a store is buffered until it is complete, in memory up to this size and then in a temporary
file.
"""
_CONNECT_TIMEOUT_S = 5
_KEPT = 8  # recently read ranges of a file: the page headers of a Parquet file are read before its columns
_PROBE = "kbsource-asks-whether-this-store-answers/"

CLIENT_OPTIONS = frozenset(
    """
    allow_http allow_invalid_certificates connect_timeout pool_idle_timeout pool_max_idle_per_host proxy_url
    proxy_ca_certificate proxy_excludes read_timeout timeout user_agent
    """.split()
)
"""Options of the client, which every store accepts."""
_PREFIXES = {
    "s3": "aws_",
    "s3a": "aws_",
    "gs": "google_",
    "az": "azure_",
    "abfs": "azure_",
    "abfss": "azure_",
    "hdfs": "hdfs_",
    "http": "",
    "https": "",
    "memory": "",
}
"""Prefix of the option names of each scheme."""
_REMEDIES = {
    "aws_": "Check the bucket and the keys, and AWS_ENDPOINT_URL if the store is not Amazon's.",
    "google_": "Check the bucket, the network and the credentials (gcloud auth application-default login).",
    "azure_": "Check the account, the container and the credentials, and AZURE_STORAGE_ENDPOINT if it is set.",
    "": "Check the address and the network.",
}


class Store(Protocol):
    """The operations of a store. A missing key is a FileNotFoundError."""

    def open(self, key: str, buffer_bytes: int) -> BinaryIO:
        """Opens the stored bytes as a seekable file that requests ``buffer_bytes`` at a time."""
        ...

    def read(self, key: str) -> tuple[bytes, str]:
        """Returns the content and its tag, which changes with every write."""
        ...

    def size(self, key: str) -> int:
        """Returns the size in bytes."""
        ...

    def list(self, key: str) -> Iterator[str]:
        """Lists the keys of all files below a folder, in no particular order."""
        ...

    def create(self, key: str) -> Any:
        """Opens a file for writing, as a context manager; it is stored once the context ends without an error."""
        ...

    def write_new(self, key: str, content: bytes) -> str | None:
        """Writes a new file and returns its tag; returns None and writes nothing if the file exists."""
        ...

    def replace(self, key: str, content: bytes, tag: str) -> str | None:
        """Overwrites a file that still has this tag and returns the new tag; returns None and writes nothing if the
        tag has changed.
        """
        ...

    def move(self, key: str, target: str) -> None:
        """Renames a file, replacing another one."""
        ...

    def delete(self, key: str) -> None:
        """Removes a file and everything below it as a folder; does nothing if it does not exist."""
        ...


def check_store_options(options: Mapping[str, str]) -> None:
    """Checks that every option has a name that some store accepts.

    Raises:
        SetupError: names an unknown option.
    """
    prefixes = sorted({prefix for prefix in _PREFIXES.values() if prefix})
    for name in options:
        if name not in CLIENT_OPTIONS and not name.startswith(tuple(prefixes)):
            raise SetupError(
                f"--storage {name}: there is no such option. The name is that of an environment variable in lower "
                f"case (aws_endpoint_url for AWS_ENDPOINT_URL) and begins with {', '.join(prefixes)}, or it is one of "
                f"{', '.join(sorted(CLIENT_OPTIONS))}."
            )


def options_for(url: str, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options that apply to the store of a URL.

    Raises:
        SetupError: the scheme is not supported.
    """
    scheme = url.partition("://")[0]
    if scheme not in _PREFIXES:
        raise SetupError(f"{url}: {scheme}:// is not one of {', '.join(f'{name}://' for name in _PREFIXES)}.")
    prefix = _PREFIXES[scheme]
    return {
        name: value for name, value in options.items() if name in CLIENT_OPTIONS or (prefix and name.startswith(prefix))
    }


def split(url: str) -> tuple[str, str]:
    """Splits a URL into its root, which identifies the store, and the key in that store.

    >>> split("s3://wiki/kb/pages"), split("https://dumps.wikimedia.org/x.bz2"), split("gs://wiki")
    (('s3://wiki', 'kb/pages'), ('https://dumps.wikimedia.org', 'x.bz2'), ('gs://wiki', ''))
    """
    scheme, _, place = url.partition("://")
    root, _, key = place.partition("/")
    return f"{scheme}://{root}", key.strip("/")


@cache
def store_of(root: str, options: tuple[tuple[str, str], ...]) -> Store:
    """Returns the store with this root. The connection is tested once per process.

    Raises:
        SetupError: the store does not answer, the bucket does not exist, the credentials are rejected, or a required
            package is not installed.
    """
    given = options_for(root, dict(options))
    if root.startswith("hdfs://"):
        return _Hdfs(root, given)
    try:
        import obstore
        from obstore import exceptions
    except ModuleNotFoundError as error:
        raise SetupError(
            f"{root}: reading and writing it requires the package obstore, which is not installed: pip install obstore."
        ) from error
    no_retries = {"max_retries": 0, "retry_timeout": timedelta(seconds=10)}
    try:
        probe = _object_store(root, {"connect_timeout": "5s", "timeout": "10s", **given}, retry_config=no_retries)
        store = _object_store(root, given)
    except (exceptions.BaseError, ValueError, TypeError) as error:
        raise SetupError(f"{root}: {_reason(error)}. Check --storage and the environment.") from error
    if (refusal := _refusal(root, probe, obstore)) is not None:
        remedy = _REMEDIES[_PREFIXES[root.partition("://")[0]]]
        raise SetupError(f"{root} cannot be read or written ({refusal}). {remedy}")
    return ObjectStore(root, store)


def _object_store(root: str, options: Mapping[str, str], **settings: Any) -> Client:
    from obstore.store import HTTPStore, MemoryStore, from_url

    scheme = root.partition("://")[0]
    if scheme == "memory":
        return MemoryStore()
    client: dict[str, Any] = {name: value for name, value in options.items() if name in CLIENT_OPTIONS}
    config = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    # If an address starts with http://, the user wants HTTP.
    prefix = _PREFIXES[scheme]
    environment = (value for name, value in os.environ.items() if prefix and name.lower().startswith(prefix))
    names_http = any(value.startswith("http://") for value in (root, *config.values(), *environment))
    client.setdefault("allow_http", names_http)
    for name in ("allow_http", "allow_invalid_certificates"):
        if isinstance(client.get(name), str):
            client[name] = client[name].lower() in ("1", "true", "yes")
    if scheme in ("http", "https"):
        return HTTPStore.from_url(root, client_options=cast(Any, client), **settings)
    return cast("Client", from_url(root, config=config, client_options=client, **settings))  # type: ignore[call-overload]


def _refusal(root: str, probe: Client, obstore: Any) -> str | None:
    """Returns why a store cannot be used; None if it can be used, or if this cannot be determined."""
    try:
        if root.startswith(("http://", "https://")):
            obstore.head(probe, "")
        else:
            next(iter(obstore.list(probe, _PROBE)), None)
    except (OSError, ValueError, obstore.exceptions.BaseError) as error:
        said = str(error)
        status = re.search(r"non-2xx status code: (\d+)", said)
        if root.startswith(("http://", "https://")):
            return None if status or "HTTP error" not in said else _reason(error)
        if status is None:
            return _reason(error)
        # A user who may not list may still read; a server error may pass.
        code = re.search(r"<Code>(\w+)</Code>", said)
        may_read = status[1] == "403" and (
            code is None or code[1] in ("AccessDenied", "AuthorizationPermissionMismatch")
        )
        is_own = "169.254." not in said and "token request" not in said
        return None if is_own and (may_read or status[1].startswith("5")) else _reason(error)
    return None


def _reason(error: Exception) -> str:
    """Returns the readable part of an obstore error: without debugging details, and for XML only code and message."""
    said = str(error).partition("\n\nDebug source")[0].strip()
    head, _, xml = said.partition(": <?xml")
    if not xml:
        return " ".join(said.split())
    found = [match[1] for name in ("Code", "Message") if (match := re.search(rf"<{name}>(.*?)</{name}>", xml))]
    return ": ".join([head, *found])


@contextmanager
def _as_files(root: str, key: str) -> Iterator[None]:
    """Turns errors of obstore into the errors that files raise."""
    from obstore import exceptions

    path = f"{root}/{key}"
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: there is no such file") from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(f"{path}: {_reason(error)}") from error
    except (exceptions.BaseError, ValueError) as error:
        raise StoreError(f"{path}: {_reason(error)}") from error


def _tag(meta: Mapping[str, Any]) -> str:
    return json.dumps({name: meta[name] for name in ("e_tag", "version") if meta[name] is not None})


class ObjectStore:
    """A bucket or a web server, accessed through obstore."""

    def __init__(self, root: str, store: Client) -> None:
        import obstore  # only needed for remote files

        self._root, self._store, self._obstore = root, store, obstore

    def open(self, key: str, buffer_bytes: int) -> BinaryIO:
        return io.BufferedReader(RangesFile(self.size(key), partial(self.read_range, key), _KEPT), buffer_bytes)

    def read_range(self, key: str, start: int, end: int) -> Any:
        with _as_files(self._root, key):
            return self._obstore.get_range(self._store, key, start=start, end=end)

    def read(self, key: str) -> tuple[bytes, str]:
        with _as_files(self._root, key):
            found = self._obstore.get(self._store, key)
            return found.bytes().to_bytes(), _tag(found.meta)

    def size(self, key: str) -> int:
        with _as_files(self._root, key):
            return int(self._obstore.head(self._store, key)["size"])

    def list(self, key: str) -> Iterator[str]:
        if self._root.startswith(("http://", "https://")):
            raise SetupError(f"{self._root}/{key}: folders on a web server cannot be listed; name files.")
        with _as_files(self._root, key):
            for batch in self._obstore.list(self._store, f"{key}/" if key else None):
                for entry in batch:
                    yield entry["path"]

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
            yield cast(BinaryIO, file)
            file.seek(0)
            with _as_files(self._root, key):
                self._obstore.put(self._store, key, cast(BinaryIO, file))

    def write_new(self, key: str, content: bytes) -> str | None:
        return self._put(key, content, "create")

    def replace(self, key: str, content: bytes, tag: str) -> str | None:
        return self._put(key, content, json.loads(tag))

    def _put(self, key: str, content: bytes, mode: Any) -> str | None:
        from obstore import exceptions

        with _as_files(self._root, key):
            try:
                written = self._obstore.put(self._store, key, content, mode=mode)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError):
                return None
            return _tag(written)

    def move(self, key: str, target: str) -> None:
        with _as_files(self._root, key):
            self._obstore.rename(self._store, key, target)

    def delete(self, key: str) -> None:
        keys = list(self.list(key))
        for given in (keys, [key] if key else []):
            with suppress(FileNotFoundError), _as_files(self._root, key):
                self._obstore.delete(self._store, given)


class _Hdfs:
    """HDFS, through the WebHDFS of its name node. It does not overwrite files and has no tags, so this class
    emulates both.
    """

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        try:
            import hdfs
        except ModuleNotFoundError as error:
            raise SetupError(
                f"{root}: reading it requires the package hdfs, which is not installed: pip install 'kbsource[hadoop]'."
            ) from error
        parts = urlsplit(root)
        host = options.get("hdfs_host") or parts.hostname
        port = options.get("hdfs_port") or parts.port or 9870
        user = options.get("hdfs_user") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        check_reachable(
            f"{host}:{port}",
            what="name node of HDFS",
            remedy="Give the host and the port of its WebHDFS with --storage hdfs_host=HOST and --storage "
            "hdfs_port=PORT "
            "(9870 by default).",
        )
        self._root = root
        self._client = hdfs.InsecureClient(f"http://{host}:{port}", user=user)

    @contextmanager
    def _as_files(self, key: str) -> Iterator[None]:
        from hdfs import HdfsError

        try:
            yield
        except HdfsError as error:
            if error.exception == "FileNotFoundException" or "does not exist" in str(error):
                raise FileNotFoundError(f"{self._root}/{key}: there is no such file") from error
            raise OSError(f"{self._root}/{key}: {error}") from error

    def open(self, key: str, buffer_bytes: int) -> BinaryIO:
        return io.BufferedReader(RangesFile(self.size(key), partial(self.read_range, key), _KEPT), buffer_bytes)

    def read_range(self, key: str, start: int, end: int) -> bytes:
        with self._as_files(key), self._client.read(f"/{key}", offset=start, length=end - start) as answer:
            return bytes(answer.read())

    def read(self, key: str) -> tuple[bytes, str]:
        with self._as_files(key), self._client.read(f"/{key}") as answer:
            content = bytes(answer.read())
        return content, hashlib.sha256(content).hexdigest()

    def _status(self, key: str) -> Mapping[str, Any] | None:
        with self._as_files(key):
            found: Mapping[str, Any] | None = self._client.status(f"/{key}", strict=False)
            return found

    def size(self, key: str) -> int:
        found = self._status(key)
        if found is None or found["type"] != "FILE":
            raise FileNotFoundError(f"{self._root}/{key}: there is no such file")
        return int(found["length"])

    def list(self, key: str) -> Iterator[str]:
        found = self._status(key)
        if found is None or found["type"] != "DIRECTORY":
            return
        with self._as_files(key):
            entries = self._client.list(f"/{key}", status=True)
        for name, status in entries:
            inside = f"{key}/{name}" if key else name
            if status["type"] == "DIRECTORY":
                yield from self.list(inside)
            else:
                yield inside

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        temporary = f"{key}.tmp"
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
            yield cast(BinaryIO, file)
            file.seek(0)
            with self._as_files(key):
                self._client.write(f"/{temporary}", data=iter(lambda: file.read(1 << 20), b""), overwrite=True)
                self.move(temporary, key)

    def write_new(self, key: str, content: bytes) -> str | None:
        from hdfs import HdfsError

        with self._as_files(key):
            try:
                self._client.write(f"/{key}", data=content, overwrite=False)
            except HdfsError as error:
                if self._status(key) is None:
                    raise
                del error
                return None
        return hashlib.sha256(content).hexdigest()

    def replace(self, key: str, content: bytes, tag: str) -> str | None:
        with suppress(FileNotFoundError):
            if self.read(key)[1] == tag:
                with self.create(key) as file:
                    file.write(content)
                return hashlib.sha256(content).hexdigest()
        return None

    def move(self, key: str, target: str) -> None:
        with self._as_files(key):
            self._client.makedirs("/" + target.rpartition("/")[0])
            self._client.delete(f"/{target}")
            self._client.rename(f"/{key}", f"/{target}")

    def delete(self, key: str) -> None:
        with self._as_files(key):
            self._client.delete(f"/{key}", recursive=True)


def check_reachable(address: str, *, what: str, remedy: str) -> None:
    """Checks that a server answers at ``HOST:PORT``.

    Raises:
        SetupError: no server answers; the message names ``what`` and the remedy.
    """
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise SetupError(f"{address} is not an address of {what}; write HOST:PORT.")
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise SetupError(f"No {what} answers at {address} ({error}). {remedy}") from error
