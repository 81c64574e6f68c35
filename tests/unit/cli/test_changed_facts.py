"""Facts that a command is told: what became of them is said, and errors name the option."""

from typing import Any

import pytest

from r2n.cli.prediction import changed, changes_told, tell_of_changes
from r2n.errors import ConfigError, DataError, Location
from r2n.model.model import Model
from r2n.model.run import Run


class Recorded:
    """In place of a predictor: what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[str], dict[str, list[str]]]] = []

    def with_facts(self, facts: list[str], *, domains: dict[str, list[str]]) -> "Recorded":
        self.told.append(("with", facts, domains))
        return self

    def without_facts(self, facts: list[str]) -> "Recorded":
        self.told.append(("without", facts, {}))
        return self


def told(more: list[str], fewer: list[str], constants: list[str]) -> list[Any]:
    recorded = Recorded()
    untyped: Any = changed
    while hasattr(untyped, "__wrapped__"):  # without the checks of types, which want a Model
        untyped = untyped.__wrapped__
    assert untyped(recorded, more, fewer, constants) is recorded
    return recorded.told


def test_facts_go_before_others_come() -> None:
    domains = {"country": ["atlantis", "lemuria"], "region": ["ocean"]}
    constants = ["country=atlantis", " country = lemuria ", "region=ocean"]
    assert told(["p(a)"], ["q(a)"], constants) == [("without", ["q(a)"], {}), ("with", ["p(a)"], domains)]
    assert told([], [], ["country=atlantis"]) == [("with", [], {"country": ["atlantis"]})]
    assert told([], [], []) == []


@pytest.mark.parametrize("constant", ["atlantis", "=atlantis", "country="])
def test_a_constant_without_a_domain_is_refused(constant: str) -> None:
    with pytest.raises(ConfigError, match="write --constant DOMAIN=NAME"):
        told([], [], [constant])


def test_errors_name_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(where: Location | None) -> Any:
        def refused(*_: object, **__: object) -> None:
            raise DataError("wrong", where=where, hint="do this")

        return refused

    monkeypatch.setattr(Recorded, "with_facts", refuse(Location("facts.tsv", 3)))
    with pytest.raises(DataError, match=r"--with facts.tsv:3: wrong\n  do this"):
        told(["facts.tsv"], [], [])
    monkeypatch.setattr(Recorded, "without_facts", refuse(Location(None, 1, 4)))
    with pytest.raises(DataError, match="--without: wrong"):
        told([], ["p(a"], [])


def test_what_a_person_should_know_is_told(toy_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    predictor = Model.from_run(toy_run).with_facts(["near(n5, nort)"])
    told = ["new constant: nort (did you mean 'north'?)"]
    assert changes_told(predictor, facts_changed=False) == told
    assert changes_told(predictor, facts_changed=False, but_not=["nort"]) == []
    told += ["this network does not read facts (model.evidence_input = off): they act through the grounding alone"]
    tell_of_changes(predictor, facts_changed=True)
    assert capsys.readouterr().err.splitlines() == told
