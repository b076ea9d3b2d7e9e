"""Estimates what a build takes, from a build of samples of its dump."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kbsource.dump.compressed.streams import CODECS
from kbsource.dump.ranges import DumpRange
from kbsource.files import Folder, join
from kbsource.temporary import TemporaryFolder

N_SAMPLES = 8
SAMPLE_BYTES = 512 << 10
"""Compressed bytes of a sample. A block of bzip2 belongs to the sample in which it begins, and may have 300 kB."""
_SERIAL = frozenset(("index", "definitions", "release", "checked", "in order", "plan", "written"))


class Estimate(NamedTuple):
    """What a build takes, as far as samples of the dump tell."""

    seconds: float  #: from the end of the checks to the end of the build
    staging_bytes: int  #: the most that the build's own files take in the output folder while it runs
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
    if len(samples) > 1:  # what does not grow with the dump is in both
        fixed = _cost(build, samples[:1])
        factor = (n_bytes - _size(samples[0])) / sum(map(_size, samples[1:]))
        cost = [least + factor * max(0, most - least) for least, most in zip(fixed, cost, strict=True)]
    else:
        cost = [value * n_bytes / _size(samples[0]) for value in cost]
    serial_s, parallel_s, staging_bytes, release_bytes = cost
    return Estimate(serial_s + parallel_s / n_workers, round(staging_bytes), round(release_bytes))


def _cost(
    build: Callable[[Sequence[DumpRange], str, str], Mapping[str, float]], samples: Sequence[DumpRange]
) -> list[float]:
    """Builds samples, and returns the seconds of the steps that one worker does, those of other steps, and the bytes of
    the build's own files and of the release.
    """
    with TemporaryFolder() as folder:
        output, staging = join(folder, "release"), join(folder, "staging")
        steps = build(samples, output, staging)
        folders = [Folder.of(place) for place in (staging, output)]
        sizes = [float(sum(map(place.size, place.files()))) for place in folders]
    serial = sum(seconds for step, seconds in steps.items() if step in _SERIAL)
    return [serial, sum(steps.values()) - serial, *sizes]


def _size(part: DumpRange) -> int:
    return part.end - part.start


def _samples(ranges: Sequence[DumpRange]) -> tuple[DumpRange, ...]:
    """Returns the beginnings of ranges that are spread over the dump; all of a small dump."""
    step = max(1, len(ranges) // N_SAMPLES)
    return tuple(
        replace(part, index=index, end=min(part.end, part.start + SAMPLE_BYTES))
        for index, part in enumerate(ranges[step // 2 :: step])
    )
