"""The README's example in Python runs as it stands, on problems of either kind."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import r2n
from tests.toy_problem import write_toy_problem

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("only_true", [False, True])
def test_the_example_runs(
    only_true: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = r2n.load(str(write_toy_problem(tmp_path / "towns")))
    if only_true:  # as in knowledge graphs: there is no average precision of these
        test = problem.test
        problem = replace(problem, queries={"test": r2n.Evidence(test.atoms[test.truth], test.truth[test.truth])})
    monkeypatch.setattr(r2n, "load", lambda _: problem, raising=False)
    (code,) = re.findall(r"```python\n(import r2n\n.*?)```", README.read_text(encoding="utf-8"), re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert f"Report on 'queries' ({'ranking' if only_true else 'classification'}" in capsys.readouterr().out
