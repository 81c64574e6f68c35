"""r2n ask, without a terminal; with one: tests/end_to_end/test_asking.py."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import r2n.cli.asking
import r2n.cli.asking_prompt
from r2n.cli import app
from r2n.cli.asking_session import Session
from tests.toy_problem import write_toy_problem

runner = CliRunner()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    write_toy_problem(folder / "towns", epochs=1)
    arguments = ["train", str(folder / "towns"), "--out", str(folder / "run"), "--no-report", "--no-baseline"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return folder / "run"


def ask(run: Path, *lines: str, options: tuple[str, ...] = (), code: int = 0) -> Result:
    result = runner.invoke(app, ["ask", str(run), *options], input="".join(f"{line}\n" for line in lines))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_lines_of_standard_input_are_answered(run_folder: Path) -> None:
    result = ask(run_folder, "liesIn(n5, ?)", "", "   ", ":why 1")
    first = next(line.split("│")[2].strip() for line in result.stdout.splitlines() if line.startswith("│ 1 │"))
    assert f"\n{first}  0." in result.stdout
    assert "layer by layer" in result.stdout
    assert "probabilities: " in result.stderr
    assert ask(run_folder).stdout == ""


def test_errors_have_a_caret_and_the_shell_lives_on(run_folder: Path) -> None:
    result = ask(run_folder, "liesIn(n5, )", ":top 0", "liesIn(n5, north)", code=2)
    assert (
        "error: line 1, column 11: a constant or ? was expected\n  | liesIn(n5, )\n  |           ^\n" in result.stderr
    )
    assert "error: :top takes a number" in result.stderr
    assert "liesIn(n5, north)" in result.stdout


def test_nothing_is_read_after_the_end(run_folder: Path) -> None:
    assert ask(run_folder, ":quit", "nonsense").stdout == ""


def test_json_is_a_document_for_each_line(run_folder: Path) -> None:
    lines = ["liesIn(n5, ?)", ":why 1", "lieIn(n5, ?)", ":with near(n5, s5)", ":facts", ":reset", ":top 3", ":help"]
    result = ask(run_folder, *lines, options=("--json",), code=2)
    documents: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(documents) == len(lines)
    asked, why, wrong, more, facts, reset, top, told = documents
    predicted = runner.invoke(app, ["predict", str(run_folder), "liesIn(n5, ?)", "--json"])
    assert asked == json.loads(predicted.stdout)
    explained = runner.invoke(app, ["explain", str(run_folder), asked["answers"][0]["atom"], "--json"])
    assert why == json.loads(explained.stdout)
    assert wrong["line"] == "lieIn(n5, ?)"
    assert wrong["error"]["what"] == "unknown predicate 'lieIn'"
    assert wrong["error"]["hint"] == "did you mean 'liesIn'?"
    assert more["with"] == facts["with"] == ["near(n5, s5)"]
    assert reset["with"] == []
    assert top == {"top": 3}
    assert ":why ATOM" in told["help"]


def test_facts_of_options_and_of_lines_are_the_same(run_folder: Path) -> None:
    fact, question = "near(n5, s5)", "liesIn(n5, ?)"
    by_line = ask(run_folder, f":with {fact}", question, options=("--json",)).stdout.splitlines()[1]
    by_option, facts = ask(run_folder, question, ":facts", options=("--json", "--with", fact)).stdout.splitlines()
    assert by_line == by_option
    assert json.loads(facts)["with"] == [fact]


def test_what_is_no_text_is_refused(run_folder: Path) -> None:
    given = b"liesIn(\xff\xfe, ?)\nliesIn(n5, north)\n"
    result = runner.invoke(app, ["ask", str(run_folder)], input=given)
    assert result.exit_code == 2
    assert "unknown constant" in result.stderr
    assert "liesIn(n5, north)" in result.stdout


def test_without_a_terminal_an_interrupt_ends_it(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(session: Session, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "tell", interrupted)
    assert ask(run_folder, "liesIn(n5, ?)", "liesIn(n5, ?)", code=130).stderr.count("interrupted") == 1


def test_on_a_terminal_an_interrupt_ends_a_line(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed: Iterator[str | BaseException] = iter(
        [KeyboardInterrupt(), "liesIn(n5, north)\nliesIn(n5, south)", "liesIn(n6, north)", "lies", EOFError()]
    )

    def prompt() -> str:
        text = next(typed)
        if isinstance(text, BaseException):
            raise text
        return text

    tell = Session.tell

    def interrupted(session: Session, text: str) -> object:
        if "n6" in text:
            raise KeyboardInterrupt
        return tell(session, text)

    monkeypatch.setattr(r2n.cli.asking, "_is_terminal", lambda: True)
    monkeypatch.setattr(r2n.cli.asking_prompt, "prompt_of", lambda *_: prompt)
    monkeypatch.setattr(Session, "tell", interrupted)
    result = ask(run_folder)
    assert "44 known atoms; ask with ?" in result.stderr
    assert "liesIn(n5, north)" in result.stdout
    assert "liesIn(n5, south)" in result.stdout
    assert result.stderr.splitlines()[-3:-1] == ["interrupted", "error: 'lies' is no question"]
