"""Chromium, headless, for tests of the dashboard: pages that must not complain and must not leave their server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or ""
WAIT_SECONDS: Final = 60.0

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
needs_chromium: Final = pytest.mark.skipif(
    not CHROMIUM, reason="Chromium is not installed: apt install chromium"
)


class BrowserPage:
    """A page of the dashboard, and everything that went wrong on it."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.problems: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Parts of messages that are no problem here, such as requests that are refused."""
        self._host = urlsplit(url).netloc
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("request", self._request)
        page.on("dialog", self._dialog)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if urlsplit(request.url).netloc != self._host:
            self.problems.append(f"request to another host: {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def check(self) -> None:
        """Nothing went wrong."""
        found = [each for each in self.problems if not any(text in each for text in self.expected)]
        assert found == []

    def open(self, address: str) -> None:
        self.page.evaluate("address => { location.hash = address; }", address)

    def wait(self, condition: str, seconds: float = WAIT_SECONDS) -> Any:
        """Wait until an expression is true. The policy of the page forbids what Playwright would do itself."""
        deadline = time.monotonic() + seconds
        while not (found := self.page.evaluate(f"(() => {condition})()")):
            if time.monotonic() > deadline:
                text = self.page.evaluate("document.body.innerText")
                raise AssertionError(
                    f"{condition}: not within {seconds:.0f} s; {self.problems}; {text}"
                )
            time.sleep(0.05)
        return found

    def wait_for_text(self, *texts: str, where: str = "#panel") -> None:
        for text in texts:
            self.wait(f"document.querySelector({where!r}).innerText.includes({text!r})")

    def wait_ready(self) -> None:
        self.wait("window.allot && allot.isReady && allot.figures")

    def states(self) -> dict[str, str]:
        """The states of devices by name, as the floor plan shows them."""
        found: dict[str, str] = self.page.evaluate(
            "Object.fromEntries([...allot.plan.shown.devices.values()]"
            ".map(each => [`${each.pool}/${each.name}`, each.state]))"
        )
        return found


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; one at a time."""
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, url: str, width: int = 1600, height: int = 1000) -> Iterator[BrowserPage]:
    """A page with cookies of its own."""
    context = browser.new_context(viewport={"width": width, "height": height})
    try:
        page = context.new_page()
        found = BrowserPage(page, url)
        page.goto(url)
        yield found
    finally:
        context.close()
