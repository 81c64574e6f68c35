"""A page in a browser of which all is noted that should not be: errors on its console, requests to other hosts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Download, Locator, Page, Request, expect

PATIENCE = 60_000  # milliseconds: a machine may be busy, and no test depends on how long it takes
READY = "main:not([aria-busy]) .view"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
AXE = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html).join(" | "));
}"""


@dataclass(frozen=True)
class Look:
    """How wide the page is, and in which colours."""

    width: int
    scheme: Literal["light", "dark"]

    def __str__(self) -> str:
        return f"{self.width}-{self.scheme}"


class WatchedPage:
    """One page, at one width and in one scheme of colours."""

    def __init__(self, browser: Browser, server: str, look: Look, axe: str, screenshots: Path) -> None:
        self.server, self.look, self.axe, self.screenshots = server, look, axe, screenshots
        self.context = browser.new_context(
            viewport={"width": look.width, "height": 900},
            color_scheme=look.scheme,
            accept_downloads=True,
            reduced_motion="reduce",
        )
        self.context.set_default_timeout(PATIENCE)
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.refused: set[int] = set()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._asked)
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def may_be_refused(self, status: int) -> None:
        """The browser itself writes an answer of this status on the console; here that is no fault."""
        self.refused.add(status)

    def _said(self, message: ConsoleMessage) -> None:
        is_expected = any(f"status of {status} " in message.text for status in self.refused)
        if message.type in ("error", "warning") and not is_expected:
            self.faults.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" != self.server:
            self.faults.append(f"request: {request.url}")

    def visit(self, path: str) -> None:
        self.page.goto(self.server + path)
        self.ready()

    def ready(self) -> None:
        """Wait until the view is there."""
        self.page.wait_for_selector(READY)

    def find(self, role: Any, name: Any = None, **options: Any) -> Locator:
        return self.page.get_by_role(role, name=name, **options)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def tab_to(self, target: Locator, most: int = 60) -> None:
        """Go there by the Tab key alone."""
        for _ in range(most):
            self.press("Tab")
            if target.evaluate("(element) => element === document.activeElement"):
                return
        raise AssertionError(f"the Tab key does not reach {target}")

    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    def expect_path(self, path: str) -> None:
        expect(self.page).to_have_url(self.server + path)

    def downloaded(self, button: Locator) -> tuple[str, str]:
        """The name and the content of the file that a button gives."""
        with self.page.expect_download() as waiting:
            button.click()
        download: Download = waiting.value
        return download.suggested_filename, Path(download.path()).read_bytes().decode("utf-8")

    def looked_at(self, name: str) -> None:
        """A screenshot; nothing may stand beyond the edge, and axe finds no violation."""
        self.screenshots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self.screenshots / f"{name}-{self.look}.png", full_page=True)
        assert self.page.evaluate(SIDEWAYS) <= 0, f"{name} is wider than {self.look.width} pixels"
        self.page.evaluate(self.axe)
        assert self.page.evaluate(AXE) == []

    def close(self) -> None:
        self.context.close()
