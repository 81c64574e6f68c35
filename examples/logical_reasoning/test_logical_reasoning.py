"""The claim of the example, and the truth behind its data."""

from pathlib import Path
from time import process_time

import pytest

from examples.comparison import MOST_SECONDS, make_problem, trained
from examples.logical_reasoning.__main__ import EXAMPLE, comparison
from examples.logical_reasoning.make_data import make_data


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_the_rights_follow_from_the_facts(tmp_path: Path) -> None:
    """Who can read what, computed by loops over the tables."""
    make_data(tmp_path, 0)
    facts = rows(tmp_path / "facts.tsv")
    team = {x: t for x, name, t in facts if name == "memberOf"}
    owner = {p: t for t, name, p in facts if name == "owns"}
    stands_in_for = {x: y for x, name, y in facts if name == "standsInFor"}
    contractors, secrets = ({row[0] for row in rows(tmp_path / f"{name}.tsv")} for name in ("contractors", "secrets"))

    def can_read(x: str, p: str) -> bool:
        if x in contractors and p in secrets:
            return False
        return team[x] == owner[p] or (x in stands_in_for and can_read(stands_in_for[x], p))

    labelled = [row for split in ("train", "valid", "test") for row in rows(tmp_path / f"{split}.tsv")]
    assert len(labelled) == len(team) * len(owner)
    assert {(x, p): bool(int(label)) for x, _, p, label in labelled} == {
        (x, p): can_read(x, p) for x in team for p in owner
    }


@pytest.mark.slow
def test_one_network_learns_which_rule_wins() -> None:
    """With one seed; where a contractor is refused, the rules are of two minds and the network is not."""
    run = trained(make_problem(EXAMPLE, make_data, 10), 10)
    assert run.evaluate("valid").metrics["ap"] > 0.95


@pytest.mark.slow
def test_learning_with_rules_is_better_than_rules_alone_and_than_no_rules() -> None:
    start = process_time()
    found = comparison()
    assert process_time() - start < MOST_SECONDS
    assert len(found.figures["R2N"]) == 5
    assert found.holds(), "\n".join(found.lines())
