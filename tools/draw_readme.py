"""A run -> `docs/images`: makes the pictures of the README, in light and dark.

    python tools/draw_readme.py                    # trains countries-s2 (a minute), draws an explanation and the report
    python tools/draw_readme.py --run runs/s2      # takes a run that is there

The explanation is drawn as SVG. The report is a picture of its page, made by Chromium where that is installed
(`apt-get install chromium`, or any browser of its family), and left as it is where it is not. All files are small.
The picture of the page of `r2n serve` is made by `tools/draw_page.py`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from PIL import Image

from r2n.cli import app
from r2n.explanation.drawing import explanation_svg
from r2n.explanation.records import explanation_text
from r2n.model.model import Model

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PROBLEM = "countries-s2"
ATOM = "locatedIn(germany, europe)"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LARGEST = 300_000  # bytes of a picture
COLOURS = (256, 128, 64, 32)  # of a picture of a page, fewer until it is small enough


def main() -> None:
    """Draw all pictures."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        run = options.run or trained(Path(scratch) / "run")
        options.out.mkdir(parents=True, exist_ok=True)
        _draw_explanation(run, options)
        _draw_report(run, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help=f"a run folder; without it, {PROBLEM} is trained")
    parser.add_argument("--atom", default=ATOM, help=f"what is explained (default: {ATOM})")
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--top", type=int, default=4)
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--size", default="1280x1000", help="of the report's picture, in pixels (default: 1280x1000)")
    return parser.parse_args()


def trained(folder: Path) -> Path:
    """A run of the problem, in that folder."""
    app(["train", PROBLEM, "--out", str(folder)], standalone_mode=False)
    return folder


def _draw_explanation(run: Path, options: argparse.Namespace) -> None:
    explanation = Model.load(run).explain(options.atom, depth=options.depth, top=options.top)
    print(explanation_text(explanation))
    for theme in THEMES:
        write(options.out / f"explanation-{theme}.svg", explanation_svg(explanation, theme=theme).encode())


def _draw_report(run: Path, options: argparse.Namespace) -> None:
    """The first screen of the run's report."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    report = (run / "report.html").resolve()
    if browser is None or not report.exists():
        missing = "no browser is installed" if browser is None else f"there is no {report}"
        print(f"the report is not drawn: {missing}", file=sys.stderr)
        return
    for theme in THEMES:
        with tempfile.TemporaryDirectory() as scratch:
            shot = Path(scratch) / "shot.png"
            _photograph(browser, report, shot, options.size.replace("x", ","), theme)
            write(options.out / f"report-{theme}.png", smaller(shot))


def _photograph(browser: str, page: Path, shot: Path, size: str, theme: str) -> None:
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --hide-scrollbars"
    scheme = f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}"
    own = [f"--user-data-dir={shot.parent / 'profile'}", f"--screenshot={shot}", f"--window-size={size}"]
    command = [browser, *flags.split(), scheme, *own, page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


def smaller(shot: Path, largest: int = LARGEST) -> bytes:
    """The picture with as many colours as keep it small."""
    for colours in COLOURS:
        reduced = shot.with_name(f"{colours}.png")
        with Image.open(shot) as image:
            image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(reduced, optimize=True)
        if reduced.stat().st_size <= largest:
            return reduced.read_bytes()
    raise SystemExit(f"the picture has more than {largest:,} bytes: take a smaller size")


def write(path: Path, content: bytes, largest: int = LARGEST) -> None:
    """Write a picture that is small enough."""
    if len(content) > largest:
        raise SystemExit(f"{path} would have {len(content):,} bytes, more than {largest:,}: take fewer with --top")
    path.write_bytes(content)
    print(f"{path}: {len(content):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
