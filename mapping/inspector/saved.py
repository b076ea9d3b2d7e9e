"""Renders templates, and saves a document as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kbsource.errors import SetupError, counted
from mapping.document import Document, cell_text

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
_SCRIPTS = ("vendor/d3.min.js", "vendor/plot.min.js", "charts.js")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Returns the template environment: everything is escaped, and a missing value is an error.

    Raises:
        SetupError: Jinja is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        from mapping.inspector.marking import mark_text, shown
    except ImportError as error:
        raise SetupError(
            "A page of HTML needs Jinja, which is not installed: pip install 'kbsource[inspect]'"
        ) from error
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(number=lambda value: f"{value:,}", shown=shown, marked=mark_text, cell=cell_text)
    made.globals.update(counted=counted, kind_of=lambda block: type(block).__name__)
    return made


def saved_page(document: Document) -> str:
    """Returns a document as one self-contained HTML file. Its content security policy allows only its own style and
    scripts."""
    from markupsafe import Markup

    template = environment().get_template("saved.html")
    static = FOLDER / "static"
    style, *scripts = (Markup((static / name).read_text("utf-8")) for name in ("inspector.css", *_SCRIPTS))
    return template.render(
        document=document,
        style=style,
        scripts=scripts,
        style_hash=_hash(style),
        script_hashes=[_hash(script) for script in scripts],
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
