"""Mined theories: their text states them, and a file is whole or not there."""

from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.errors import ConfigError
from r2n.mining.constraints import mine_constraints
from r2n.mining.mine import MiningOptions, mine_rules
from r2n.mining.mined_theory import check_theory_path, mined_theory, write_theory
from tests.mining_problems import THEORY, knowledge_of, random_knowledge

OWN = 'rule m0: u(x) -> p(x, x)\nrule c0: p(x, "a") -> !u(x)\n'


def test_the_text_states_the_theory() -> None:
    knowledge = random_knowledge(0, 0.4, THEORY + OWN)
    rules = mine_rules(knowledge, MiningOptions(constants=True)).rules
    constraints = mine_constraints(knowledge, max_exceptions=0.5)
    assert rules
    assert constraints
    for fresh, own in ((False, 2), (True, 0)):
        theory, text = mined_theory(knowledge.theory, rules, constraints, fresh=fresh)
        assert r2n.parse_theory(text) == theory
        written = sum(not constraint.kind.startswith("range") for constraint in constraints)
        assert len(theory.rules) == own + len(rules) + written
        assert text.count("# support") == len(rules)
        for mined in rules:
            assert f"# {mined}\n{mined.rule}\n" in text


def test_names_that_break_lines_stay_in_their_comment() -> None:
    name = "p\nq"
    theory = 'domain d = {a, b, c}\npredicate "p\\nq"(d, d)\n'
    knowledge = knowledge_of(theory, {name: np.array([[0, 1], [1, 2], [2, 0]])})
    whole, text = mined_theory(knowledge.theory, (), mine_constraints(knowledge))
    assert r2n.parse_theory(text) == whole
    assert len(whole.rules) == 4


def test_a_file_is_written_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "mined.r2n"
    write_theory(path, "domain d\n")
    write_theory(path, "domain é\n")
    assert path.read_text("utf-8") == "domain é\n"
    assert [file.name for file in tmp_path.iterdir()] == ["mined.r2n"]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_theory(tmp_path / "nowhere" / "mined.r2n", "")


@pytest.mark.parametrize("name", ["mined.txt", "mined", "nowhere/mined.r2n"])
def test_a_file_that_cannot_be_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        check_theory_path(tmp_path / name)
