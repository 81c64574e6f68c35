"""The loaded run, and what a request makes of it for itself alone."""

from pathlib import Path

import pytest

from r2n.errors import ConfigError, DataError
from r2n.serving.session import Session

PLAIN = {"with": [], "without": [], "constants": {}, "without_rules": []}


def test_a_request_that_changes_nothing_asks_the_loaded_network(session: Session) -> None:
    assert session.changed(PLAIN) is session.predictor
    assert session.changed({}) is session.predictor


def test_a_change_is_that_of_the_command_line(session: Session) -> None:
    changed = session.changed({**PLAIN, "without": ["liesIn(n0, north)"], "with": ["liesIn(n0, south)"]})
    expected = session.predictor.without_facts("liesIn(n0, north)").with_facts("liesIn(n0, south)")
    assert changed.predict("liesIn(?, ?)") == expected.predict("liesIn(?, ?)")
    assert session.predictor.predict("liesIn(n0, north)")[0].known


def test_rules_can_be_left_out(session: Session) -> None:
    changed = session.changed({**PLAIN, "without_rules": ["neighbours"]})
    assert changed.predict("liesIn(n2, north)")[0].logit != session.predictor.predict("liesIn(n2, north)")[0].logit
    with pytest.raises(ConfigError, match="no rule 'neighbour'"):
        session.changed({**PLAIN, "without_rules": ["neighbour"]})


def test_no_file_of_the_server_is_read(session: Session, tmp_path: Path) -> None:
    table = tmp_path / "facts.tsv"
    table.write_text("n0\tnear\tn3\n")
    for field in ("with", "without"):
        with pytest.raises(DataError, match=rf"{field}\[1\] is no fact"):
            session.changed({**PLAIN, field: ["liesIn(n0, north)", str(table)]})


def test_errors_name_the_field(session: Session) -> None:
    with pytest.raises(DataError) as caught:
        session.changed({**PLAIN, "without": ["liesIn(n2, north)"]})
    assert str(caught.value.where) == 'without "liesIn(n2, north)"'
