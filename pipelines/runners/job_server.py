"""Beam's job servers: Java programs that turn a pipeline into a job on a Spark or Flink cluster.

``python -m pipelines.runners.job_server ARGUMENT…`` runs ``java ARGUMENT…`` and ends it as soon as its parent process
is gone. Otherwise, a driver that is killed would leave a job that writes into the folder of the next one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from urllib.parse import urlsplit

from kbsource.errors import SetupError
from kbsource.runtime.fork_server import end_with_parent

SHA256: Mapping[str, str] = {}
"""Checksums, by file name, of Beam's job servers that are trusted without confirmation by the user."""
_SUM = re.compile("[0-9a-f]{64}")
_SILENCE_S = 60.0
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_command() -> str:
    """Returns the path of ``java``, from JAVA_HOME or the PATH.

    Raises:
        SetupError: it is not found.
    """
    home = os.environ.get("JAVA_HOME")
    wanted = os.path.join(home, "bin", "java") if home else "java"
    java = shutil.which(wanted)
    if java is None:
        raise SetupError(
            f"Java was not found: {wanted} is not a program. Install a Java runtime (Debian and Ubuntu: apt install "
            "openjdk-17-jre-headless) or set JAVA_HOME. With --job_endpoint=HOST:PORT, this machine needs no Java."
        )
    return java


def check_java(versions: Sequence[int]) -> int:
    """Returns the major version of Java after checking that it is supported.

    Raises:
        SetupError: there is no Java, or only an unsupported version.
    """
    java = java_command()
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = _JAVA_VERSION.search(answer)
    version = int(found[1]) if found else 0
    if version not in versions:
        raise SetupError(
            f"{java} is Java {version or 'of unknown version'}; this runner needs "
            f"{' or '.join(map(str, versions))}. Set JAVA_HOME to such a version."
        )
    return version


def beam_jar(gradle_target: str, *, flag: str) -> str:
    """Returns the local path of one of Beam's own job servers, given Beam's name for it,
    ``:runners:spark:3:job-server:shadowJar``.

    It is downloaded from Maven Central if it is not in Beam's cache. Messages mention the option ``flag``, which can
    name another jar or checksum.

    Raises:
        SetupError: its SHA-256 is unknown or wrong, or it cannot be downloaded.
    """
    from apache_beam.utils.subprocess_server import JavaJarServer

    url: str = JavaJarServer.path_to_beam_jar(gradle_target)
    name = _jar_name(url)
    expected = SHA256.get(name)
    if expected is None:
        raise SetupError(
            f"No SHA-256 is known for {name}, Beam's job server. Give a checksum that you trust with "
            f"{flag}={url}#sha256=CHECKSUM (Maven Central publishes checksums next to the files), give your own jar "
            f"with {flag}=PATH, or start a job server and give --job_endpoint=HOST:PORT."
        )
    return fetched_jar(url, expected, flag=flag)


def given_jar(place: str, *, flag: str) -> str:
    """Returns the local path of a job server given by the user: a file, or a URL followed by ``#sha256=CHECKSUM``.

    A file may have a checksum too. It is checked at every use, because the file may have changed.

    Raises:
        SetupError: the file does not exist, the checksum is wrong, or a URL has no checksum.
    """
    place, marked, expected = place.partition("#sha256=")
    expected = expected.lower()
    if marked and _SUM.fullmatch(expected) is None:
        raise SetupError(f"{flag}: #sha256={expected} is not a SHA-256, which has 64 hexadecimal digits.")
    if "://" in place:
        if not marked:
            raise SetupError(
                f"{flag}={place}: to download a job server, give its SHA-256 checksum: {flag}={place}#sha256=CHECKSUM."
            )
        return fetched_jar(place, expected, flag=flag)
    if not os.path.isfile(place):
        raise SetupError(f"{place} does not exist; check the path given with {flag}.")
    if marked:
        _check_sum(place, expected, remedy=f"Check the source of the file, and the checksum given with {flag}.")
    return place


def fetched_jar(url: str, expected: str, *, flag: str) -> str:
    """Returns the path in Beam's cache of the jar at a URL, and downloads it if necessary. Its checksum is always
    checked.

    Raises:
        SetupError: it cannot be downloaded, or its checksum is wrong; then the download is deleted.
    """
    from apache_beam.utils.subprocess_server import JavaJarServer

    path = os.path.join(JavaJarServer.JAR_CACHE, _jar_name(url))
    if os.path.lexists(path):
        _check_sum(path, expected, remedy="Remove the file, and it will be downloaded again. Find out who changed it.")
        return path
    os.makedirs(JavaJarServer.JAR_CACHE, exist_ok=True)
    remedy = (
        f"Download the file on another machine and give its path with {flag}=PATH, or start a job server and give "
        "--job_endpoint=HOST:PORT."
    )
    with tempfile.TemporaryDirectory(dir=JavaJarServer.JAR_CACHE) as scratch:
        partial = os.path.join(scratch, "jar")
        try:
            with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer, open(partial, "wb") as file:
                shutil.copyfileobj(answer, file, 1 << 20)
        except (OSError, HTTPException) as error:
            raise SetupError(f"{url} cannot be downloaded ({error}). {remedy}") from error
        _check_sum(partial, expected, what=f"The file from {url}", remedy=remedy)
        os.replace(partial, path)
    return path


def _jar_name(url: str) -> str:
    return os.path.basename(urlsplit(url).path)


def _check_sum(path: str, expected: str, *, remedy: str, what: str = "") -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise SetupError(f"{what or path} has the SHA-256 {found}, not {expected}. {remedy}")


def launcher_flags() -> list[str]:
    """Returns the flags that make Beam start a job server through this module."""
    return [f"--job_server_java_launcher={sys.executable}", *jvm_flags(["-P", "-m", "pipelines.runners.job_server"])]


def jvm_flags(properties: Sequence[str]) -> list[str]:
    """Returns the flags that pass arguments to the Java virtual machine of a job server."""
    return [f"--job_server_jvm_properties={argument}" for argument in properties]


def main(argv: Sequence[str]) -> None:
    """Replaces this process by ``java``, which ends when the parent process ends."""
    end_with_parent(os.getppid())
    java = java_command()
    os.execv(java, [java, *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
