"""Counted rules, and mixtures of them with a network."""

from collections import Counter
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from r2n import scoring
from r2n.data.herbrand import QueryPattern
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.errors import ConfigError
from r2n.grounding.counting import split_rules
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.graph_sources import Counted, GraphSource, GroundedOnDemand, Ungrounded
from r2n.network.mixture import NETWORK_ALONE, RULES_ALONE, WEIGHTINGS, Weighting, log_odds, log_sum
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from tests.examples import at_most

DECLARED = """
domain d = {a, b, c, f}
domain e = {k, l}
predicate p(d, d)
predicate t(d, e)
predicate u(e)
rule inverse: p(y, x) -> p(x, y)
rule transitive: p(x, z) & p(z, y) -> p(x, y)
rule along: p(x, y) & t(y, z) -> t(x, z)
rule some: t(x, y) -> u(y)
"""
IMPLICIT = "implicit both: [t(x, y), u(y)]\n"
EVERY_WEIGHTING = [*WEIGHTINGS, RULES_ALONE]


def made(theory: str = DECLARED, *, reciprocal: bool = False, share: float = 0.35) -> tuple[R2N, KnowledgeBase]:
    """A random network and what is known: all of t(a, ?) is."""
    known = KnowledgeBase.build(parse_theory(theory))
    dice, base = np.random.default_rng(5), known.base
    chosen = dice.random(base.size) < share
    chosen[base.offsets[1] : base.offsets[1] + 2] = True
    truth = dice.random(base.size) < 0.8
    truth[base.offsets[1] : base.offsets[1] + 2] = True
    known = replace(known, evidence=Evidence(np.flatnonzero(chosen), truth[chosen]))
    known = with_reciprocals(known) if reciprocal else known
    torch.manual_seed(1)
    model = R2N.build(known, dim=4, layers=1, rules="counted").eval()
    assert model.counted is not None
    with torch.no_grad():
        for parameter in model.counted.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model, known


def source_of(known: KnowledgeBase) -> GraphSource:
    layered, rules = split_rules(known)
    grounded = GroundedOnDemand.from_knowledge(layered, FullGrounder()) if layered.theory.rules else Ungrounded()
    return Counted(grounded, Store(known), rules)


def counted(known: KnowledgeBase) -> Counter[tuple[int, int]]:
    """(concluded atom, counted rule) -> ground rules with a known body, one by one."""
    store, rules = Store(known), split_rules(known)[1]
    parts = [KnownBodyGrounder().ground_rule(store, rule) for rule in rules]
    return Counter((int(a[part.rule.head_positions[0]]), j) for j, part in enumerate(parts) for a in part.atoms)


def plain_probabilities(
    model: R2N,
    known: KnowledgeBase,
    numbers: Counter[tuple[int, int]],
    at: tuple[QueryPattern, int],
    network: list[float],
    weighting: Weighting,
) -> list[float]:
    """The probability of each candidate of one row, by the formulas."""
    assert model.counted is not None
    (pattern, row), rules, value = at, range(len(model.counted.rules)), weighting.value
    true = set(known.evidence.atoms[known.evidence.truth].tolist())
    codes = [row + index * pattern.stride for index in range(pattern.candidates)]
    weights, powers = (w[:, pattern.position].tolist() for w in (model.counted.weights, model.counted.powers))
    bias = exp(model.counted.rest[pattern.predicate, pattern.position].item())
    sums = [sum(exp(weights[j]) * n ** powers[j] for j in rules if (n := numbers[code, j])) for code in codes]
    unknown = [i for i, code in enumerate(codes) if code not in true]
    total = bias + sum(sums[i] for i in unknown)

    def probabilities(logits: list[float]) -> list[float]:
        total = sum(exp(logits[i]) for i in (unknown or range(len(codes))))
        return [exp(logit) / total for logit in logits]

    often = [sum(pattern.located(np.array([c]))[1][0] == i for c in true if pattern.bounds[0] <= c < pattern.bounds[1])
             + scoring.FEWEST_OFTEN for i in range(len(codes))]  # fmt: skip
    share, by_network = weighting.popularity, probabilities(network)
    if share:
        by_network = [(1 - share) * s + share * n / sum(often) for s, n in zip(by_network, often, strict=True)]
        by_network = probabilities([log(s) for s in by_network])
    if weighting.kind == "rules":
        left = sum(n for n, weight in zip(often, sums, strict=True) if not weight)
        return [weight / total if weight else bias / total * n / left for n, weight in zip(often, sums, strict=True)]
    if weighting.kind == "sum":
        return probabilities([value * log(s) + log(1 + m / bias) for s, m in zip(by_network, sums, strict=True)])
    return [(1 - value) * s + value * m / total for s, m in zip(by_network, sums, strict=True)]


def all_rows(known: KnowledgeBase, predicate: int, position: int) -> tuple[QueryPattern, np.ndarray]:
    pattern = QueryPattern.from_base(known.base, predicate, position)
    return pattern, np.unique(pattern.located(np.arange(*pattern.bounds))[0])


PATTERNS = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]


@pytest.mark.parametrize("weighting", EVERY_WEIGHTING, ids=str)
def test_probabilities_are_those_of_the_formulas(weighting: Weighting) -> None:
    model, known = made()
    source, numbers = source_of(known), counted(known)
    plain = AtomLogits(R2N.build(known, dim=4, reasoner="none").eval(), Ungrounded(), known.evidence)
    plain.model.load_state_dict({k: v for k, v in model.state_dict().items() if k[:2] != "co" or "constants" in k})
    logits = AtomLogits(model, source, known.evidence, weighting=weighting)
    for predicate, position in PATTERNS:
        pattern, rows = all_rows(known, predicate, position)
        network = plain.rows(predicate, position, pattern.given(rows))
        found = logits.rows(predicate, position, pattern.given(rows))
        for row, scores, probabilities in zip(rows.tolist(), network.tolist(), found, strict=True):
            expected = plain_probabilities(model, known, numbers, (pattern, row), scores, weighting)
            np.testing.assert_allclose(np.exp(probabilities), expected, rtol=2e-4)


@pytest.mark.parametrize("theory", [DECLARED, DECLARED + IMPLICIT], ids=["no layers", "layers"])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("at_once", [10**6, 5])
def test_atoms_rows_and_positions_tell_the_same(
    theory: str, reciprocal: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logit of an atom is the mean over its positions of that of its probability, whatever else is asked."""
    monkeypatch.setattr(scoring, "CANDIDATES_BY_CODE", at_once)
    model, known = made(theory, reciprocal=reciprocal)
    logits = AtomLogits(model, source_of(known), known.evidence)
    expected: dict[int, list[float]] = {}
    for predicate, position in PATTERNS:
        pattern, rows = all_rows(known, predicate, position)
        probabilities = logits.rows(predicate, position, pattern.given(rows)).astype(np.float64)
        found = log_odds(probabilities.ravel()).reshape(probabilities.shape)
        codes = rows[:, None] + pattern.stride * np.arange(pattern.candidates)
        one_by_one = logits.at_position(position)(codes.ravel()).reshape(codes.shape)
        np.testing.assert_allclose(one_by_one, found, rtol=1e-4, atol=1e-5)
        for code, logit in zip(codes.ravel().tolist(), found.ravel().tolist(), strict=True):
            expected.setdefault(code, []).append(logit)
    shuffled = np.random.default_rng(0).permutation(np.array(sorted(expected)))
    means = [sum(expected[code]) / len(expected[code]) for code in shuffled.tolist()]
    np.testing.assert_allclose(logits(shuffled), means, rtol=1e-4, atol=1e-4)
    assert logits(np.zeros(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=str)
def test_an_atom_is_answered_by_the_totals_of_its_row_once_these_are_known(
    weighting: Weighting, reciprocal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FEW_ROWS", 0)
    model, known = made(reciprocal=reciprocal)
    logits = AtomLogits(model, source_of(known), known.evidence, weighting=weighting)
    codes = np.arange(known.base.offsets[2])
    first = logits(codes)
    asked: list[int] = []
    whole = AtomLogits.network_rows
    monkeypatch.setattr(AtomLogits, "network_rows", lambda *given: asked.append(len(given[3])) or whole(*given))
    again, some = logits(codes), logits(codes[::7])
    assert not asked, "no row is computed again"
    is_sure = first > 5  # the logit of a probability near 1 is rounded
    np.testing.assert_allclose(again[~is_sure], first[~is_sure], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(expit(again), expit(first), atol=1e-4)
    np.testing.assert_allclose(expit(some), expit(first[::7]), atol=1e-4)


def test_the_chosen_weighting_is_taken_and_another_where_it_is_named() -> None:
    model, known = made()
    assert model.combination is not None
    logits, (pattern, rows) = AtomLogits(model, source_of(known), known.evidence), all_rows(known, 0, 1)
    by_weighting = [logits.by(weighting).rows(0, 1, pattern.given(rows)) for weighting in WEIGHTINGS]
    assert len({part.tobytes() for part in by_weighting}) == len(WEIGHTINGS)
    for number, part in enumerate(by_weighting):
        model.combination.way.fill_(number)
        assert model.combination.chosen == WEIGHTINGS[number]
        assert np.array_equal(logits.rows(0, 1, pattern.given(rows)), part)
        first = logits.by(WEIGHTINGS[0]).again().rows(0, 1, pattern.given(rows))
        assert np.array_equal(first, by_weighting[0]), "it stays so"
    assert "combination.way" in model.state_dict()


def test_the_network_is_asked_once_for_all_weightings() -> None:
    model, known = made(DECLARED + IMPLICIT)
    passes: list[object] = []
    model.register_forward_pre_hook(lambda _, given: passes.append(given))
    logits = AtomLogits(model, source_of(known), known.evidence)
    _ = logits.full_pass
    for weighting in WEIGHTINGS:
        assert logits.by(weighting).full_pass is logits.full_pass
    assert len(passes) == 1


def test_a_source_without_counts_is_refused_by_a_network_that_counts() -> None:
    model, known = made()
    with pytest.raises(ConfigError, match="this network counts rules, and its graphs come from a source that does not"):
        AtomLogits(model, Ungrounded(), known.evidence)(np.array([0]))
    bare = R2N.build(known, dim=4, reasoner="none")
    assert AtomLogits(bare, source_of(known), known.evidence).mixture is None


def shaken_networks(scale: float) -> list[R2N]:
    models = []
    for seed in range(3):
        model = made()[0]
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * scale)
        models.append(model.eval())
    return models


@pytest.mark.parametrize("weighting", [None, Weighting("sum", 1.0), NETWORK_ALONE, RULES_ALONE], ids=str)
def test_an_ensemble_ranks_by_the_score_that_it_answers_by(weighting: Weighting | None) -> None:
    """A row is ranked by probabilities whose logits are the means, an atom answered by the mean over its positions."""
    known, models = made()[1], shaken_networks(1.0)
    logits = AtomLogits(models[0], source_of(known), known.evidence, weighting=weighting, others=tuple(models[1:]))
    every = np.arange(known.base.size)
    answered, predicates = np.zeros(len(every)), known.base.language.predicates
    for predicate, own in enumerate(predicates):
        for position in range(own.arity):
            pattern, rows = all_rows(known, predicate, position)
            codes = rows[:, None] + pattern.stride * np.arange(pattern.candidates)
            ranked = logits.rows(predicate, position, pattern.given(rows))
            asked = logits.at_position(position)(codes.ravel()).reshape(codes.shape)
            pairs = np.sign(ranked[:, :, None] - ranked[:, None]) * np.sign(asked[:, :, None] - asked[:, None])
            apart = np.abs(asked[:, :, None] - asked[:, None]) > 1e-6
            assert not (pairs[apart] < 1).any()
            answered[codes] += log_odds(ranked) / own.arity
    np.testing.assert_allclose(logits(every), answered, rtol=1e-6, atol=1e-6)


@at_most(50, because="a sum has few cases")
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 5), st.sampled_from([1.0, 60.0]))
def test_sums_of_exponentials_by_group(seed: int, size: int, count: int, scale: float) -> None:
    dice = np.random.default_rng(seed)
    values = torch.tensor(dice.normal(size=size) * scale, dtype=torch.float64, requires_grad=True)
    groups = torch.from_numpy(dice.integers(0, count, size))
    found = log_sum(values, groups, count)
    for group in range(count):
        own = [value for value, g in zip(values.tolist(), groups.tolist(), strict=True) if g == group]
        if own:
            assert found[group].item() == pytest.approx(log(sum(map(exp, own))))
        else:
            assert found[group].item() < -1e29
    if size:
        found[groups.unique()].sum().backward()
        assert values.grad is not None
        probabilities = torch.exp(values.detach() - found.detach()[groups])
        torch.testing.assert_close(values.grad, probabilities)


@pytest.mark.parametrize("position", [0, 1])
def test_a_rule_weighs_by_the_weight_and_the_power_of_the_position_that_is_asked(position: int) -> None:
    model, _ = made()
    assert model.counted is not None
    found = model.counted.log_weights(position, torch.tensor([1, 0]), torch.tensor([log(3.0), log(2.0)]))
    w, v = (parameter.tolist() for parameter in (model.counted.weights, model.counted.powers))
    assert found.tolist() == pytest.approx([w[j][position] + v[j][position] * log(n) for j, n in ((1, 3), (0, 2))])
