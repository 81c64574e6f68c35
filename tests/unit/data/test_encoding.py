"""Facts as text -> language and codes."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import r2n
from r2n.data import knowledge_base
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import complete, encode_facts
from r2n.data.tables import Facts, Table, read_facts
from r2n.errors import DataError, TheoryError

THEORY = "domain city\ndomain land = {italy, france}\npredicate within(city, land)\npredicate big(city)\n"


def facts(*rows: tuple[str, ...], predicate: str = "within") -> list[Facts]:
    frame = pd.DataFrame([*rows], columns=[f"c{i}" for i in range(len(rows[0]))])
    return list(read_facts(Table(frame, predicate=predicate)).facts)


def test_open_domains_hold_what_stands_in_their_positions() -> None:
    given = [*facts(("rome", "italy"), ("nice", "france")), *facts(("pisa",), predicate="big")]
    _, language = complete(r2n.parse_theory(THEORY), given, {})
    city, land = language.domains
    assert [language.constants[i] for i in language.members(city)] == ["nice", "pisa", "rome"]
    assert [language.constants[i] for i in language.members(land)] == ["france", "italy"]


def test_constants_of_rules_are_in_their_domains() -> None:
    theory = r2n.parse_theory(THEORY + 'rule r: big("rome") -> within("rome", x)\n')
    _, language = complete(theory, [], {})
    assert "rome" in language.constants
    with pytest.raises(TheoryError, match=r"'rom' is outside domain 'city'\n.*\n.*\n  did you mean 'rome'"):
        complete(r2n.parse_theory(THEORY + 'rule r: big("rom") -> big("rome")\n'), [], {"city": ["rome"]})


def test_given_domains_are_closed_to_others() -> None:
    _, language = complete(r2n.parse_theory(THEORY), facts(("rome", "italy")), {"city": ["nice", "nice"]})
    base = HerbrandBase(language)
    with pytest.raises(DataError, match="constant 'rome' is outside domain 'city' \\(position 1 of within\\)"):
        encode_facts(base, facts(("rome", "italy")))
    encoded, rejected = encode_facts(base, facts(("rome", "italy"), ("nice", "italy")), skip=True)
    assert (len(encoded.codes), len(rejected)) == (1, 1)


def test_predicates_come_from_the_data_where_none_is_declared() -> None:
    given = [*facts(("a", "b")), *facts(("c",), predicate="big")]
    theory, language = complete(r2n.parse_theory("implicit all: *(x, y)\nrule r: other(x) -> big(x)\n"), given, {})
    assert [(p.name, p.arity) for p in language.predicates] == [("big", 1), ("other", 1), ("within", 2)]
    assert [str(atom) for atom in theory.rules[0].atoms] == ["within(x, y)"]
    assert len(language.members(language.domains[0])) == 3


def test_several_domains_without_predicates_are_refused() -> None:
    with pytest.raises(TheoryError, match="several domains but no predicate"):
        complete(r2n.parse_theory("domain a, b\n"), [], {})


def test_unknown_predicates_and_wrong_arities_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "facts.pl"
    path.write_text("within(rome, italy).\nbig(rome, italy).\nhuge(rome).\n")
    groups = list(read_facts(Table(path)).facts)
    theory, language = complete(r2n.parse_theory(THEORY), groups, {})
    del theory
    _, rejected = encode_facts(HerbrandBase(language), groups, skip=True)
    messages = sorted(str(error) for error in rejected)
    assert "facts.pl:2" in messages[0]
    assert "big takes 1 constants, but here it has 2" in messages[0]
    assert "facts.pl:3" in messages[1]
    assert "unknown predicate 'huge'" in messages[1]
    with pytest.raises(DataError):
        encode_facts(HerbrandBase(language), groups)


def test_a_constant_that_stands_only_in_a_union_has_to_be_listed_under_one_of_its_parts() -> None:
    theory = r2n.parse_theory("domain city, island\ndomain place = city | island\npredicate far(place)\n")
    given = facts(("malta",), predicate="far")
    _, language = complete(theory, given, {})
    with pytest.raises(DataError, match=r"list it under one of the parts of 'place' \('city', 'island'\)"):
        encode_facts(HerbrandBase(language), given)
    _, language = complete(theory, given, {"island": ["malta"]})
    assert len(encode_facts(HerbrandBase(language), given)[0].codes) == 1


def test_only_the_first_wrong_constants_are_compared_with_all_right_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look for a near name takes as long as there are constants."""
    compared: list[str] = []
    monkeypatch.setattr(knowledge_base, "nearest", lambda name, _: compared.append(name) or "")
    theory = r2n.parse_theory("domain d = {a, b}\npredicate p(d)\nrule r: p(x)\n")
    rows = [f"wrong {i}" for i in range(200)]
    problem = r2n.Problem.build("p", theory, [r2n.Table(pa.table({"x": rows}), "p")], on_error="skip")
    assert len(problem.report.rejected) == 200
    assert compared == rows[: knowledge_base.MOST_COMPARED]
    assert "'wrong 199' is outside domain 'd'" in str(problem.report.rejected[-1])
