"""A real Chromium for tests, on files or on an application, and what it and axe-core find wrong with a page."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Literal

import pytest
import uvicorn
from starlette.applications import Starlette

from mapping.inspector.connection import LONGEST_S, BoundedConnection, server_config

CHROMIUM = os.environ.get("KBSOURCE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SERIOUS = {"serious", "critical"}
OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that ask about colours."""
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def open_browser() -> Iterator[Any]:
    """Starts the Chromium that ``KBSOURCE_CHROMIUM`` names or that is on the path; skips the test where there is
    none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install 'kbsource[dev]'")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium, or name one in KBSOURCE_CHROMIUM")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def serious_faults(page: Any, *rules: str) -> list[str]:
    """The faults that axe-core calls serious or critical, each with where it is; by some of its rules, or by all."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    # Selectors of all elements that pass would take most of the time.
    options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": rules} if rules else {})}
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe.Axe().axe_script)
    found = page.evaluate("options => axe.run(options)", options)
    assert found["passes"], "axe-core checked nothing"
    return [
        f"{fault['id']}: {[node['target'] for node in fault['nodes'][:3]]}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
    ]


@contextmanager
def served(app: Starlette, *, longest_s: float = LONGEST_S, lifespan: Literal["on", "off"] = "off") -> Iterator[str]:
    """Serves an application in a thread, and gives its address without the last slash.

    Args:
        longest_s: that the head or the body of a request may take.
    """
    connection = type("Connection", (BoundedConnection,), {"longest_s": longest_s})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = server_config(app, connection=connection)
        config.lifespan = lifespan
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)


@dataclass
class Browser:
    """A browser and all that went wrong in it.

    Attributes:
        url: of the application.
        faults: what the console said, errors of scripts, and dialogs.
    """

    url: str
    chromium: Any
    faults: list[str] = field(default_factory=list)

    @contextmanager
    def page(self, path: str = "/", *, viewport: dict[str, int] = DESKTOP, **options: Any) -> Iterator[Any]:
        """Opens a view in a window of its own.

        Args:
            path: of the view.
            viewport: size of the window.
            options: of Playwright's ``new_context``: ``color_scheme``, ``java_script_enabled``, ….
        """
        with self.chromium.new_context(viewport=viewport, **options) as context:
            page = context.new_page()
            page.on("console", lambda said: self.faults.append(f"{page.url}: {said.type}: {said.text}"))
            page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
            page.on("dialog", self._refuse)
            page.goto(self.url + path)
            yield page

    def _refuse(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def serious_faults(self, *paths: str) -> Iterator[str]:
        """What axe finds serious or critical in views in light colours, and of the dark ones."""
        with self.page(bypass_csp=True) as page:
            for path in paths:
                page.goto(self.url + path)
                for scheme, rules in (("light", ()), ("dark", OF_COLOURS)):
                    page.emulate_media(color_scheme=scheme)
                    yield from (f"{path}, {scheme}: {fault}" for fault in serious_faults(page, *rules))


@contextmanager
def browser_on(app: Starlette) -> Iterator[Browser]:
    """Serves an application and opens a browser for it; skips the test where there is none."""
    with open_browser() as chromium, served(app) as url:
        yield Browser(url, chromium)


def is_too_wide(page: Any) -> bool:
    """Whether a page scrolls sideways."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wide
