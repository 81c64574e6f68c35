"""How soon an answer is on the screen: from Enter in the page of `r2n serve` to the painted table, in Chromium.

Beside it the bare call of the model, `Model.predict`, on the same questions and in the same minutes. Needs what
`make test-browser` installs; where that is missing, nothing is measured.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

import r2n

sys.path.insert(0, str(Path(__file__).parent))
from grounding import print_rows, ratio_row

EPOCHS = 5  # weights do not matter for speed
QUESTIONS = 12
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT = """(question) => new Promise((done) => {
    const start = performance.now();
    const look = () => {
        const heading = document.querySelector("#answers-heading");
        const isThere = heading && heading.textContent.endsWith(question) && document.querySelector("tbody tr");
        if (!isThere) return requestAnimationFrame(look);
        requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - start) / 1000)));
    };
    document.querySelector("form.ask").requestSubmit();
    look();
})"""


def trained(name: str, folder: Path) -> Path:
    """A run that has seen a few epochs."""
    run = folder / name
    command = [sys.executable, "-m", "r2n", "train", name, "--out", str(run), "--set", f"training.epochs={EPOCHS}"]
    subprocess.run(command, check=True, capture_output=True)
    return run


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of a server of the run."""
    command = [sys.executable, "-m", "r2n", "serve", str(run), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = (re.search(r"served at (http://\S+?)/;", line) for line in process.stderr)
        try:
            yield next(filter(None, lines)).group(1)
        finally:
            process.terminate()


def questions_of(predictor: r2n.Model) -> list[str]:
    """Test queries, each with a ? for its last constant."""
    test = predictor.problem.test
    atoms = predictor.base.names(test.atoms[test.truth])
    return list(dict.fromkeys(re.sub(r", [^,]*\)$", ", ?)", atom) for atom in atoms))[: QUESTIONS + 2]


def bare(predictor: r2n.Model, questions: list[str]) -> list[tuple[float, float]]:
    """Seconds and CPU-seconds of each question, asked in Python."""
    seconds = []
    for question in questions:
        wall, cpu = perf_counter(), process_time()
        predictor.predict(question, top=20)
        seconds.append((perf_counter() - wall, process_time() - cpu))
    return seconds


def on_screen(browser: Any, server: str, questions: list[str]) -> list[float]:
    """Seconds of each question, from Enter to the painted table."""
    page = browser.new_page()
    page.goto(f"{server}/?{urlencode({'ask': questions[0]})}")
    page.wait_for_selector("tbody tr", timeout=60_000)
    seconds = []
    for question in questions[1:]:
        page.fill("#query", question)
        page.keyboard.press("Escape")
        seconds.append(page.evaluate(WAIT, question))
    page.close()
    return seconds


def measured(browser: Any, name: str, run: Path, target: float) -> list[dict[str, Any]]:
    """The seconds on the screen, and their ratio to the bare call."""
    predictor = r2n.Model.load(run)
    questions = questions_of(predictor)
    bare(predictor, questions[:1])
    with served(run) as server:
        shown = on_screen(browser, server, questions)[1:]
    alone = bare(predictor, questions)[2:]
    ratios = [seconds / wall for seconds, (wall, _) in zip(shown, alone, strict=True)]
    return [
        ratio_row(f"answer on the screen, {name}, seconds", "one second", shown, f"<= {target:g}"),
        ratio_row(f"answer on the screen, {name}", "Model.predict", ratios, ""),
        ratio_row(f"Model.predict, {name}, seconds", "one second", [wall for wall, _ in alone], ""),
        ratio_row(f"Model.predict, {name}, CPU-seconds", "one second", [cpu for _, cpu in alone], ""),
    ]


def main(
    as_json: Annotated[bool, typer.Option("--json")] = False,
    s3: Annotated[Path | None, typer.Option(help="A run of countries-s3.")] = None,
    kinship: Annotated[Path | None, typer.Option(help="A run of kinship.")] = None,
) -> None:
    """Measure, and print the table."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None or find_spec("playwright") is None:
        typer.echo("not measured: make test-browser installs the browser that this needs", err=True)
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        rows = measured(browser, "countries-s3", s3 or trained("countries-s3", Path(folder)), 0.3)
        rows += measured(browser, "kinship", kinship or trained("kinship", Path(folder)), 1.0)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
