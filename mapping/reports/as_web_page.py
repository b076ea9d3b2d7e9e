"""A report as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from kbsource.errors import SetupError
from mapping.charts import STYLE, svg
from mapping.reports.document import Block, Document, Marked, Share, cell_text, chart_table


def write_web_page(document: Document) -> str:
    """Gives the whole page. Its policy allows its own style and nothing else.

    Raises:
        SetupError: Jinja is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise SetupError(
            "A report as HTML needs Jinja, which is not installed: pip install 'kbsource[inspect]', or give "
            "--format markdown."
        ) from error
    folder = resources.files("mapping.reports")
    style = f"{STYLE}\n{folder.joinpath('page.css').read_text('utf-8')}"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(cell_text=cell_text, chart_table=chart_table, kind=_kind)
    environment.globals["is_share"] = lambda cell: isinstance(cell, Share)
    environment.globals["is_marked"] = lambda cell: isinstance(cell, Marked)
    environment.globals["svg"] = lambda chart, name: Markup(svg(chart, name=name, is_alone=False))
    return environment.from_string(folder.joinpath("page.html").read_text("utf-8")).render(
        document=document,
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def _kind(block: Block) -> str:
    return type(block).__name__
