"""A run -> `docs/images/page-light.png` and `page-dark.png`: the page of `r2n serve`, as the README shows it.

    python tools/draw_page.py --run runs/s2        # a run of countries-s2; without it, one is trained

The page explains an atom, with a fact switched off: the answer turns. It is served and photographed, so that this needs
what `make test-browser` installs: Playwright, and Chromium.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from draw_readme import BROWSERS, IMAGES, PROBLEM, THEMES, smaller, trained, write
from playwright.sync_api import sync_playwright

VIEW = {"atom": "locatedIn(egypt, africa)", "depth": "1", "top": "4", "without": "neighborOf(egypt, sudan)"}
LARGEST = 200_000  # bytes of a picture


def main() -> None:
    """Draw the page in light and dark."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        run = options.run or trained(Path(scratch) / "run")
        with _served(run) as address:
            for theme in THEMES:
                shot = Path(scratch) / f"{theme}.png"
                _photograph(f"{address}/explain?{urlencode(VIEW)}", shot, options, theme)
                write(options.out / f"page-{theme}.png", smaller(shot, LARGEST), LARGEST)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help=f"a run folder; without it, {PROBLEM} is trained")
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=990)
    return parser.parse_args()


@contextmanager
def _served(run: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "r2n", "serve", str(run), "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(filter(None, (re.search(r"served at (http://\S+?)/;", line) for line in process.stderr))).group(
                1
            )
        finally:
            process.terminate()


def _photograph(address: str, shot: Path, options: argparse.Namespace, theme: str) -> None:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("no browser is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        size = {"width": options.width, "height": options.height}
        page = browser.new_page(viewport=size, color_scheme=theme, reduced_motion="reduce")  # pyright: ignore
        page.goto(address)
        page.wait_for_selector("main:not([aria-busy]) .r2n-drawing", timeout=120_000)
        page.screenshot(path=shot)


if __name__ == "__main__":
    main()
