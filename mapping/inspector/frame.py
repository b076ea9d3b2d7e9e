"""What views are made of: their addresses, the template that they fill in, and lists by pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kbsource.errors import counted
from kbsource.release.kind import Kind
from mapping.inspector.marking import mark_text, shown
from mapping.inspector.opened import Opened

TEMPLATES = Path(__file__).parent / "templates"
ROWS_A_PAGE = 50


class View(NamedTuple):
    """One view of a release.

    Attributes:
        path: its address below the release, as Starlette writes paths: ``/records/{row:int}``.
        show: answers a request; called in a thread.
    """

    path: str
    show: Callable[[Request, Opened], Response]


class Tab(NamedTuple):
    """A view that is named in the head of every view of a release: its label, and its path below the release."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Views:
    """The views of some kinds of release.

    Attributes:
        kinds: that have them.
        views: beside the overview and the tables, which every release has.
        tabs: of them, those that the head names.
    """

    kinds: tuple[Kind[Any], ...]
    views: tuple[View, ...]
    tabs: tuple[Tab, ...] = ()


class Crumb(NamedTuple):
    """A step of the way to a view: what it is called, and its address."""

    label: str
    url: str


class Paging(NamedTuple):
    """Some rows of a long list, by their number.

    Attributes:
        start: number of the first one, from 0.
        n_rows: how many a page of the list has.
        total: rows of the list.
    """

    start: int
    n_rows: int
    total: int

    @property
    def end(self) -> int:
        """One past the last row."""
        return min(self.start + self.n_rows, self.total)

    @property
    def previous(self) -> int | None:
        """First row of the page of the list before this one; None where there is none."""
        return max(self.start - self.n_rows, 0) if self.start else None

    @property
    def next(self) -> int | None:
        """First row of the page of the list behind this one; None where there is none."""
        return self.end if self.end < self.total else None


def paging(request: Request, total: int, *, n_rows: int = ROWS_A_PAGE) -> Paging:
    """Gives the rows that a request asks for by ``?from=``, the number of the first one.

    Raises:
        HTTPException: that is no number of a row.
    """
    start = number_asked(request, "from") or 0
    if start and start >= total:
        raise HTTPException(404, f"There is no row {start:,}: the list has {counted(total, 'rows')}.")
    return Paging(start, n_rows, total)


def number_asked(request: Request, name: str) -> int | None:
    """Gives a number out of the query, None where it is not there.

    Raises:
        HTTPException: it is none, or a negative one.
    """
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise HTTPException(400, f"{name}={shown(given[:80])} is no number.")
    return int(given)


def render(
    request: Request,
    opened: Opened | None,
    template: str,
    *,
    title: str,
    crumbs: Sequence[Crumb] = (),
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """Gives a view: a template that extends ``base.html``, filled in.

    Args:
        request: that is answered.
        opened: release that is shown; None for views of none.
        template: its name below ``templates``.
        title: heading of the browser's tab.
        crumbs: steps between the release and the view, the view itself not among them.
        status: of the answer.
        values: what the template takes beside these and ``releases``.
    """
    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            opened=opened,
            title=title,
            crumbs=crumbs,
            releases=request.app.state.releases,
            tabs=request.app.state.tabs,
            searched=request.app.state.searched(opened),
            **values,
        )
    )
    return HTMLResponse(text, status)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Gives what fills in templates: everything is escaped, and a value that is missing is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(number=lambda value: f"{value:,}", shown=shown, marked=mark_text)
    made.globals.update(counted=counted)
    return made
