"""What of kbsource works without what, and what a command says that lacks something."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from kbsource.release.layout import shard_path
from pipelines.extras import _WITHIN, EXTRAS
from tests.support import mini_wiki
from tests.support.blocked import OTHERS, command_without, run_without
from tests.support.real_data import ROOT

BEYOND_BUILD = tuple(name for name, extra in EXTRAS.items() if extra not in ("verify", "publish", "build"))


def test_every_module_is_in_the_extra_that_is_named() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    required = {extra: {re.split(r"[^\w-]", line)[0].lower() for line in lines} for extra, lines in extras.items()}
    distributions = packages_distributions()

    for module, extra in EXTRAS.items():
        if module in distributions and module != "grpc":  # which Beam brings
            own = {name.lower().replace("_", "-") for name in distributions[module]}
            assert own & required[extra], (module, extra)
    assert set(EXTRAS.values()) <= set(required)
    for extra, brought in _WITHIN.items():
        inside = ",".join(extras[extra])
        assert all(re.search(rf"kbsource\[([\w,-]+,)?{name}[],]", inside) for name in brought), extra


@pytest.mark.slow
def test_tables_and_pages_are_read_with_the_base_alone(release: Path) -> None:
    done = run_without(
        OTHERS,
        "from kbsource.lookup import KnowledgeSource\n"
        "from kbsource.release.pages.kind import PAGES_RELEASE\n"
        f"with KnowledgeSource.open({str(release)!r}) as kb:\n"
        "    page = kb.by_title('the_Halvanes')\n"
        "    assert kb.by_qid(page.qid) == kb.by_url(page.url) == kb.by_id(page.page_id) == page\n"
        "    print(sum(1 for page in kb))\n"
        f"manifest = PAGES_RELEASE.read({str(release)!r})\n"
        f"print(len(list(PAGES_RELEASE.rows({str(release)!r}, manifest, 'redirects'))))\n",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["66", "20"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "blocked", "extra"),
    [
        (["verify", "RELEASE"], OTHERS, "verify"),
        (["build", "DUMP", "--output", "OUT"], OTHERS, "build"),
        (["report", "RELEASE", "--output", "OUT"], OTHERS, "inspect"),
        (["publish", "RELEASE", "--output", "OUT"], OTHERS, "publish"),
        (["map", "jsonl", "RELEASE", "--input", "DUMP", "--output", "OUT"], OTHERS, "align"),
        (["map", "jsonl", "RELEASE", "--input", "DUMP", "--output", "OUT"], BEYOND_BUILD, "align"),
        (["locate", "RELEASE", "--title", "Halvane Isles", "--evidence", "They lie in the sea."], OTHERS, "align"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(
    arguments: list[str], blocked: tuple[str, ...], extra: str, release: Path, tmp_path: Path
) -> None:
    places = {"RELEASE": str(release), "DUMP": str(mini_wiki.MULTISTREAM), "OUT": str(tmp_path / "out")}
    done = command_without(blocked, [places.get(part, part) for part in arguments])

    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"is not installed: pip install 'kbsource[{extra}]'\n")


def test_reading_loads_little(release: Path) -> None:
    done = run_without((), "import kbsource.lookup, sys; print(*sys.modules)")

    slow = {"pandas", "pyarrow.compute", "pyarrow.parquet", "importlib.metadata", "orjson", "email", "mapping"}
    assert slow.isdisjoint(done.stdout.split())


def test_columns_are_compared_without_pandas(release: Path) -> None:
    file = str(release / shard_path("pages", 0, 1))
    code = (
        "import sys\nfrom kbsource.release.pages.kind import PAGES_RELEASE\n"
        "from kbsource.release.reader import check_columns\n"
        f"check_columns({file!r}, PAGES_RELEASE.schemas('pages')); print(*sys.modules)"
    )
    loaded = run_without((), code).stdout.split()
    assert "pyarrow.parquet" in loaded
    assert "pandas" not in loaded


@pytest.mark.slow
def test_what_looks_for_similar_titles_is_not_in_the_base(release: Path) -> None:
    done = command_without(OTHERS, ["show", str(release), "Halvane Isle"])

    assert done.returncode == 1
    assert "no page for 'Halvane Isle'" in done.stderr
    assert "Similar titles were not searched for: " in done.stderr
    assert "Traceback" not in done.stderr
