"""Messages: what, where, and what to do."""

from r2n.errors import DataError, Location, R2NError, counted, nearest


def test_a_full_message() -> None:
    where = Location("theory.r2n", 3, 6, "rule locatdIn(x, y)")
    error = DataError("unknown predicate", where=where, hint="did you mean 'locatedIn'?")
    assert str(error) == (
        "theory.r2n:3:6: unknown predicate\n  | rule locatdIn(x, y)\n  |      ^\n  did you mean 'locatedIn'?"
    )
    assert isinstance(error, R2NError)


def test_parts_that_are_not_known_are_left_out() -> None:
    assert str(R2NError("what")) == "what"
    assert str(R2NError("what", where=Location("file"))) == "file: what"
    assert str(R2NError("what", where=Location(None, 2, 5))) == "line 2, column 5: what"
    assert str(R2NError("what", where=Location())) == "what"


def test_long_lines_are_cut_around_the_caret() -> None:
    line = "a" * 500 + "X" + "b" * 500
    drawn = Location("f", 1, 501, line).drawn()
    assert len(drawn[0]) < 120
    assert drawn[0][drawn[1].index("^")] == "X"


def test_tabs_do_not_move_the_caret() -> None:
    drawn = Location("f", 1, 3, "\t\tX").drawn()
    assert drawn[0][drawn[1].index("^")] == "X"


def test_the_nearest_name() -> None:
    assert nearest("locatdIn", ["neighborOf", "locatedIn"]) == "did you mean 'locatedIn'?"
    assert nearest("zzz", ["neighborOf"]) == ""
    assert nearest("p0", ["p50", "p5"]) == "", "numbers tell things apart: another number is no misspelling"
    towns = [f"town {i}" for i in range(12)]
    assert nearest("town 12", towns) == ""
    assert nearest("twon 11", towns) == "did you mean 'town 11'?"
    assert nearest("countries-s33", ["countries-s1", "countries-s3"]) == "did you mean 'countries-s3'?"


def test_one_is_one() -> None:
    assert [counted(n, "ground rule") for n in (0, 1, 2048)] == [
        "0 ground rules",
        "1 ground rule",
        "2,048 ground rules",
    ]
    assert counted(2, "query", "queries") == "2 queries"
