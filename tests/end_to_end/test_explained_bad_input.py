"""What cannot be explained, or hardly: a clear answer each, through `Model.explain`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import r2n
from r2n.model.run import prepare_run
from r2n.options import Options
from tests.toy_problem import write_toy_problem

SMALL = ("model.dim=4", "model.layers=1", "training.epochs=2", "training.corrupted_positions=[-1]")


def trained(problem: r2n.Problem, *changes: str) -> r2n.Model:
    run = prepare_run(problem, problem.options.changed(changes), seed=0)
    for _ in run.trainer:
        pass
    return r2n.Model.from_run(run)


def problem_of(theory: str, facts: Sequence[tuple[str, str, str]], **domains: Sequence[str]) -> r2n.Problem:
    """Facts (predicate, first, second) with a theory."""
    names = ("relation", "head", "tail")
    table = r2n.Table(pa.table({name: [fact[i] for fact in facts] for i, name in enumerate(names)}))
    return r2n.Problem.build(
        "odd", r2n.parse_theory(theory), [table], domains=domains, options=Options().changed(SMALL)
    )


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> r2n.Model:
    """Towns in valleys; the network reads evidence, so that new towns can be asked about."""
    folder = write_toy_problem(tmp_path_factory.mktemp("towns"), epochs=20)
    return trained(r2n.load(folder), "model.evidence_input=only")


# what is refused


# what is explained all the same


def test_depth_0_tells_the_answer_alone(towns: r2n.Model) -> None:
    found = towns.explain("liesIn(n5, north)", depth=0)
    assert found.reasons == ()
    assert len(found.layers) == 2
    assert found.belief.logit == pytest.approx(towns.explain("liesIn(n5, north)").belief.logit)


def test_an_atom_that_is_evidence_says_so(towns: r2n.Model) -> None:
    found = towns.explain("liesIn(n0, north)")
    assert found.belief.known is True
    assert found.belief.probability == 1.0
    assert any("known" in note for note in found.notes)
    assert found.reasons


def test_closed_atoms_say_so(towns: r2n.Model) -> None:
    found = towns.explain("near(n0, s0)")
    assert (found.belief.closed, found.belief.probability) == (True, 0.0)
    assert any("closed" in note for note in found.notes)
    fact = towns.explain("near(n0, n1)")
    assert (fact.belief.closed, fact.belief.known) == (False, True)


def test_a_run_without_rules_explains_its_input_layer() -> None:
    theory = "domain town, valley\npredicate liesIn(town, valley)\n"
    facts = [("liesIn", f"t{i}", f"v{i % 2}") for i in range(6)]
    found = trained(problem_of(theory, facts)).explain("liesIn(t0, v1)")
    assert found.reasons == found.counterfactuals == ()
    assert found.fidelity is None
    assert any("rule" in note for note in found.notes)
    assert found.input is not None
    assert found.input.similar


def test_an_atom_that_no_ground_rule_reaches_explains_its_input_layer() -> None:
    theory = """
        domain town, valley
        predicate liesIn(town, valley)
        predicate near(town, town) closed
        rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)
    """
    facts = [("liesIn", f"t{i}", f"v{i % 2}") for i in range(6)] + [("near", "t0", "t1")]
    found = trained(problem_of(theory, facts, town=[f"t{i}" for i in range(8)])).explain("liesIn(t7, v1)")
    assert found.reasons == ()
    assert any("no ground rule" in note for note in found.notes)
    assert found.input is not None
    assert found.input.similar


def test_a_new_constant_is_explained_by_what_is_told_of_it(towns: r2n.Model) -> None:
    told = towns.with_facts(["near(n0, n9)", "near(n1, n9)"])
    found = told.explain("liesIn(n9, north)")
    assert found.reasons[0].rule == "neighbours"
    facts = {what for c in found.counterfactuals if c.kind == "not known" for what in c.what}
    assert "near(n0, n9)" in facts
    without = next(c for c in found.counterfactuals if c.kind == "not known" and c.what == ("near(n0, n9)",))
    left = told.without_facts("near(n0, n9)").explain("liesIn(n9, north)", depth=0)
    assert without.logit == pytest.approx(left.belief.logit, abs=1e-5)


def test_two_hundred_rules() -> None:
    predicates = "".join(f"predicate q{i}(a, a)\n" for i in range(20))
    rules = "".join(
        f"rule r{i}: q{i % 20}(x, y) & q{(i * 7) % 20}(y, z) -> q{(i * 3) % 20}(x, z)\n" for i in range(200)
    )
    facts = [(f"q{i}", f"c{j}", f"c{(i + j) % 4}") for i in range(20) for j in range(4)]
    predictor = trained(problem_of(f"domain a\n{predicates}{rules}", facts), "training.epochs=1")
    found = predictor.explain("q3(c0, c1)")
    assert len(found.reasons) == 5
    assert found.fidelity is not None
    assert found.fidelity.ground_rules > 50
    without = [c for c in found.counterfactuals if c.kind == "without rule"]
    assert 0 < len(without) <= 200


def test_names_from_data_are_told_as_they_are(tmp_path: Path) -> None:
    """Commas, quotes, brackets and markup in names."""
    names = ["a, b", "[red]x[/red]", "<b>", 'say "x"', "ok"]
    theory = "domain town\npredicate p(town, town)\npredicate near(town, town) closed\n"
    theory += "rule r: near(x, y) & p(x, z) -> p(y, z)\n"
    facts = [("near", name, "ok") for name in names[:4]] + [("p", name, "ok") for name in names[:4]]
    found = trained(problem_of(theory, facts)).explain("p(ok, ok)", top=None)
    told = " ".join(reason.ground_rule for reason in found.reasons)
    for name in names:
        assert name in told
