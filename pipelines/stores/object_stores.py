"""What Beam's file systems leave to be done: whether a store answers at all, and the flags that say where it is.

Beam asks a store that cannot be reached again and again, for ten minutes. So each is asked once before.
"""

from __future__ import annotations

import argparse
import io
import json
import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from kbsource.errors import SetupError

ANSWER_TIMEOUT_S = 20.0
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 5, 10

FLAGS = (
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_session_token",
    "s3_endpoint_url",
    "s3_region_name",
    "s3_api_version",
    "s3_verify",
    "hdfs_host",
    "hdfs_port",
    "hdfs_user",
    "azure_connection_string",
    "blob_service_endpoint",
    "azure_managed_identity_client_id",
    "project",
    "impersonate_service_account",
)
SWITCHES = ("s3_disable_ssl", "hdfs_full_urls", "no_auth")
"""With FLAGS: the options of Beam that its file systems read."""

_HDFS_OPTIONS = ("hdfs_host", "hdfs_port", "hdfs_user")


def parse_flags(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Gives the options of Beam's file systems by name, and the arguments that are none.

    >>> parse_flags(["--s3_endpoint_url", "http://store:9000", "--hdfs_full_urls", "--fast"])
    ({'s3_endpoint_url': 'http://store:9000', 'hdfs_full_urls': True}, ['--fast'])
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for name in FLAGS:
        parser.add_argument(f"--{name}")
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    found, rest = parser.parse_known_args(list(argv))
    return vars(found), rest


def check_store(path: str, options: Mapping[str, Any]) -> None:
    """Finds out, once a process, whether the store of a remote path answers and has the bucket.

    Args:
        path: with one of the schemes of Beam's file systems.
        options: of Beam's file systems.

    Raises:
        SetupError: it does not, or it refuses the keys.
    """
    scheme, _, place = path.partition("://")
    given = place_of_stores(options)
    if scheme == "hdfs":
        _check_name_node(given)
    else:
        parts = place.split("/")
        bucket = "/".join(parts[:2] if scheme == "azfs" else parts[:1])
        _check_answer(scheme, bucket, given)


def place_of_stores(options: Mapping[str, Any]) -> str:
    """Gives what options say of stores, as JSON."""
    return json.dumps({name: value for name, value in options.items() if name in (*FLAGS, *SWITCHES)}, sort_keys=True)


@cache
def _check_answer(scheme: str, bucket: str, options: str) -> None:
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask() -> None:
        answers.put(_QUESTIONS[scheme](bucket, json.loads(options)))

    threading.Thread(target=ask, daemon=True).start()
    try:
        refusal = answers.get(timeout=ANSWER_TIMEOUT_S)
    except queue.Empty:
        refusal = f"no answer within {ANSWER_TIMEOUT_S:.0f} seconds"
    if refusal is not None:
        raise SetupError(f"{scheme}://{bucket} cannot be read or written ({refusal}). {_REMEDIES[scheme]}")


def _ask_s3(bucket: str, options: Mapping[str, Any]) -> str | None:
    """Gives why a bucket cannot be used, None where it can, or where that is not known."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        s3_client(options).list_objects_v2(Bucket=bucket, MaxKeys=1)
    except ClientError as error:
        fault, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        # Who may not list may still be allowed to read; a fault of the server may pass.
        return None if fault == "AccessDenied" or status >= 500 else str(error)
    except (BotoCoreError, ValueError) as error:
        return str(error)
    return None


def s3_client(options: Mapping[str, Any]) -> Any:
    """Gives a client like Beam's, that does not try again."""
    import boto3
    from botocore.config import Config

    return boto3.session.Session().client(
        "s3",
        region_name=options.get("s3_region_name"),
        api_version=options.get("s3_api_version"),
        use_ssl=not options.get("s3_disable_ssl", False),
        verify=options.get("s3_verify"),
        endpoint_url=options.get("s3_endpoint_url"),
        aws_access_key_id=options.get("s3_access_key_id"),
        aws_secret_access_key=options.get("s3_secret_access_key"),
        aws_session_token=options.get("s3_session_token"),
        config=Config(
            connect_timeout=_CONNECT_TIMEOUT_S, read_timeout=_READ_TIMEOUT_S, retries={"total_max_attempts": 1}
        ),
    )


class S3Writer(io.BufferedIOBase):
    """A new object of Amazon's protocol. Beam uploads objects in parts, of which an empty one has none.

    Args:
        path: of the object.
        open_file: begins Beam's upload.
        options: of Beam's file systems.
    """

    def __init__(self, path: str, open_file: Callable[[], BinaryIO], options: Mapping[str, Any]) -> None:
        self._path, self._open_file, self._options = path, open_file, options
        self._file: BinaryIO | None = None
        self._n_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_bytes

    def write(self, data: Any) -> int:
        n_bytes = memoryview(data).nbytes
        if n_bytes and self._file is None:
            self._file = self._open_file()
        if self._file is not None:
            self._file.write(data)
        self._n_bytes += n_bytes
        return n_bytes

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self.closed:
            return
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
            else:
                bucket, _, key = self._path.partition("://")[2].partition("/")
                s3_client(self._options).put_object(Bucket=bucket, Key=key, Body=b"")
        finally:
            super().close()


def _ask_google(bucket: str, options: Mapping[str, Any]) -> str | None:
    from apache_beam.io.gcp.gcsio import create_storage_client
    from apache_beam.options.pipeline_options import PipelineOptions
    from google.api_core.exceptions import Forbidden, GoogleAPICallError, ServerError
    from google.auth.exceptions import GoogleAuthError

    try:
        client = create_storage_client(PipelineOptions.from_dictionary(dict(options)))
        timeout = (_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S)
        next(iter(client.list_blobs(bucket, max_results=1, timeout=timeout, retry=None)), None)
    except (Forbidden, ServerError):
        return None
    except (GoogleAPICallError, GoogleAuthError, OSError, ValueError) as error:
        return str(error)
    return None


def _ask_azure(container: str, options: Mapping[str, Any]) -> str | None:
    from apache_beam.io.azure.blobstorageio import BlobStorageIO
    from apache_beam.options.pipeline_options import PipelineOptions
    from azure.core.exceptions import AzureError

    try:
        client = BlobStorageIO(pipeline_options=PipelineOptions.from_dictionary(dict(options))).client
        is_there = client.get_container_client(container.partition("/")[2]).exists()
    except (AzureError, ValueError) as error:
        return str(error)
    return None if is_there else "no such container"


_QUESTIONS: dict[str, Callable[[str, Mapping[str, Any]], str | None]] = {
    "s3": _ask_s3,
    "gs": _ask_google,
    "azfs": _ask_azure,
}
_REMEDIES = {
    "s3": "Check the bucket, --s3_endpoint_url where the store is not Amazon's own, and the keys.",
    "gs": "Check the bucket, the network and the credentials (gcloud auth application-default login).",
    "azfs": "Check account and container, --azure_connection_string or --blob_service_endpoint, and the credentials.",
}


@cache
def _check_name_node(options: str) -> None:
    given = json.loads(options)
    if missing := [name for name in _HDFS_OPTIONS if not given.get(name)]:
        raise SetupError(
            f"hdfs:// needs {', '.join(f'--{name}' for name in missing)}, and --hdfs_full_urls where paths begin with "
            "the name node."
        )
    check_reachable(
        f"{given['hdfs_host']}:{given['hdfs_port']}",
        what="name node of HDFS",
        remedy="Give host and port of its WebHDFS with --hdfs_host and --hdfs_port (9870, if nobody changed it).",
    )


def check_reachable(address: str, *, what: str, remedy: str) -> None:
    """Finds out whether something listens at ``HOST:PORT``.

    Raises:
        SetupError: nothing does; names ``what`` and the remedy.
    """
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise SetupError(f"{address} is no address of {what}; write HOST:PORT.")
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise SetupError(f"No {what} answers at {address} ({error}). {remedy}") from error
