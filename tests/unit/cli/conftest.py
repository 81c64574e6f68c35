"""A run that the tests of several commands look at; none of them changes it."""

from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.toy_problem import write_toy_problem


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    write_toy_problem(folder / "towns")
    out = invoke("train", str(folder / "towns"), "--out", str(folder / "run"))
    assert "towns, test" in out
    assert "some test queries" in out
    return folder / "run"
