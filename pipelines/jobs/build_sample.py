"""Estimates the time and disk space of a build, by building samples of its dump."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kbsource.dump.compressed.streams import CODECS
from kbsource.dump.ranges import DumpRange
from kbsource.temporary import TemporaryFolder
from pipelines.disk_use import folder_bytes, measured_disk_use

N_SAMPLES = 8
SAMPLE_BYTES = 512 << 10
"""Compressed bytes of a sample. A block of bzip2 belongs to the sample in which it begins, and may have 300 kB."""
_SERIAL = frozenset(("index", "definitions", "release", "checked", "in order", "plan", "written"))


class Estimate(NamedTuple):
    """The estimated time and disk space of a build."""

    seconds: float  #: seconds from the end of the checks to the end of the build
    peak_bytes: int  #: maximum size of the output folder during the build, in bytes
    release_bytes: int


def sample_build(
    build: Callable[[Sequence[DumpRange], str, str], Mapping[str, float]], ranges: Sequence[DumpRange], n_workers: int
) -> Estimate | None:
    """Builds samples from all parts of a dump, and returns an estimate for the whole of it.

    Returns None for files that can only be read from their beginning.

    Args:
        build: builds ranges with one worker, and returns the seconds of each step; it takes the folders of the release
            and of the build's own files.
        ranges: all ranges of the dump.
        n_workers: number of worker processes of the whole build.
    """
    if not all(CODECS[part.compression].is_splittable and part.form != "tar" for part in ranges):
        return None
    samples = _samples(ranges)
    cost, n_bytes = _cost(build, samples), sum(map(_size, ranges))
    if len(samples) > 1:  # the part that does not grow with the dump is in both
        fixed = _cost(build, samples[:1])
        factor = (n_bytes - _size(samples[0])) / sum(map(_size, samples[1:]))
        cost = [least + factor * max(0, most - least) for least, most in zip(fixed, cost, strict=True)]
    else:
        cost = [value * n_bytes / _size(samples[0]) for value in cost]
    serial_s, parallel_s, peak_bytes, release_bytes = cost
    return Estimate(serial_s + parallel_s / n_workers, round(peak_bytes), round(release_bytes))


def _cost(
    build: Callable[[Sequence[DumpRange], str, str], Mapping[str, float]], samples: Sequence[DumpRange]
) -> list[float]:
    """Builds samples, and returns the seconds of the steps that one worker does, those of other steps, the most bytes
    that all files take at once, and the bytes of the release.
    """
    with TemporaryFolder() as folder:
        output, staging = os.path.join(folder, "release"), os.path.join(folder, "staging")
        with measured_disk_use(folder) as use:
            steps = build(samples, output, staging)
        release_bytes = folder_bytes(output)
    serial = sum(seconds for step, seconds in steps.items() if step in _SERIAL)
    return [serial, sum(steps.values()) - serial, use.peak_bytes, release_bytes]


def _size(part: DumpRange) -> int:
    return part.end - part.start


def _samples(ranges: Sequence[DumpRange]) -> tuple[DumpRange, ...]:
    """Returns the beginnings of up to ``N_SAMPLES`` ranges that are spread over the dump."""
    n = min(N_SAMPLES, len(ranges))
    chosen = (ranges[(2 * index + 1) * len(ranges) // (2 * n)] for index in range(n))
    return tuple(
        replace(part, index=index, end=min(part.end, part.start + SAMPLE_BYTES)) for index, part in enumerate(chosen)
    )
