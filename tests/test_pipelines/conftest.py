"""What the end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from apache_beam.testing.test_pipeline import TestPipeline

from pipelines.jobs.build import BuildSummary
from tests.support.builds import build_mini
from tests.support.command_processes import PREPARE, forked_guard
from tests.support.demo_datasets import chunks_in_this_process

# Beam's own choice first asks the network for a runner in Go, each time.
TestPipeline.pytest_test_pipeline_options = "--runner=FnApiRunner"


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    """Makes guarded processes and workers forks, as in commands, and not new interpreters."""
    with (
        mock.patch("pipelines.primitives.guarded_map.Guard", forked_guard),
        mock.patch("pipelines.runners.local_worker.PREPARE", PREPARE),
    ):
        yield


@pytest.fixture(scope="session")
def mini_build(tmp_path_factory: pytest.TempPathFactory) -> BuildSummary:
    """A build of the mini-wiki; not to be changed."""
    with chunks_in_this_process():
        return build_mini(tmp_path_factory.mktemp("mini") / "release")


@pytest.fixture(scope="session")
def release(mini_build: BuildSummary) -> Path:
    """A release of the mini-wiki; not to be changed."""
    return Path(mini_build.output)


@pytest.fixture
def in_this_process() -> Iterator[None]:
    """Does the chunks of alignments here, one after the other: seconds faster, where only what they make matters."""
    with chunks_in_this_process():
        yield
