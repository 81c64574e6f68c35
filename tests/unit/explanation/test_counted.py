"""Why an atom is answered as it is, where rules are counted: against facts that are really not there."""

from pathlib import Path

import pytest

from r2n.data.problem import Problem, load_problem
from r2n.explanation import counted
from tests.toy_problem import THEORY, write_toy_problem
from tests.unit.explanation.small_subject import predictor_of

COUNTED = ("model.rules=counted", "model.reasoner=none")


def test_counts_explain_an_answer(toy: Problem) -> None:
    predictor = predictor_of(toy, *COUNTED)
    found = predictor.explain("liesIn(n5, north)", top=1, against="liesIn(n5, south)")
    (logit,) = predictor.logits(predictor.problem.test.atoms[:1])
    assert len(found.layers) == 2
    assert found.fidelity is not None
    assert (found.fidelity.listed, found.fidelity.ground_rules) == (1, 2)
    (reason,) = found.reasons
    fewer = found.fidelity.without
    assert reason.effect == pytest.approx(found.belief.logit - fewer)
    assert found.contrast is not None
    assert found.contrast.reasons[0].rule == "neighbours"
    assert found.notes[0] == counted.ALIKE
    assert abs(logit) >= 0


def test_without_a_fact_is_counted_again(toy: Problem) -> None:
    predictor = predictor_of(toy, *COUNTED)
    found = predictor.explain("liesIn(n5, north)", top=None)
    facts = [other for other in found.counterfactuals if other.kind == "not known"]
    assert len(facts) == 4
    asked = predictor.problem.test.atoms
    names = predictor.base.names(asked)
    code = asked[[names.index("liesIn(n5, north)")]]
    for other in facts:
        again = predictor.without_facts(list(other.what)).logits(code)
        assert other.logit == pytest.approx(again[0], abs=1e-6)
    (rule,) = (other for other in found.counterfactuals if other.kind == "without rule")
    assert found.fidelity is not None
    assert rule.what == ("neighbours",)


def test_of_many_facts_nothing_is_counted_again(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MOST_FACTS", 1)
    found = predictor_of(toy, *COUNTED).explain("liesIn(n5, north)")
    assert counted.MANY_FACTS in found.notes
    assert not any(other.kind == "not known" for other in found.counterfactuals)


def test_what_speaks_for_an_answer_comes_first_at_any_probability(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path)
    further = "rule further: near(x, y) & near(y, w) & liesIn(x, z) -> liesIn(w, z)\n"
    (folder / "theory.r2n").write_text(THEORY + further)
    with (folder / "train.tsv").open("a") as table:
        table.write("s0\tnear\tn5\nn0\tnear\ts5\n")
    predictor = predictor_of(load_problem(folder), *COUNTED)
    below = 0
    for atom in ("liesIn(n5, north)", "liesIn(n5, south)", "liesIn(s5, north)", "liesIn(s5, south)"):
        every = predictor.explain(atom, top=None)
        effects = [reason.effect for reason in every.reasons]
        assert effects == sorted(effects, key=lambda effect: (effect <= 0, -abs(effect)))
        assert predictor.explain(atom, top=1).reasons[0].effect == effects[0] == max(effects) > min(effects)
        below += every.belief.probability < 0.5
    assert below
