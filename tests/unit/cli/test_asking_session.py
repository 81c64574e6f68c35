"""One loaded network, and many lines."""

import json
from typing import Any

import pytest

from r2n.cli.asking_session import Known, Session, as_written
from r2n.errors import ConfigError, DataError
from r2n.model.predictor import Predictor
from r2n.model.run import Run


@pytest.fixture(scope="module")
def predictor(toy_run: Run) -> Predictor:
    return Predictor.of(toy_run)


@pytest.fixture
def session(predictor: Predictor) -> Session:
    return Session(Known(predictor), {"everything": False, "top": 10, "unknown": False})


def said(session: Session, line: str) -> dict[str, Any]:
    told = session.tell(line)
    assert told is not None
    return json.loads(json.dumps(told.document))


def atoms(document: dict[str, Any]) -> list[str]:
    return [item["atom"] for item in document["answers"]]


def test_questions_are_answered_as_everywhere(session: Session, predictor: Predictor) -> None:
    document = said(session, "liesIn(n5, ?)")
    assert document["question"] == "liesIn(n5, ?)"
    assert atoms(document) == [item.atom for item in predictor.predict("liesIn(n5, ?)")]
    assert document["answers"][0]["constants"] == ["n5", "north"]


def test_why_of_an_atom_and_of_the_last_answers(session: Session) -> None:
    assert said(session, ":why liesIn(n5, south)")["atom"] == "liesIn(n5, south)"
    with pytest.raises(ConfigError, match="nothing was answered yet"):
        session.tell(":why")
    found = atoms(said(session, "liesIn(n5, ?)"))
    assert said(session, ":why")["atom"] == found[0]
    assert said(session, ":why 2")["atom"] == found[1]
    for number in ("0", "3"):
        with pytest.raises(ConfigError, match=f"there is no answer {number}: the last question has 2 answers"):
            session.tell(f":why {number}")


def test_facts_come_and_go(session: Session, predictor: Predictor) -> None:
    before = said(session, "liesIn(n5, ?)")
    document = said(session, ":with near( n5,  s5 )")
    assert document["with"] == ["near(n5, s5)"]
    assert "does not read facts" in document["notes"][0]
    assert said(session, ":with near(s5, n5)") == {"with": ["near(n5, s5)", "near(s5, n5)"], "without": [], "notes": []}
    assert said(session, ":without near(n5, n4)")["without"] == ["near(n5, n4)"]
    assert session.title == "towns +2 -1"
    changed = predictor.without_facts(["near(n5, n4)"]).with_facts(["near(n5, s5)", "near(s5, n5)"])
    answers = said(session, "liesIn(n5, ?)")["answers"]
    assert [item["logit"] for item in answers] == [item.logit for item in changed.predict("liesIn(n5, ?)")]
    assert [item["logit"] for item in answers] != [item["logit"] for item in before["answers"]]
    for line in (":without near(n5, s5)", ":with near(n5, n4)", ":without near('s5', n5)"):
        said(session, line)
    assert said(session, ":facts") == {"with": [], "without": []}
    assert session.title == "towns"
    assert said(session, "liesIn(n5, ?)") == before


def test_what_was_told_twice_is_taken_back_twice(session: Session) -> None:
    for _ in range(2):
        said(session, ":with near(n5, s5)")
    assert said(session, ":without near(n5, s5)")["with"] == ["near(n5, s5)"]
    assert said(session, ":without near(n5, s5)")["with"] == []
    with pytest.raises(DataError, match="not among the facts"):
        session.tell(":without near(n5, s5)")
    assert said(session, ":facts") == {"with": [], "without": []}


def test_a_refused_fact_changes_nothing(session: Session) -> None:
    known = session.known
    with pytest.raises(DataError, match="a constant or \\? was expected"):
        session.tell(":with near(n5, )")
    with pytest.raises(DataError, match="neither a fact nor a file"):
        session.tell(":with near")
    assert session.known is known


def test_new_constants_are_told_once(session: Session) -> None:
    assert "new constant: atlantis" in said(session, ":with near(n5, atlantis)")["notes"]
    assert said(session, ":with near(atlantis, n5)")["notes"] == []


def test_reset_leads_to_the_start(predictor: Predictor) -> None:
    start = Known(predictor.with_facts(["near(n5, s5)"]), ("near(n5, s5)",))
    session = Session(start, {"everything": False, "top": 10, "unknown": False})
    said(session, ":with near(s5, n5)")
    assert said(session, ":reset") == {"with": ["near(n5, s5)"], "without": [], "notes": []}
    assert session.known is start


def test_so_many_answers(session: Session) -> None:
    assert said(session, ":top 1") == {"top": 1}
    assert len(atoms(said(session, "liesIn(n5, ?)"))) == 1
    assert said(session, ":top") == {"top": 1}
    for words in ("0", "-1", "many"):
        with pytest.raises(ConfigError, match=":top takes a number from 1 to 1,000,000,000, not"):
            session.tell(f":top {words}")


def test_the_end(session: Session) -> None:
    assert session.tell(":quit") is None


def test_what_is_shown(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(line: str) -> tuple[str, str]:
        told = session.tell(line)
        assert told is not None
        told.show()
        captured = capsys.readouterr()
        return captured.out, captured.err

    assert "│ 1 │ liesIn(n5, north) │" in shown("liesIn(n5, ?)")[0]
    assert shown(":why 1")[0].startswith("liesIn(n5, north)  ")
    assert shown(":facts") == ("", "nothing was changed\n")
    assert shown(":with near(n5, [red])")[1].splitlines()[0].startswith("new constant: [red]")
    assert shown(":without near(n5, n4)") == ("", "44 known atoms\n")
    assert shown(":facts") == (':without near(n5, n4)\n:with near(n5, "[red]")\n', "")
    assert shown(":top 3") == ("", "at most 3 answers\n")
    assert ":why ATOM" in shown(":help")[0]


def test_a_fact_is_written_in_one_way() -> None:
    assert as_written(""" ! 'near' ( "n 1" , n2 ) . """) == '!near("n 1", n2)'
    assert as_written("facts.tsv") == "facts.tsv"


def test_numbers_of_thousands_of_digits_are_refused(session: Session) -> None:
    said(session, "liesIn(n5, ?)")
    digits = "9" * 5_000
    with pytest.raises(ConfigError, match=r"there is no answer 9+ \.\.\.: the last question has 2 answers"):
        session.tell(f":why {digits}")
    with pytest.raises(ConfigError, match=r":top takes a number from 1 to 1,000,000,000, not '9+ \.\.\.'"):
        session.tell(f":top {digits}")


def test_a_fact_that_is_too_long_for_the_name_of_a_file(session: Session) -> None:
    with pytest.raises(DataError, match="is neither a fact nor a file"):
        session.tell(":with " + "near(n1, " * 1_000)
