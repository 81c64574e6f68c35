"""A problem file reads from its own folder, and from folders that the user names."""

import os
from pathlib import Path

import pytest

from r2n.data.problem import FOLDERS_VARIABLE, checked_path, load_problem
from r2n.errors import ConfigError
from tests.toy_problem import write_toy_problem


@pytest.mark.parametrize("given", ["facts.tsv", "parts/facts.tsv", "parts/../facts.tsv", "./facts.tsv", "..facts"])
def test_inside(given: str, tmp_path: Path) -> None:
    assert checked_path(tmp_path, given) == tmp_path / given


@pytest.mark.parametrize("given", ["../facts.tsv", "/etc/passwd", "parts/../../facts.tsv", "..", "link/facts.tsv"])
def test_outside(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDERS_VARIABLE, raising=False)
    folder, elsewhere = tmp_path / "problem", tmp_path / "problem2"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "link").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=f"'{given}' lies outside .*\n.*{FOLDERS_VARIABLE}="):
        checked_path(folder, given)
    monkeypatch.setenv(FOLDERS_VARIABLE, os.pathsep.join([str(tmp_path), "", "/etc"]))
    assert checked_path(folder, given) == folder / given


@pytest.mark.parametrize("given", ["\0", "x" * 5000])
def test_what_no_file_can_be_called_is_left_to_the_reader(given: str, tmp_path: Path) -> None:
    assert checked_path(tmp_path, given) == tmp_path / given


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('theory = "{}"', "theory"),
        ('[facts]\ntrain = ["{}"]', "train"),
        ('[facts]\nbackground = ["{}"]', "background"),
        ('[queries]\ntest = ["{}"]', "test"),
        ('[domains]\nplace = "{}"', "domains"),
        ('[features.place]\ntable = "{}"', "features"),
        ('[candidates.liesIn]\ntables = ["{}"]', "candidates"),
        ('[grounding]\nkept = "{}"', "kept"),
    ],
)
def test_every_path_of_a_problem_file_is_asked(line: str, key: str, tmp_path: Path) -> None:
    assert key in line
    (tmp_path / "secret.tsv").write_text("liesIn\ta\tb\n")
    folder = write_toy_problem(tmp_path / "towns")
    (folder / "problem.toml").write_text(line.format("../secret.tsv"))
    with pytest.raises(ConfigError, match=r"'\.\./secret\.tsv' lies outside"):
        load_problem(folder)
