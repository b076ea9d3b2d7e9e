"""What the tests on real clusters need, fetched once: ``python -m tests.support.spark_kit FOLDER``.

* Spark itself: the jars of pyspark's source distribution.
* Beam's job servers for Spark and Flink: the ready-made ones of Beam's own version from Maven Central. Where those are
  not to be had (mirrors often leave out programs of hundreds of megabytes), Maven puts them together from their parts,
  of a version whose parts are all there; the protocol that pipelines are handed over by is the same.

It says which job servers there are. Those that were put together make way as soon as the ready-made ones can be had,
with a SHA-256 that ``pipelines.runners.job_server`` knows. Parts are compared with ``spark_kit.sha256``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from apache_beam.utils.subprocess_server import JavaJarServer

from kbsource.errors import SetupError
from pipelines.runners.clusters import SPARK_JAVA, newest_flink
from pipelines.runners.job_server import beam_jar, check_java

SPARK = "3.5.9"
SPARK_SHA256 = "ea27adc39ddac9413b8951e45aa748cbed6c785971b81386efc41938f6243d93"
ASSEMBLED_BEAM = "2.62.0"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Jars of Spark that a job server does without: every executor fetches what the job server has.
NOT_FOR_JOB_SERVER = (
    "HikariCP", "JTransforms", "arpack", "arrow", "blas", "bonecp", "breeze", "commons-compress", "curator",
    "datanucleus", "derby", "guava", "hive", "jdo", "kubernetes", "lapack", "libthrift", "mesos", "okhttp", "orc-",
    "rocksdbjni", "scala-compiler", "spark-graphx", "spark-hive", "spark-kubernetes", "spark-mesos", "spark-mllib",
    "spark-repl", "spark-yarn", "spire", "tink", "zookeeper",
)  # fmt: skip
PINS = Path(__file__).with_suffix(".sha256")
"""The parts of job servers by name, as sha256sum writes them."""
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kbsource</groupId><artifactId>job-server</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.beam</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True)
class JobServer:
    """One of Beam's job servers.

    Attributes:
        name: of the runner.
        target: Beam's name of the ready-made one.
        parts: artifact in Maven Central that it can be put together from.
        main_class: what its jar starts.
    """

    name: str
    target: str
    parts: str
    main_class: str

    def ready_made(self, folder: Path) -> Path:
        """Gives the path of Beam's own in a kit."""
        return folder / str(JavaJarServer.path_to_beam_jar(self.target)).rpartition("/")[2]

    def assembled(self, folder: Path) -> Path:
        """Gives the path of the one put together in a kit."""
        return folder / f"{self.parts}-job-server-merged-{ASSEMBLED_BEAM}.jar"

    def parts_folder(self, folder: Path) -> Path:
        """Gives the folder of what it was put together from."""
        return folder / f"{self.parts}-{ASSEMBLED_BEAM}"

    def in_kit(self, folder: Path) -> Path:
        """Gives the path of the better one of those in a kit."""
        own = self.ready_made(folder)
        return own if own.exists() else self.assembled(folder)


def job_servers() -> tuple[JobServer, JobServer]:
    """Gives those for Spark and for Flink."""
    flink = f":runners:flink:{newest_flink()}:job-server:shadowJar"
    main_class = "org.apache.beam.runners.{}JobServerDriver"
    return (
        JobServer(
            "Spark", ":runners:spark:3:job-server:shadowJar", "beam-runners-spark-3", main_class.format("spark.Spark")
        ),
        JobServer("Flink", flink, "beam-runners-flink-1.19", main_class.format("flink.Flink")),
    )


@dataclass(frozen=True)
class SparkKit:
    """Where things are.

    Attributes:
        spark: folder with Spark's ``jars`` and ``bin``.
        job_server: Beam's job server for Spark, for ``java -jar``.
        flink_job_server: that for Flink, with a cluster of its own inside.
        first_jars: jars that executors must find before Spark's own.
    """

    spark: Path
    job_server: Path
    flink_job_server: Path
    first_jars: tuple[Path, ...]


def kit_in(folder: Path) -> SparkKit:
    """Gives the kit that ``fetch_kit`` made in a folder."""
    spark, flink = job_servers()
    job_server = spark.in_kit(folder)
    first: list[Path] = []
    if job_server == spark.assembled(folder):
        parts = spark.parts_folder(folder)
        first = [*parts.glob("guava-[0-9]*.jar"), *parts.glob("failureaccess-*.jar")]
    return SparkKit(folder / f"spark-{SPARK}", job_server, flink.in_kit(folder), tuple(first))


def fetch_kit(folder: Path) -> list[str]:
    """Fetches what is missing of the kit; gives a line on each job server.

    Raises:
        SetupError: Java or Maven is missing, or something cannot be fetched.
    """
    check_java(SPARK_JAVA)
    folder.mkdir(parents=True, exist_ok=True)
    spark = folder / f"spark-{SPARK}"
    if not spark.exists():
        _fetch_spark(spark)
    libraries = [jar for jar in (spark / "jars").iterdir() if not jar.name.startswith(NOT_FOR_JOB_SERVER)]
    for_spark, for_flink = job_servers()
    return [make_job_server(for_spark, folder, libraries=libraries), make_job_server(for_flink, folder)]


def make_job_server(job_server: JobServer, folder: Path, *, libraries: Iterable[Path] = ()) -> str:
    """Fetches a job server, or puts it together from its parts and further libraries; says which it is."""
    own, assembled = job_server.ready_made(folder), job_server.assembled(folder)
    if not own.exists():
        try:
            whole = beam_jar(job_server.target, flag="--…_job_server_jar")
        except SetupError as error:
            if not assembled.exists():
                parts = job_server.parts_folder(folder)
                if not parts.exists():
                    copy_dependencies(job_server.parts, ASSEMBLED_BEAM, parts)
                check_parts(parts)
                merge_jars(assembled, job_server.main_class, [*parts.iterdir(), *libraries])
            reason = str(error).partition(". ")[0]
            return (
                f"{job_server.name}: {assembled.name}, put together from the parts of Beam {ASSEMBLED_BEAM}; {reason}."
            )
        shutil.copyfile(whole, f"{own}.tmp")
        os.replace(f"{own}.tmp", own)
    return f"{job_server.name}: {own.name}, Beam's own from Maven Central."


def copy_dependencies(artifact: str, version: str, target: Path) -> None:
    """Copies one of Beam's artifacts and all that it needs at run time into a folder, with sums checked.

    Raises:
        SetupError: Maven is missing or cannot get them.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise SetupError("No Maven on the PATH (Debian and Ubuntu: apt install maven).")
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "pom.xml").write_text(POM.format(artifact=artifact, version=version), "utf-8")
        options = [f"-DoutputDirectory={scratch}/jars", "-DincludeScope=runtime"]
        command = [
            maven,
            "--batch-mode",
            "--quiet",
            "-Dstyle.color=never",
            "--strict-checksums",
            COPY_DEPENDENCIES,
            *options,
        ]
        _run(command, f"Maven cannot get {artifact} {version} and what it needs", folder=scratch)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(f"{scratch}/jars", target)


def check_parts(folder: Path) -> None:
    """Compares the parts of a job server with their pins.

    Raises:
        SetupError: one has another SHA-256, or none that is known.
    """
    pins = {name: digest for digest, name in map(str.split, PINS.read_text("utf-8").splitlines())}
    for jar in sorted(folder.iterdir()):
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != pins.get(jar.name):
            raise SetupError(
                f"{jar} has the SHA-256 {found}, not {pins.get(jar.name, 'one that is known')}. Remove it."
            )


def _run(command: list[str], complaint: str, *, folder: str | None = None) -> None:
    """Runs a program whose errors are one line, the first that it reports."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        error = re.search(r"ERROR\W*(.+)", f"{ended.stdout}\n{ended.stderr}")
        raise SetupError(f"{complaint}: {error[1] if error else f'exit code {ended.returncode}'}")


def merge_jars(path: Path, main_class: str, jars: Iterable[Path]) -> None:
    """Writes one jar of what is in others, of which the first has a file that several have.

    A job hands the jars of its job server to the cluster one by one: 161 of Flink take 18 s, one as large 5 s.
    """
    names: set[str] = set()
    services: defaultdict[str, bytes] = defaultdict(bytes)
    with zipfile.ZipFile(f"{path}.tmp", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as merged:
        merged.writestr("META-INF/MANIFEST.MF", f"Main-Class: {main_class}\r\nMulti-Release: true\r\n")
        for jar in sorted(jars):
            with zipfile.ZipFile(jar) as part:
                for name in part.namelist():
                    if name.startswith("META-INF/services/"):
                        services[name] += part.read(name) + b"\n"
                    # A signature is of the jar that it was in.
                    elif name not in names and not name.endswith(("/", "MANIFEST.MF", ".SF", ".RSA", ".DSA")):
                        names.add(name)
                        merged.writestr(name, part.read(name))
        for name, classes in services.items():
            merged.writestr(name, classes)
    os.replace(f"{path}.tmp", path)


def _fetch_spark(target: Path) -> None:
    """Fetches pyspark's source distribution and takes out what a cluster needs."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary=:all:",
            f"--dest={scratch}",
        ]
        _run([*pip, f"pyspark=={SPARK}"], f"pip cannot get pyspark {SPARK}")
        archive = Path(scratch, f"pyspark-{SPARK}.tar.gz")
        with archive.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != SPARK_SHA256:
            raise SetupError(f"pyspark {SPARK} arrived with SHA-256 {found}, not {SPARK_SHA256}.")
        root = f"pyspark-{SPARK}/deps/"
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.name.startswith((f"{root}jars", f"{root}bin"))]
            tar.extractall(scratch, members, filter="data")
        os.rename(Path(scratch, root), target)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    try:
        lines = fetch_kit(parser.parse_args().folder)
    except SetupError as error:
        raise SystemExit(f"spark_kit: {error}") from error
    for line in lines:
        sys.stdout.write(f"Job server for {line}\n")


if __name__ == "__main__":
    main()
