"""Places that cannot be read or written: a message and exit code 2, never a traceback, whatever the command."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.toy_problem import write_toy_problem


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_toy_problem(tmp_path / "toy", epochs=1)


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2, result.output
    return result.stderr


def places(folder: Path) -> list[Path]:
    (folder / "file").write_text("x")
    return [folder / "file", folder / "file" / "below", folder / ("n" * 300), Path("/proc/none/below")]


@pytest.mark.parametrize("command", ["train", "ground", "generate"])
def test_a_folder_that_cannot_be_made(command: str, toy: Path, tmp_path: Path) -> None:
    for place in places(tmp_path):
        before = ["datasets", "generate"] if command == "generate" else [command, toy, "--out"]
        assert "--out" in refused(*before, place) or command == "generate"


def test_a_problem_or_run_that_cannot_be_read(tmp_path: Path) -> None:
    for place in places(tmp_path):
        refused("check", place)
        refused("evaluate", place)


@pytest.mark.parametrize("key", ["theory", "name"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_nul_in_a_problem_file(key: str, part: str, toy: Path) -> None:
    path = toy / "problem.toml"
    text = path.read_text()
    for spoiled in (text.replace(f'"{part}.tsv"', f'"{part}\\u0000.tsv"'), f'{key} = "a\\u0000b"\n[facts]'):
        path.write_text(spoiled)
        assert "NUL" in refused("check", toy)


@pytest.mark.slow
def test_a_name_that_is_too_long_or_a_path_still_has_a_folder_in_runs(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (toy / "problem.toml").read_text()
    for name in ("x" * 5_000, "../../outside", "[/]", ".."):
        (toy / "problem.toml").write_text(text.replace('name = "towns"', f'name = "{name}"'))
        result = CliRunner().invoke(app, ["train", str(toy), "--set", "model.dim=2"])
        assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "toy"]
    assert len(list((tmp_path / "runs").iterdir())) == 4
