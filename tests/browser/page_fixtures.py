"""A real browser, a server of its own, and pages that watch over what they load and say."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.page_problem import train_page_run
from tests.browser.watched_page import PATIENCE, Look, WatchedPage
from tests.serving.listening import listening

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
TOKEN = "a-token-for-tests-alone"
LOOKS = [Look(width, scheme) for width in (360, 1600) for scheme in ("light", "dark")]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_page_run(tmp_path_factory.mktemp("page"))


@contextmanager
def served(run: Path, *options: str) -> Iterator[str]:
    """The address of a server of the run, for as long as it is needed."""
    with listening(run, "--workers", "2", *options) as found:
        yield found.address.rstrip("/")


@pytest.fixture(scope="session")
def server(run_folder: Path) -> Iterator[str]:
    with served(run_folder) as address:
        yield address


@pytest.fixture(scope="session")
def guarded_server(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks for a token."""
    token_file = tmp_path_factory.mktemp("token") / "token"
    token_file.write_text(TOKEN)
    with served(run_folder, "--token-file", str(token_file)) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("R2N_BROWSER") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert program is not None, "no Chromium is installed: apt-get install chromium, or set R2N_BROWSER"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture(scope="session")
def axe() -> str:
    named = os.environ.get("R2N_AXE")
    found = [Path(named)] if named else sorted(ROOT.glob(".venv/axe-*/package/axe.min.js"))
    assert found, "axe-core is missing: make test-browser brings it, or set R2N_AXE"
    return found[-1].read_text("utf-8")


Open = Callable[..., WatchedPage]


@pytest.fixture
def opened(browser: Browser, server: str, axe: str) -> Iterator[Open]:
    """Opens a view of the page; what went wrong in any of them fails the test at its end."""
    pages: list[WatchedPage] = []

    def open_view(path: str = "/", look: Look = LOOKS[-2], *, at: str = server) -> WatchedPage:
        page = WatchedPage(browser, at, look, axe, SCREENSHOTS)
        pages.append(page)
        page.visit(path)
        return page

    yield open_view
    for page in pages:
        page.close()
    for page in pages:
        assert page.faults == []


@pytest.fixture(params=LOOKS, ids=str)
def look(request: pytest.FixtureRequest) -> Look:
    return request.param


@pytest.fixture(params=[LOOKS[1], LOOKS[2]], ids=str)
def narrow_or_wide(request: pytest.FixtureRequest) -> Look:
    """Dark and narrow, or light and wide."""
    return request.param
