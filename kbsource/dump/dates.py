"""Checks that all files belong to a dump of the same date. The date of a file is in its name, in the name of its
folder, or in the ``dumpstatus.json`` of its folder. Files without a date are compared by their revisions.

Files of different dates must not be combined: pages that were moved, merged or deleted between the dates would occur
twice or not at all.

Source: https://dumps.wikimedia.org/<wiki>/<date>/ as of 2026. The date of a dump is the day on which it was started.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from kbsource.dump.status import STATUS, read_status
from kbsource.errors import SetupError
from kbsource.files import base_name

MOST_DAYS_LATER = timedelta(days=14)
"""Maximum time between the date of a dump and its newest revision. The next dump starts after this time."""
_IN_NAME = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)(?=[-.])")
_OF_FOLDER = re.compile(r"(?:\A|[/_-])(\d{4})-?(\d\d)-?(\d\d)\Z")


class DumpDay(NamedTuple):
    """The date of a file, and where it was found."""

    day: date
    source: str  #: ``its name``, ``its folder`` or ``dumpstatus.json``


def written_date(path: str) -> str | None:
    """Returns the date in the name of a dump file, as written there; None if there is none.

    >>> written_date("dumps/enwiki-20261001-pages-articles1.xml.bz2"), written_date("20261001-all.json.bz2")
    ('20261001', '20261001')
    """
    found = _IN_NAME.search(f"-{base_name(path)}")
    return None if found is None else found[1]


def day_of(path: str) -> DumpDay | None:
    """Returns the date of a dump file; None if it is not known.

    The date is looked for in the file's name, then in the names of files in ``dumpstatus.json``, then in the name of
    the folder.

    Raises:
        SetupError: the ``dumpstatus.json`` in its folder does not have the form of Wikimedia's ``dumpstatus.json``
            files.
    """
    if (written := written_date(path)) is not None and (day := _day(written)) is not None:
        return DumpDay(day, "its name")
    folder = posixpath.dirname(path)
    if (day := _status_day(folder)) is not None:
        return DumpDay(day, STATUS)
    found = _OF_FOLDER.search(folder)
    day = None if found is None else _day("".join(found.groups()))
    return None if day is None else DumpDay(day, "its folder")


def _day(written: str) -> date | None:
    try:
        return date.fromisoformat(written)
    except ValueError:
        return None


def _status_day(folder: str) -> date | None:
    """Returns the date in the file names of a ``dumpstatus.json``; None if there is no such file, or if it contains no
    date or several.
    """
    if (status := read_status(folder)) is None:
        return None
    names = (name for job in status.jobs.values() for name in job.files)
    days = {_day(found) for name in names if (found := written_date(name))}
    return days.pop() if len(days) == 1 else None


def two_days(paths: Iterable[str]) -> str:
    """Returns a description of two files with different dates; empty if all files have the same date."""
    first: tuple[str, DumpDay] | None = None
    for path in paths:
        found = day_of(path)
        if found is None:
            continue
        if first is None:
            first = path, found
        elif first[1].day != found.day:
            both = ((base_name(name), *own) for name, own in (first, (path, found)))
            return " and ".join(
                f"{name} is from {day.isoformat()} (according to {source})" for name, day, source in both
            )
    return ""


def check_one_day(paths: Iterable[str]) -> None:
    """Checks that all files have the same date.

    Raises:
        SetupError: two files have different dates.
    """
    if said := two_days(paths):
        raise SetupError(f"{said}, so the files do not belong to one dump. Give files that have the same date.")


_LEAST_CHANCE = 1e-6
_LEAST_SHARE = 0.25
"""A file counts as older than the others only if at least this share of their pages changed after its newest revision.
Parts of the same dump may differ by less. For example, in a wiki of 2,004 pages, a part with a third of the page ids
was unchanged in the last two months, in which 3 % of the other pages changed.
"""


def check_revision_days(days: Mapping[str, Mapping[str, int]], undated: Collection[str]) -> None:
    """Checks that files belong to the same dump, by the days of their revisions.

    Args:
        days: for every file, the number of pages by the day of their newest revision.
        undated: files whose date is unknown. All other files must have the same date.

    All parts of a dump are written at about the same time, and each contains recently changed pages. A file counts as
    part of an earlier dump if none of its pages changed after some day, at least a quarter of the pages in the other
    files did, and the probability that this happens by chance is below one in a million. A few unchanged pages are not
    sufficient.

    Raises:
        SetupError: a file belongs to an earlier dump than others.
    """
    if len(days) < 2:
        return
    newest = {file: max(own) for file, own in days.items() if own}
    total: Counter[str] = Counter()
    for own in days.values():
        total.update(own)
    latest = max(newest, key=lambda file: newest[file], default="")
    for file, day in newest.items():
        first, last = _day(day), _day(newest[latest])
        if first is None or last is None or last - first <= MOST_DAYS_LATER:
            continue
        if file not in undated and latest not in undated:
            continue
        n_pages = sum(days[file].values())
        n_later = sum(count for other, count in total.items() if other > day)
        share = n_later / (total.total() - n_pages + 1)
        if share >= _LEAST_SHARE and n_pages * math.log1p(-share) < math.log(_LEAST_CHANCE):
            raise SetupError(
                f"{latest} has revisions up to {last}, but {file} has none after {first}, and {share:.0%} of the "
                f"pages in the other files changed later, so the files do not belong to one dump. Give files that "
                f"have the same date. If they do, write the date into their names, as in "
                f"enwiki-20260101-pages-articles1.xml.bz2."
            )
