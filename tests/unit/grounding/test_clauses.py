"""How many ground clauses decide an atom: as plain loops count them, never by the atom's own label."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import r2n
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem
from r2n.grounding.clauses import DecidedAtoms, chained, clauses_of, deciding_rules
from r2n.logic.formula import Not, Variable
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule
from r2n.model.rule_report import rule_report
from tests.kinds import KINDS
from tests.mln_problem import university

THEORY = """
domain thing
predicate likes(thing, thing)
predicate good(thing)
predicate near(thing, thing) closed
rule mirror: likes(x, y) -> likes(y, x)
rule chain [2.0]: likes(x, y) & near(y, z) -> likes(x, z), x != z
rule far [1.0]: near(x, y) | !likes(x, y)
rule either: good(x) | !likes(x, y) | !good(y)
"""
NAMES = [f"t{i}" for i in range(5)]


def problem(seed: int, rules: str = THEORY) -> Problem:
    dice = np.random.default_rng(seed)
    pairs = [(p, x, y) for p in ("likes", "near") for x in NAMES for y in NAMES if dice.random() < 0.5]
    facts = [(*pair, bool(dice.random() < 0.6)) for pair in pairs if pair[0] == "likes"]
    facts += [("good", x, bool(dice.random() < 0.5)) for x in NAMES[:3]]
    near = [(*pair, True) for pair in pairs if pair[0] == "near"]
    return Problem.from_facts([*facts, *near], rules, domains={"thing": NAMES})


def counted_by_loops(knowledge: KnowledgeBase, rule: Rule, code: int) -> int:
    """The substitutions that conclude an atom from others that are known."""
    base, evidence = knowledge.base, dict(zip(knowledge.evidence.atoms, knowledge.evidence.truth, strict=True))
    names, found = rule.variables, 0
    for values in product(NAMES, repeat=len(names)):
        of = dict(zip(names, values, strict=True))

        def ground(atom: r2n.logic.formula.Atom, of: dict[str, str] = of) -> tuple[int, bool]:
            predicate = base.language.predicate(atom.predicate)
            ids = [base.language.constant_id(of[t.name] if isinstance(t, Variable) else t.name) for t in atom.terms]
            return int(base.encode(predicate, np.array([ids]))[0]), predicate.closed

        (head,) = (ground(rule.atoms[i])[0] for i in rule.head_positions)
        differ = all(of[g.left.name] != of[g.right.name] for g in rule.guards)  # type: ignore[union-attr]
        body = [(*ground(rule.atoms[part.position]), part.positive) for part in rule.body]
        truths = [evidence.get(atom, False if closed else None) for atom, closed, _ in body]
        holds = all(t is not None and t == positive for t, (_, _, positive) in zip(truths, body, strict=True))
        found += head == code and differ and holds and all(atom != code for atom, _, _ in body)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_plain_loops(seed: int) -> None:
    knowledge = problem(seed, THEORY.replace("rule mirror: likes(x, y) -> likes(y, x)\n", "")).knowledge
    likes = knowledge.language.predicate("likes")
    decided, codes = DecidedAtoms(knowledge, likes), knowledge.base.encode(
        likes, np.array(list(product(range(len(NAMES)), repeat=2)))
    )  # fmt: skip
    expected = [[counted_by_loops(knowledge, rule, code) for rule in decided.rules] for code in codes.tolist()]
    assert len(decided.rules) > len(deciding_rules(knowledge.theory, "likes"))  # some are chained
    assert np.count_nonzero(expected) > 10
    np.testing.assert_allclose(decided.counts(codes), np.log1p(expected), rtol=1e-6)
    grounded = [[len(part) for part in decided.ground_clauses(code)] for code in codes.tolist()]
    assert grounded == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_own_label_and_that_of_the_mirrored_pair_decide_nothing_else(seed: int) -> None:
    knowledge = problem(seed).knowledge
    likes = knowledge.language.predicate("likes")
    before, mirror = DecidedAtoms(knowledge, likes), 1
    assert before.is_symmetric
    for code in knowledge.known_codes(likes, True).tolist():
        arguments = knowledge.base.decode(np.array([code]))[1][:, :2]
        both = np.append(knowledge.base.encode(likes, arguments[:, ::-1]), code)
        kept = ~np.isin(knowledge.evidence.atoms, both)
        evidence = Evidence(knowledge.evidence.atoms[kept], knowledge.evidence.truth[kept])
        after = DecidedAtoms(replace(knowledge, evidence=evidence), likes)
        counts = (before.counts(np.array([code]))[0], after.counts(np.array([code]))[0])
        others = [j for j, rule in enumerate(before.rules) if len(rule.body) > mirror or rule.name != "mirror"]
        np.testing.assert_array_equal(counts[0][others], counts[1][others])


def test_a_symmetric_predicate_is_read_in_both_directions() -> None:
    theory = """
        domain thing
        predicate same(thing, thing)
        rule mirror: same(x, y) -> same(y, x)
        rule chain: same(x, y) & same(y, z) -> same(x, z)
    """
    facts = [("same", "t1", "t0", True), ("same", "t2", "t1", True)]
    knowledge = Problem.from_facts(facts, theory, domains={"thing": NAMES}).knowledge
    same = knowledge.language.predicate("same")
    decided = DecidedAtoms(knowledge, same)
    counts = decided.counts(knowledge.base.encode(same, np.array([[0, 2], [2, 0], [0, 3]])))
    (chain,) = (
        j for j, rule in enumerate(decided.rules) if str(rule).startswith("rule chain: same(x, y) & same(y, z)")
    )
    np.testing.assert_allclose(counts[:, chain], np.log1p([1, 1, 0]), rtol=1e-6)


@pytest.mark.parametrize(
    "text", ["a(x) & !b(x) -> c(x)", "a(x) <-> b(x) | !c(x)", "a(x) xor (b(x) & c(x))", "!(a(x) -> b(x) & c(x))"]
)
def test_clauses_are_equivalent_to_their_formula(text: str) -> None:
    names = "abc"
    declared = "".join(f"predicate {name}(thing)\n" for name in names)
    (rule,) = parse_theory(f"domain thing\n{declared}rule r: {text}").rules
    assert rule.formula is not None
    atoms = rule.formula.atoms()
    for truths in product((False, True), repeat=len(atoms)):
        of = dict(zip(atoms, truths, strict=True))
        clauses = all(any(of[atom] == positive for atom, positive in clause) for clause in clauses_of(rule.formula))
        assert clauses == bool(rule.formula.evaluate(np.array(truths)))


def test_a_rule_decides_each_of_its_literals() -> None:
    theory = parse_theory(THEORY)
    found = [str(rule).partition(": ")[2] for rule in deciding_rules(theory, "good")]
    assert found == ["likes(x, y) & good(y) -> good(x)", "!good(x) & likes(x, y) -> !good(y)"]


def test_chained_rules_have_variables_of_their_own() -> None:
    (first, second) = (
        parse_theory(f"domain t\npredicate p(t, t)\npredicate q(t, t)\nrule r: {text}").rules[0]
        for text in ("q(x, y) & p(y, z) -> p(x, z)", "q(y, x) & p(x, z) -> p(y, z)")
    )
    (made,) = chained(first, [second])
    assert str(made.formula) == "q(x, y) & q(y, v0) & p(v0, z) -> p(x, z)"
    assert not isinstance(made.atoms[0], Not)


def quietly(some: Problem, **options: object) -> r2n.Model:
    return r2n.train(some, baseline=False, progress=lambda *_: None, notify=lambda *_: None, **options)  # type: ignore


def test_a_rule_set_of_markov_logic_is_read_by_counts_without_ground_rules() -> None:
    model = quietly(university())
    assert (model.options.model.input, model.options.model.reasoner) == ("regression", "none")
    assert model.options.training.epochs == 1
    assert model.source.full_graph is not None
    assert not len(model.source.full_graph)
    assert model.evaluate("test").metrics["ap"] > 0.35


def test_new_facts_change_the_counts_of_a_trained_model() -> None:
    model = quietly(university())
    atom = "advisedBy(s3, p4)"
    more = model.with_facts(["publication(t0, s3)", "publication(t0, p4)"])
    assert more.predict(atom)[0].logit > model.predict(atom)[0].logit + 0.1
    with_new = model.with_facts(["publication(t999, s3)", "publication(t999, p4)"])
    assert with_new.predict(atom)[0].logit > model.predict(atom)[0].logit + 0.1


def test_reasons_are_the_ground_clauses_with_their_effects() -> None:
    model = quietly(university())
    both = model.with_facts(["publication(t1, s3)", "publication(t1, p4)"])
    reasons = both.explain("advisedBy(s3, p4)", top=None).reasons
    (joint,) = (part for part in reasons if "publication(t1, s3)" in part.ground_rule and part.rule == "joint")
    without = both.without_facts(["publication(t1, s3)"]).predict("advisedBy(s3, p4)")[0].logit
    full = both.predict("advisedBy(s3, p4)")[0].logit
    others = sum(part.effect for part in reasons if "publication(t1, s3)" in part.ground_rule)
    assert joint.effect > 0
    assert full - without == pytest.approx(others, rel=0.5)


def test_a_report_of_the_rules_does_not_say_that_none_is_read() -> None:
    (note,) = rule_report(quietly(university())).notes
    assert "counts" in note
    assert "reads no rules" not in note


def test_a_pair_with_texts_is_explained_by_ground_clauses_and_words() -> None:
    kind = KINDS["pairs"](0)
    model = quietly(kind.problem)
    (best,) = kind.atoms[[np.argmax(model.columns(kind.atoms).logits)]]
    found = model.explain(model.base.names(np.array([best]))[0])
    assert {reason.rule for reason in found.reasons} >= {"transitivity"}
    assert all(reason.effect > 0 for reason in found.reasons[:1])
    assert found.input is not None
    assert any(effect.part.startswith("word ") for effect in found.input.features)
