"""Beam's options for pipelines of many transforms."""

from __future__ import annotations

from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions


class JobOptions(PipelineOptions):  # type: ignore[misc]  # Beam is not typed
    """Options of which each view is made once.

    Beam asks for a view several times a transform and makes a parser of arguments for each: a fifth of the processor
    time of a job of some hundred transforms on little data.
    """

    def view_as(self, cls: type[Any]) -> Any:
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]

    def __getstate__(self) -> dict[str, Any]:
        # Views hold the values of the options that they are of; those of a copy are made anew.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_views"}
