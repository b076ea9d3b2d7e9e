"""What the tests on clusters fetch has the sums that it is known by."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from tests.support import spark_kit


def test_parts_of_a_job_server_have_known_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins, parts = tmp_path / "pins", tmp_path / "parts"
    parts.mkdir()
    (parts / "a.jar").write_bytes(b"a")
    pins.write_text(f"{hashlib.sha256(b'a').hexdigest()}  a.jar\n")
    monkeypatch.setattr(spark_kit, "PINS", pins)
    spark_kit.check_parts(parts)

    (parts / "a.jar").write_bytes(b"b")
    with pytest.raises(SetupError, match=r"a\.jar has the SHA-256 .*, not ca978112"):
        spark_kit.check_parts(parts)
    (parts / "a.jar").write_bytes(b"a")
    (parts / "b.jar").write_bytes(b"b")
    with pytest.raises(SetupError, match=r"b\.jar has the SHA-256 .*, not one that is known"):
        spark_kit.check_parts(parts)
