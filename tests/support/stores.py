"""Small files in a store that is reached through Beam, and a store of Amazon's protocol on this machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest

from pipelines.stores.storage import BeamStorage

S3_KEYS = {"s3_access_key_id": "id", "s3_secret_access_key": "secret", "s3_region_name": "us-east-1"}


def put(store: BeamStorage, path: str, content: bytes) -> None:
    """Writes a file."""
    with store.open_write(path) as file:
        file.write(content)


def get(store: BeamStorage, path: str) -> bytes:
    """Gives a file's content."""
    with store.open_read(path) as file:
        return file.read()


def put_folder(store: BeamStorage, path: str, folder: Path) -> str:
    """Writes a folder's files, and gives where they lie."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            put(store, f"{path}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return path


@contextmanager
def s3_server() -> Iterator[list[str]]:
    """Serves an object store with a bucket ``wiki``, and gives the flags of Beam that say where it is."""
    boto3, moto_server = importlib.import_module("boto3"), importlib.import_module("moto.server")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        # Beam makes a client for every request, which takes longer than the request.
        client = cache(boto3.session.Session().client)
        endpoint = {"endpoint_url": f"http://{host}:{port}", "region_name": S3_KEYS["s3_region_name"]}
        keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
        # The store is that of the process, and may hold what a test before this one wrote.
        urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
        client("s3", **endpoint, **keys).create_bucket(Bucket="wiki")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KBSOURCE_BEAM_OPTIONS", "{}")  # to be restored afterwards
            patch.setattr(boto3.session, "Session", lambda: SimpleNamespace(client=client))
            yield [f"--s3_endpoint_url=http://{host}:{port}", *(f"--{name}={value}" for name, value in S3_KEYS.items())]
    finally:
        server.stop()
