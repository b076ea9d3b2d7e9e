"""Where models are run."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from kbsource.errors import SetupError
from mapping.entail.signal import ModelOptions
from pipelines.transforms import VerifyEntailment

LIKE_GPU = "type:nvidia-l4;count:1;install-nvidia-driver"


def test_the_steps_of_a_model_alone_ask_for_its_machines() -> None:
    pipeline = beam.Pipeline()
    pairs = pipeline | "pairs" >> beam.Create([("a", ())])
    _ = pairs | "verify" >> VerifyEntailment(ModelOptions("gs://b/nli", accelerator=LIKE_GPU, ram="8GB"))
    components = pipeline.to_runner_api().components
    hints = {
        transform.unique_name: {
            urn.rpartition(":")[0].rpartition(":")[2]: value.decode() for urn, value in found.items()
        }
        for transform in components.transforms.values()
        if (
            found := components.environments[transform.environment_id].resource_hints
            if transform.environment_id
            else {}
        )
    }
    assert {name.partition("/")[0] for name in hints} == {"verify"}
    assert {name: value for hint in hints.values() for name, value in hint.items()} == {
        "accelerator": LIKE_GPU,
        "min_ram_bytes": "8000000000",
    }


def test_a_folder_of_this_machine_is_none_for_dataflow(tmp_path: Path) -> None:
    options = PipelineOptions([])
    options.view_as(StandardOptions).runner = "DataflowRunner"
    pairs = beam.Pipeline(runner="FnApiRunner", options=options) | beam.Create([("a", ())])
    options.view_as(StandardOptions).runner = "DataflowRunner"
    with pytest.raises(SetupError, match="and Dataflow's workers cannot read its files"):
        _ = pairs | VerifyEntailment(ModelOptions(str(tmp_path)))


@pytest.mark.parametrize(("name", "value"), [("accelerator", "nvidia-l4"), ("ram", "8 gigabytes")])
def test_hints_that_beam_does_not_know_are_refused(name: str, value: str) -> None:
    with pytest.raises(SetupError, match="Write it like"):
        ModelOptions("gs://b/nli", **{name: value})  # type: ignore[arg-type]
