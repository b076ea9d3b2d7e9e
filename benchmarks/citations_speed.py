"""Measures reading the fields of citation templates: microseconds per citation, over every use in the real slices."""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.environment import machine, table, write_json
from benchmarks.slices import OTHERS, S1, data_root, read_slices
from kbsource.wikitext.braces import expand_braces
from kbsource.wikitext.citations import is_citation, read_citation
from kbsource.wikitext.templates import split_template

BAR_US = 60.0  # a page has hundreds of citations
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PLACE = re.compile("\ue000([0-9]+)\ue001")


class Use(NamedTuple):
    """One use of a citation template, with its arguments as wikitext."""

    name: str
    arguments: dict[str, str]
    language: str


def uses_of(text: str, language: str) -> Iterator[Use]:
    """Yields the uses of citation templates in a page's wikitext; inner uses come first."""
    inners: list[str] = []

    def keep(inner: str, _: int) -> str:
        inners.append(inner)
        return f"\ue000{len(inners) - 1}\ue001"

    def written(piece: str) -> str:
        return _PLACE.sub(lambda found: f"{{{{{written(inners[int(found[1])])}}}}}", piece)

    expand_braces(_COMMENT.sub("", text), on_template=keep, on_parameter=lambda _: "", on_broken=lambda: None)
    for inner in inners:
        template = split_template(inner, language)
        if template is not None and is_citation(template.name, language):
            numbered = {str(place): written(value) for place, value in enumerate(template.positional, 1)}
            named = {name: written(value) for name, value in template.named.items()}
            yield Use(template.name, numbered | named, language)


def measure(data: str | None, *, n_rounds: int) -> dict[str, Any]:
    """Measures the uses in S1, and the uses in all other slices together."""
    result: dict[str, Any] = {"machine": machine(), "rounds": n_rounds, "sets": {}}
    for name, files in (("S1", (S1,)), ("others", OTHERS)):
        uses = [
            use
            for dump in read_slices(data_root(data), files)
            for page in dump.articles()
            for use in uses_of(page.text, dump.site.lang)
        ]
        rounds = [_seconds(uses) for _ in range(n_rounds + 1)][1:]  # the first reads the rules
        result["sets"][name] = {
            "citations": len(uses),
            "us": 1e6 * statistics.median(rounds) / len(uses),
            "bar": BAR_US,
        }
    return result


def _seconds(uses: list[Use]) -> float:
    started = time.process_time()
    for name, arguments, language in uses:
        read_citation(name, arguments, language=language, plain=str)
    return time.process_time() - started


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    rows = [(name, *measured.values()) for name, measured in result["sets"].items()]
    print(table(("slices", "citations", "µs a citation", "bar"), rows))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, n_rounds=args.rounds)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
