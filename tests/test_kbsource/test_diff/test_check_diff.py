"""``kbsource verify`` of a diff compares it with the releases that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import SetupError
from tests.support.diff_worlds import made_diff
from tests.support.verified import verified


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_diff(tmp_path_factory.mktemp("diff"), 3, 40)


def test_other_releases_are_refused(made: Path) -> None:
    with pytest.raises(SetupError, match="was not made from the release"):
        verified(made / "diff", old=made / "new" / "release", new=made / "old" / "release")
    with pytest.raises(SetupError, match="--old and --new name the two sources of a diff of releases; pass both"):
        verified(made / "diff", old=made / "old" / "release")
