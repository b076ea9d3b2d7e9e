"""A real Chromium for tests, and what it and axe-core find wrong with a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SERIOUS = {"serious", "critical"}


@contextmanager
def open_browser() -> Iterator[Any]:
    """Starts a browser; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install 'kbsource[dev]'")
    if CHROMIUM is None:
        pytest.skip("needs Chromium on the PATH: apt-get install chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def serious_faults(page: Any) -> list[str]:
    """Gives the faults that axe-core calls serious or critical, each with where it is."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(page).response
    assert found["passes"], "axe-core checked nothing"
    return [
        f"{fault['id']}: {[node['target'] for node in fault['nodes'][:3]]}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
    ]
