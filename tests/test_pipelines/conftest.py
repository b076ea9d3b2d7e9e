"""What the end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.testing.test_pipeline import TestPipeline

from pipelines.jobs.build import BuildSummary
from tests.support.builds import build_mini
from tests.support.demo_datasets import chunks_in_this_process

# Beam's own choice first asks the network for a runner in Go, each time.
TestPipeline.pytest_test_pipeline_options = "--runner=FnApiRunner"


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
