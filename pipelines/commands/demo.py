"""``kbsource demo``: makes every kind of release from the mini-wiki that is part of the package."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from kbsource.errors import SetupError
from mapping.options import FolderPath
from pipelines.extras import first_missing
from pipelines.terminal import Summary, print_text, styled

_OUTPUT = "kbsource-demo"
_DUMP = "miniwiki-20260101"
_LOOKED_AT = ("release", "aligned", "amber", "qampari", "passages", "benchmark")


class DemoStep(NamedTuple):
    """One step of the demo: a command and its title."""

    title: str  #: title of the step, in one line
    extra: str  #: the extra of kbsource that it needs; empty for none
    arguments: (
        str  #: arguments of ``kbsource``; ``@NAME`` is a file of the mini-wiki, ``%NAME`` a path in the output folder
    )
    made: tuple[str, ...] = ()  #: paths in the output folder that earlier steps must have made


STEPS = (
    DemoStep(
        "Tables of Wikidata; two lines of the dump are broken on purpose",
        "build",
        "wikidata @miniwikidata-20260101-all.json.bz2 --output %wikidata --max-rejects 0.01",
    ),
    DemoStep("Check these tables", "verify", "verify %wikidata", ("wikidata",)),
    DemoStep(
        "A release of the pages, with their Wikidata items",
        "build",
        f"build @{_DUMP}-pages-articles-multistream.xml.bz2 --page-props @{_DUMP}-page_props.sql.gz "
        "--wikidata %wikidata --output %release --max-rejects 0.05",
        ("wikidata",),
    ),
    DemoStep("Check the release: recompute its invariants", "verify", "verify %release", ("release",)),
    DemoStep("A description of the release", "", "info %release", ("release",)),
    DemoStep("A page of it", "", "show %release 'Halvane Isles'", ("release",)),
    DemoStep("Page views", "build", "pageviews @miniviews-202512-user --site miniwiki --output %views"),
    DemoStep("The page views of one title", "", "show %views 'Halvane Isles'", ("views",)),
    DemoStep(
        "The release in the format of KILT's knowledge source",
        "",
        "export-kilt %release --output %kilt.jsonl",
        ("release",),
    ),
    DemoStep(
        "KILT's eleven datasets, aligned to the release",
        "align",
        "map all %release --config @datasets.yaml --output %aligned",
        ("release",),
    ),
    DemoStep(
        "AmbER sets: entities that share a name",
        "align",
        "amber %release %wikidata %views --types @amber_types.json --false-objects wikidata --output %amber",
        ("release", "wikidata", "views"),
    ),
    DemoStep("Check the sets against the pages", "align", "verify %amber --kb %release", ("amber",)),
    DemoStep("One set, with its head and tail entities", "", "show %amber Lantern", ("amber",)),
    DemoStep(
        "QAMPARI: questions with many answers",
        "align",
        "qampari %release %wikidata --model none --output %qampari",
        ("release", "wikidata"),
    ),
    DemoStep("Check that the pages contain the proofs", "align", "verify %qampari --kb %release", ("qampari",)),
    DemoStep(
        "Passages for a retriever", "align", "passages %release --output %passages --format pyserini", ("release",)
    ),
    DemoStep(
        "Entity-linking data and an alias table",
        "align",
        "entity-linking %release --output %linking --train 100 --dev 10",
        ("release",),
    ),
    DemoStep(
        "Links for the mentions in a text", "align", "link %linking 'The Halvane Isles lie in the sea.'", ("linking",)
    ),
    DemoStep(
        "Passages for the questions, ranked by BM25",
        "search",
        "search %passages --queries %qampari/qampari_data/dev_data.jsonl --top 200 --output %bm25-dev.jsonl",
        ("qampari", "passages"),
    ),
    DemoStep(
        "Compare retrieval systems on all of these datasets",
        "search",
        "benchmark %passages %aligned %qampari %amber %linking --system bm25 aliases aliases+bm25 --linking %linking "
        "--output %benchmark",
        ("aligned", "amber", "qampari", "passages", "linking"),
    ),
    DemoStep(
        "The questions with passages, including hard negatives",
        "search",
        "qampari-contexts %qampari %passages --retrieved %bm25-dev.jsonl --output %contexts",
        ("qampari", "passages", "bm25-dev.jsonl"),
    ),
)
"""The steps of the demo, in order."""


def demo(*, output: FolderPath = _OUTPUT) -> Summary:
    """Make every kind of release from a small invented wiki.

    Runs the commands on the mini-wiki that is part of the package, and prints each command line before it runs. Makes
    tables of Wikidata, a release of pages, page views, the KILT datasets aligned to the release, AmbER sets, QAMPARI,
    passages, entity-linking data and a benchmark. This takes a minute or two. Steps whose extra is not installed are
    skipped.

    Args:
        output: New folder for the results.

    Examples:
        kbsource demo
        kbsource demo --output ../kbsource-demo
    """
    output = output.rstrip("/") or "/"
    if os.path.exists(output) and (not os.path.isdir(output) or os.listdir(output)):
        raise SetupError(f"--output {output} already exists; remove it, or name a new folder.")
    if why := _obstacle(STEPS[0], output):
        raise SetupError(f"no step can run: {why}")
    left_out: list[tuple[DemoStep, str]] = []
    for number, step in enumerate(STEPS, start=1):
        print_text(styled(f"\n{number} of {len(STEPS)}: {step.title}", "bold"))
        arguments = step_arguments(step, output)
        print_text(f"$ kbsource {shlex.join(arguments)}")
        sys.stdout.flush()
        if why := _obstacle(step, output):
            left_out.append((step, why))
            print_text(f"Skipped: {why}")
        elif code := run_step(arguments):
            sys.stderr.write(f"kbsource demo: step {number} ended with exit code {code}.\n")
            raise SystemExit(code)
    return _end(output, left_out)


def step_arguments(step: DemoStep, output: str) -> list[str]:
    """Returns the arguments of a step as a person would type them."""
    places = {"@": os.path.relpath(str(resources.files("kbsource.demo"))), "%": output}
    if places["@"].startswith(os.pardir):
        places["@"] = os.path.abspath(places["@"])
    return [
        os.path.join(places[word[0]], word[1:]) if word[0] in places else word for word in shlex.split(step.arguments)
    ]


def _obstacle(step: DemoStep, output: str) -> str:
    """Returns the reason why a step cannot run; empty if it can."""
    if missing := [name for name in step.made if not os.path.exists(os.path.join(output, name))]:
        return f"the step that makes {missing[0]}/ was skipped."
    if step.extra and (module := first_missing(step.extra)) is not None:
        return f"{module} is not installed: pip install 'kbsource[{step.extra}]'"
    return ""


def run_step(arguments: Sequence[str]) -> int:
    """Runs a command in a separate process, as a shell would, and returns its exit code."""
    # -P: the current folder may contain another module called pipelines.
    return subprocess.run([sys.executable, "-P", "-m", "pipelines.cli", *arguments], check=False).returncode


def _end(output: str, left_out: Sequence[tuple[DemoStep, str]]) -> Summary:
    lines = [f"\n{len(STEPS) - len(left_out)} of {len(STEPS)} steps done; the results are in {output}."]
    lines += [f"Skipped: {step.title}: {why}" for step, why in left_out]
    made = [place for name in _LOOKED_AT if os.path.exists(place := os.path.join(output, name))]
    return Summary("Look at it in a browser:", text="\n".join(lines), next=_here(("inspect", *made)))


def _here(arguments: Sequence[str]) -> str:
    """Returns a command line that works as printed, even if the shell does not use this environment."""
    program = os.path.join(os.path.dirname(sys.executable), "kbsource")
    found = shutil.which("kbsource")
    is_own = found is not None and os.path.realpath(found) == os.path.realpath(program)
    return shlex.join(("kbsource" if is_own or not os.path.exists(program) else os.path.relpath(program), *arguments))
