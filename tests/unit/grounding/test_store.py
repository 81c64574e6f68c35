"""The store: tables that are made once, answers in memory or by an engine, and memory limits."""

from collections.abc import Mapping

import numpy as np
import pytest

from r2n.errors import GroundingError, MemoryLimitError
from r2n.grounding import store as stores
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.joins import Kind, RuleQuery
from r2n.grounding.store import UNLIMITED, DuckDBEngine, Engine, MemoryBudget, Store, shown_size
from tests.unit.grounding.small_knowledge import codes, knowledge

KB = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy)")


class Watched:
    """An engine that remembers what it is told."""

    takes_all = False

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.asked: list[str] = []
        self.engine = DuckDBEngine()

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        self.loaded.append(name)
        self.engine.load(name, columns)

    def run(self, query: str) -> dict[str, np.ndarray]:
        self.asked.append(query)
        return self.engine.run(query)


def answer(store: Store, limit: int = 100) -> list[tuple[str, ...]]:
    query = KnownBodyGrounder().query(store, store.knowledge.theory.rules[0])
    found = store.substitutions(query, limit)
    return sorted(tuple(store.language.constants[constant] for constant in row) for row in found.tolist())


@pytest.fixture(params=[False, True], ids=["in memory", "by an engine"])
def by_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(stores, "MOST_ROWS", -1)
    return request.param


def test_the_store_decides_who_answers(by_engine: bool) -> None:
    engine = Watched()
    store = Store(KB, engine)
    assert answer(store) == answer(store) == [("ann", "bob"), ("ann", "cy")]
    assert sorted(engine.loaded) == (["fact_0", "fact_1"] if by_engine else []), "each table once"
    assert len(engine.asked) == (2 if by_engine else 0)


def test_what_does_not_fit_in_memory_is_left_to_the_engine() -> None:
    """Three pairs are looked at, of which none is an answer."""
    facts = "knows(ann,bob) knows(ann,cy) knows(bob,cy)"
    known, engine = knowledge("rule r: knows(x, y) & knows(y, x) -> smokes(x)\n", facts), Watched()
    assert answer(Store(known, engine, MemoryBudget(1000))) == []
    assert not engine.asked
    assert answer(Store(known, engine, MemoryBudget(100))) == []
    assert engine.asked


@pytest.mark.usefixtures("by_engine")
def test_an_answer_that_would_not_fit_is_refused() -> None:
    message = r"rule 'r' with 2 ground rules needs about .* than the .* that it may take\n  ground less"
    with pytest.raises(MemoryLimitError, match=message):
        answer(Store(KB, ceiling=MemoryBudget(100)))
    with pytest.raises(GroundingError, match="more than max_groundings = 1"):
        answer(Store(KB, ceiling=MemoryBudget(100)), limit=1)


@pytest.mark.usefixtures("by_engine")
@pytest.mark.parametrize("constant", ["ann", "cy"])
def test_constants_are_compared(constant: str) -> None:
    kb = knowledge(f'rule r: smokes("{constant}") & smokes(x) -> smokes(y)\n', "smokes(ann)")
    assert len(answer(Store(kb))) == (3 if constant == "ann" else 0)


@pytest.mark.usefixtures("by_engine")
def test_variables_that_are_not_sought_count_for_the_budget() -> None:
    store, (rule,) = Store(KB), KB.theory.rules
    query = RuleQuery(
        rule,
        ("x",),
        store.domains(rule)[:1],
        joined=((store.relation(Kind.FACT, rule.atoms[0].predicate), rule.atoms[0]),),
    )
    assert len(store.substitutions(query, 6)) == 2
    with pytest.raises(GroundingError, match="has 6 groundings, more than max_groundings = 5"):
        store.substitutions(query, 5)


def test_relations_are_decoded_once() -> None:
    store = Store(KB)
    assert store.relation(Kind.FACT, "knows") is store.relation(Kind.FACT, "knows")
    assert store.relation(Kind.FACT, "knows").rows.tolist() == KB.facts(KB.language.predicate("knows")).tolist()
    assert len(store.relation(Kind.DENIED, "knows")) == 0
    assert store.domain(KB.language.domains[0]) is store.domain(KB.language.domains[0])
    without = store.with_rules(())
    assert (without.theory.rules, store.theory.rules) == ((), KB.theory.rules)
    assert without.relation(Kind.FACT, "knows") is store.relation(Kind.FACT, "knows")


def test_what_is_asked_takes_the_place_of_what_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_ROWS", -1)
    store, (rule,) = Store(KB), KB.theory.rules
    for name in ("smokes(ann)", "smokes(cy)"):
        asked = store.asked(codes(KB, name, "knows(bob, bob)"))
        assert sorted(asked) == ["knows", "smokes"]
        query = RuleQuery(rule, ("y",), store.domains(rule)[1:], joined=((asked["smokes"], rule.atoms[2]),))
        (found,) = store.substitutions(query, 100).tolist()
        assert f"smokes({KB.language.constants[found[0]]})" == name


@pytest.mark.usefixtures("by_engine")
def test_a_store_without_some_facts_answers_beside_the_one_with_them() -> None:
    store = Store(KB)
    less = store.without(codes(KB, "knows(ann, bob)"))
    for _ in range(2):
        assert answer(less) == [("ann", "cy")]
        assert answer(store) == [("ann", "bob"), ("ann", "cy")]
    assert answer(less.without(codes(KB, "smokes(ann)"))) == []
    assert less.relation(Kind.FACT, "smokes") is store.relation(Kind.FACT, "smokes"), "nothing of it is left out"
    assert len(less.knowledge.evidence) == len(KB.evidence) - 1


def test_as_many_pieces_as_fit_one_at_least() -> None:
    assert MemoryBudget(1000).fitting(10, at_most=500) == 100
    assert MemoryBudget(1000).fitting(10, at_most=50) == 50
    assert MemoryBudget(1000).fitting(5000, at_most=50) == 1
    assert UNLIMITED.fitting(5000, at_most=50) == 50


def test_what_is_over_the_limit_is_refused_with_the_ways_out() -> None:
    MemoryBudget(1000).check(1000, what="a thing", hints=["take less"])
    UNLIMITED.check(10**18, what="a thing", hints=["take less"])
    message = (
        "a thing needs about 2 GB, more than the 1 GB that it may take\n  take less; or allow more with --memory SIZE"
    )
    with pytest.raises(MemoryLimitError, match=message):
        MemoryBudget(10**9).check(2 * 10**9, what="a thing", hints=["take less"])
    assert [shown_size(n) for n in (512_000_000, 18_449_000_000, 95 * 10**9)] == ["512 MB", "18.4 GB", "95 GB"]


def test_what_does_not_fit_in_a_database_is_spilled_or_else_refused() -> None:
    """A join of a billion rows to be sorted, under the least memory; a sum of them needs none."""
    engine = DuckDBEngine(memory=1)
    engine.load("t", {"a": np.arange(3000)})
    assert engine.run("SELECT current_setting('memory_limit') AS m")["m"].tolist() == ["61.0 MiB"]
    count = "SELECT count(*) AS n FROM t AS x, t AS y"
    assert engine.run(count)["n"].tolist() == [9_000_000]
    kept = "SELECT list(x.a + y.a) AS n FROM t AS x, t AS y, t AS z"
    with pytest.raises(MemoryLimitError, match=r"more memory than the database may take.*\n  ground less"):
        engine.run(kept)


def test_tables_are_held_replaced_and_asked() -> None:
    engine = DuckDBEngine()
    assert isinstance(engine, Engine)
    query = "SELECT a FROM t ORDER BY a"
    engine.load("t", {"a": np.array([2, 1])})
    assert engine.run(query)["a"].tolist() == [1, 2]
    engine.load("t", {"a": np.zeros(0, np.int64)})
    assert engine.run(query)["a"].tolist() == []
