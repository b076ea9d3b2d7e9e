"""What pyproject.toml cannot say: with KBSOURCE_COMPILE=1 the wheel has the parser compiled, with the same results."""

import os

from setuptools import Extension, setup

COMPILED = tuple(
    f"kbsource/wikitext/{name}.py"
    for name in (
        "blocks",
        "braces",
        "brackets",
        "citations",
        "lines",
        "page_builder",
        "parse",
        "preparation",
        "reference_texts",
        "references",
        "templates",
        "walk",
    )
)
"""The modules that articles pass through and that gain; expander, markers and tags, which are regular expressions, do
not."""


def extensions() -> list[Extension]:
    """The compiled modules; none unless they are asked for."""
    if os.environ.get("KBSOURCE_COMPILE") != "1":
        return []
    try:
        from mypyc.build import mypycify
    except ModuleNotFoundError as error:
        raise SystemExit(
            "KBSOURCE_COMPILE=1 needs mypy and what kbsource imports: install kbsource[dev], then pip wheel "
            "--no-build-isolation."
        ) from error
    modules: list[Extension] = mypycify(
        ["--follow-imports=silent", *COMPILED], opt_level=os.environ.get("MYPYC_OPT_LEVEL", "3")
    )
    return modules


setup(ext_modules=extensions())
