"""Beam's job servers: the Java programs that turn a pipeline into a job of a Spark or Flink cluster.

``python -m pipelines.runners.job_server ARGUMENT…`` runs ``java ARGUMENT…`` and ends it as soon as the process that
asked for it is gone: a driver that is killed must not leave a job behind that writes into the folder of the next one.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from urllib.parse import urlsplit

from kbsource.errors import SetupError

_PR_SET_PDEATHSIG = 1  # prctl(2)
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_command() -> str:
    """The path of ``java``: of JAVA_HOME, or the one on the PATH.

    Raises:
        SetupError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    wanted = os.path.join(home, "bin", "java") if home else "java"
    java = shutil.which(wanted)
    if java is None:
        raise SetupError(
            f"No Java: {wanted} is no program. Install a Java runtime (Debian and Ubuntu: apt install "
            "openjdk-17-jre-headless) or set JAVA_HOME; with --job_endpoint=HOST:PORT none is needed here."
        )
    return java


def check_java(versions: Sequence[int]) -> int:
    """The major version of Java, one of those that will do.

    Raises:
        SetupError: there is no Java, or another version.
    """
    java = java_command()
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = _JAVA_VERSION.search(answer)
    version = int(found[1]) if found else 0
    if version not in versions:
        raise SetupError(
            f"{java} is Java {version or 'of no version that it would tell'}; this runner needs "
            f"{' or '.join(map(str, versions))}. Point JAVA_HOME at one."
        )
    return version


def fetch_jar(gradle_target: str, *, flag: str) -> str:
    """The local path of one of Beam's own job servers, by Beam's name of it, ``:runners:spark:3:job-server:shadowJar``.

    It is fetched from Maven Central when it is not in Beam's cache, and compared with the SHA-1 sum that is published
    there beside it; messages name the option ``flag``, which gives a jar instead.

    Raises:
        SetupError: it cannot be had, or its sum is wrong.
    """
    from apache_beam.utils.subprocess_server import JavaJarServer

    url: str = JavaJarServer.path_to_beam_jar(gradle_target)
    path: str = os.path.join(JavaJarServer.JAR_CACHE, os.path.basename(urlsplit(url).path))
    if os.path.exists(path):
        return path
    remedy = (
        f"Fetch it elsewhere and give its path with {flag}, or start a job server and give --job_endpoint=HOST:PORT."
    )
    os.makedirs(JavaJarServer.JAR_CACHE, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=JavaJarServer.JAR_CACHE) as partial:
        digest = hashlib.sha1(usedforsecurity=False)
        try:
            with urllib.request.urlopen(f"{url}.sha1") as answer:
                expected = answer.read().split()[0].decode()
            with urllib.request.urlopen(url) as answer:
                while block := answer.read(1 << 20):
                    digest.update(block)
                    partial.write(block)
        except OSError as error:
            raise SetupError(f"{url} cannot be fetched ({error}). {remedy}") from error
        if digest.hexdigest() != expected:
            raise SetupError(f"{url} arrived damaged: its SHA-1 is {digest.hexdigest()}, not {expected}. {remedy}")
        partial.flush()
        os.link(partial.name, path)
    return path


def launcher_flags() -> list[str]:
    """The flags that make Beam start a job server through this module."""
    return [f"--job_server_java_launcher={sys.executable}", *jvm_flags(["-m", "pipelines.runners.job_server"])]


def jvm_flags(properties: Sequence[str]) -> list[str]:
    """The flags that pass arguments to the Java machine of a job server."""
    return [f"--job_server_jvm_properties={argument}" for argument in properties]


def end_with_parent() -> None:
    """Has this process killed as soon as the one that started it is gone, lest it writes into the folder of a next."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # it was gone before this one could ask


def main(argv: Sequence[str]) -> None:
    """Becomes ``java``, to end with the process that started it."""
    end_with_parent()
    java = java_command()
    os.execv(java, [java, *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
