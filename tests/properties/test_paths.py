"""Grounding and reasoning along paths equal plain loops over facts."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given

import r2n
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.explanation import rules
from r2n.explanation.rules import chain_weights
from r2n.grounding import paths as grounding
from r2n.grounding.paths import FactIndex, PathGrounder, PathQueries, first_atoms, next_step
from r2n.model.rule_report import path_rules
from r2n.network import paths as network
from r2n.network.graph_sources import Paths
from r2n.network.paths import UNREACHED
from r2n.network.r2n import R2N
from r2n.options import ModelOptions, TrainingOptions
from r2n.scoring import AtomLogits
from r2n.training.paths import PathBatches
from tests.oracles.path_layers import Fact, alone, left_out, row_logits, row_loss, steps_outwards
from tests.theory_strategies import dice

DEPTH, DIM = 2, 3


def world(dice: Random) -> KnowledgeBase:
    """Some facts of two or three predicates over two domains that share constants, with reciprocals."""
    text = """
        domain a, b
        domain u = a | b
        predicate p(u, u)
        predicate q(a, u)
        predicate closed(u, u) closed
        predicate one(u)
    """
    names = {"a": [f"a{i}" for i in range(dice.randint(1, 3))], "b": [f"b{i}" for i in range(dice.randint(1, 3))]}
    every = [*names["a"], *names["b"]]
    atoms = [(p, x, y) for p, x, y in product(("p", "q", "closed"), every, every) if p != "q" or x in names["a"]]
    facts = [f"{p}({x}, {y})" for p, x, y in atoms if dice.random() < 0.3] + [f"one({every[0]})"]
    facts += [f"p({every[0]}, {every[-1]})"]
    problem = r2n.Problem.from_facts(list(dict.fromkeys(facts)), theory=text, domains=names)
    return with_reciprocals(problem.knowledge)


def facts_of(knowledge: KnowledgeBase) -> set[Fact]:
    found = set()
    for i, predicate in enumerate(knowledge.language.predicates):
        if predicate.arity == 2:
            found |= {(i, int(x), int(y)) for x, y in knowledge.facts(predicate).tolist()}
    return found


def reciprocals_of(knowledge: KnowledgeBase) -> list[int]:
    return FactIndex.from_evidence(knowledge.base, knowledge.evidence).reciprocals.tolist()


def made(knowledge: KnowledgeBase, dice: Random, pairs: bool = False, width: int = 0) -> AtomLogits:
    torch.manual_seed(dice.randint(0, 10**6))
    model = R2N.build(knowledge, ModelOptions(reasoner="paths", layers=DEPTH, dim=DIM)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return AtomLogits(model, Paths(knowledge, PathGrounder(DEPTH, width), pairs), knowledge.evidence)


def weights_of(logits: AtomLogits) -> dict[str, torch.Tensor]:
    assert logits.model.paths is not None
    return logits.model.paths.state_dict()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks and batches even here."""
    monkeypatch.setattr(grounding, "GROUND_RULES_IN_A_BLOCK", 5)
    monkeypatch.setattr(network, "QUERIES_AT_ONCE", 3)
    monkeypatch.setattr(rules, "CHAINS_AT_ONCE", 2)


@given(dice())
def test_ground_rules_are_those_of_plain_loops(dice: Random) -> None:
    knowledge = world(dice)
    index, facts = FactIndex.from_evidence(knowledge.base, knowledge.evidence), facts_of(knowledge)
    asked = sorted(facts)[:: dice.randint(1, 3)]
    is_alone, pairs = [dice.random() < 0.5 for _ in asked], dice.random() < 0.5
    which = np.flatnonzero(is_alone)
    without = which, np.array([asked[i][2] for i in which], np.int64)
    predicates, heads, _ = np.array(asked).T
    queries = PathQueries(predicates, heads, without, pairs)
    reached, expected = first_atoms(index, queries), []
    for fact, is_left_out in zip(asked, is_alone, strict=True):
        out = left_out(fact, index.reciprocals.tolist(), facts, pairs) if is_left_out else set()
        expected.append(steps_outwards(facts - out, fact[1], DEPTH))
    for number in range(DEPTH):
        step = next_step(index, queries, reached, np.arange(len(reached)))
        assert step.atoms[step.before].tolist() == reached.tolist()
        owner = np.repeat(np.arange(len(step.source)), np.diff(step.starts))
        query, r = np.divmod(step.predicate[owner], len(index.reciprocals))
        z, y = reached[step.source[owner]] % index.constants, step.atoms[step.targets] % index.constants
        found = sorted(zip(query.tolist(), r.tolist(), z.tolist(), y.tolist(), strict=True))
        assert found == sorted((i, *rule) for i, steps in enumerate(expected) for rule in steps[number])
        assert (step.atoms[step.targets] // index.constants == query).all()
        by_atom = np.repeat(np.arange(len(step.atoms)), np.diff(step.ends))
        pairs_of = sorted(zip(step.arriving.tolist(), by_atom.tolist(), strict=True))
        assert pairs_of == sorted(zip(owner.tolist(), step.targets.tolist(), strict=True))
        reached = step.atoms


@given(dice())
def test_logits_are_those_of_plain_loops(dice: Random) -> None:
    knowledge, pairs = world(dice), dice.random() < 0.5
    logits, facts, base = made(knowledge, dice, pairs), facts_of(knowledge), knowledge.base
    weights, reciprocals = weights_of(logits), reciprocals_of(knowledge)
    codes = np.flatnonzero([len(base.shapes[i]) == 2 for i in base.decode(np.arange(base.size))[0]])
    graph = logits.source.around(codes)
    found = logits.model(logits.model.collate(graph)).atoms.detach()
    predicates, arguments = base.decode(codes)
    for code, q, (h, y), logit, reached in zip(
        codes, predicates, arguments.tolist(), found, graph.in_rules, strict=True
    ):
        asked = (int(q), h, y)
        out = left_out(asked, reciprocals, facts, pairs) if asked in facts else set()
        expected = row_logits(weights, facts - out, int(q), h, DEPTH)
        assert bool(reached) == (y in expected), base.names(np.array([code]))
        own = alone(weights, facts - out, int(q), y)
        torch.testing.assert_close(logit, expected.get(y, UNREACHED) + own, rtol=1e-5, atol=1e-5)
    one = logits.model(logits.model.collate(logits.source.around(codes[:1]))).atoms
    torch.testing.assert_close(one[0], found[0], rtol=1e-9, atol=1e-9)


@given(dice())
def test_rows_are_the_logits_on_all_facts(dice: Random) -> None:
    knowledge = world(dice)
    logits, facts, language = made(knowledge, dice), facts_of(knowledge), knowledge.language
    weights, reciprocals = weights_of(logits), reciprocals_of(knowledge)
    for i, predicate in enumerate(language.predicates):
        if predicate.arity != 2 or predicate.reciprocal_of is not None:
            continue
        for position, q in ((1, i), (0, reciprocals[i])):
            heads = language.members(predicate.domains[1 - position])
            given_ids = np.stack([heads, heads], axis=1)
            found = logits.rows(i, position, given_ids)
            for head, row in zip(heads.tolist(), found, strict=True):
                expected = row_logits(weights, facts, q, head, DEPTH)
                members = language.members(predicate.domains[position]).tolist()
                wanted = [float(expected.get(y, UNREACHED) + alone(weights, facts, q, y)) for y in members]
                np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-5)


def chain_facts(chain: list[int], reciprocals: list[int]) -> set[Fact]:
    """Those that lead from constant 0 over 1, 2, ... and back."""
    return {f for i, r in enumerate(chain) for f in ((r, i, i + 1), (reciprocals[r], i + 1, i))}


@given(dice())
def test_the_weight_of_a_chain_is_that_of_plain_loops_on_its_facts(dice: Random) -> None:
    knowledge = world(dice)
    logits, reciprocals, steps = made(knowledge, dice), reciprocals_of(knowledge), dice.randint(1, DEPTH)
    binary = [r for r, other in enumerate(reciprocals) if other >= 0]
    q, chains = dice.choice(binary), [dice.choices(binary, k=steps) for _ in range(dice.randint(1, 5))]
    assert logits.model.paths is not None
    found = chain_weights([logits.model.paths] * 2, np.array(reciprocals), q, np.array(chains))
    for chain, weight in zip(chains, found.tolist(), strict=True):
        expected = row_logits(weights_of(logits), chain_facts(chain, reciprocals), q, 0, DEPTH)[steps]
        assert weight == pytest.approx(float(expected), abs=1e-6)


@given(dice())
def test_path_rules_are_counted_as_by_plain_loops(dice: Random) -> None:
    knowledge = world(dice)
    logits, facts, language = made(knowledge, dice), facts_of(knowledge), knowledge.language
    indices = {predicate.name: i for i, predicate in enumerate(language.predicates)}
    reciprocals, asked = reciprocals_of(knowledge), [language.predicate(name) for name in "pq"]
    assert logits.model.paths is not None
    for rule in path_rules([logits.model.paths], knowledge, asked, None):
        q = indices[rule.head]
        steps = [(str(atom.terms[0]), indices[atom.predicate]) for atom in rule.rule.atoms[:-1]]
        chain = [r if first == start else reciprocals[r] for start, (first, r) in zip("xz", steps, strict=False)]
        expected = row_logits(weights_of(logits), chain_facts(chain, reciprocals), q, 0, DEPTH)[len(chain)]
        assert 0 < rule.weight == pytest.approx(float(expected), abs=1e-6)
        joined = []
        for x, y in product(*(language.members(domain).tolist() for domain in language.predicates[q].domains)):
            at, known = {x}, facts - left_out((q, x, y), reciprocals, facts, pairs=False)
            for r in chain:
                at = {end for each, start, end in known if each == r and start in at}
            joined += [(q, x, y) in facts] if y in at else []
        assert (rule.support, rule.pairs) == (sum(joined), len(joined))
        assert rule.support > 0


@given(dice())
def test_leaving_one_out_is_not_knowing_it(dice: Random) -> None:
    knowledge = world(dice)
    logits, base = made(knowledge, dice), knowledge.base
    evidence = knowledge.evidence
    codes = evidence.atoms[[len(base.shapes[i]) == 2 for i in base.decode(evidence.atoms)[0]]]
    code = np.array([dice.choice(codes.tolist())])
    paths = logits.source.paths
    assert paths is not None
    (q,), ((x, y),) = (part.tolist() for part in base.decode(code))
    reciprocal = base.encode(base.language.predicates[reciprocals_of(knowledge)[q]], np.array([[y, x]]))
    kept = ~np.isin(evidence.atoms, np.concatenate([code, reciprocal]))
    fewer = replace(knowledge, evidence=Evidence(evidence.atoms[kept], evidence.truth[kept]))
    without = replace(logits, source=replace(paths, knowledge=fewer), evidence=fewer.evidence)
    np.testing.assert_allclose(logits._looked_up(code), without._looked_up(code), rtol=1e-12)


@given(dice())
def test_the_loss_of_a_step_is_that_of_plain_loops_and_its_gradient_that_of_differences(dice: Random) -> None:
    knowledge = world(dice)
    logits, facts = made(knowledge, dice), facts_of(knowledge)
    model, source = logits.model, logits.source.paths
    assert source is not None
    pairs = dice.random() < 0.5
    options = TrainingOptions(
        loss="full-softmax", batch_size=4, asked_share=0.5, leave_out="pair" if pairs else "fact", ask_closed=True
    )
    batches = PathBatches(model, source, knowledge.evidence, options)
    (step, *_) = batches.epoch(torch.Generator().manual_seed(dice.randint(0, 1000)))
    index, constants, language = step.index, step.index.constants, knowledge.language
    rest = set[Fact]()
    for z in range(constants):
        for pair in range(index.pairs[z], index.pairs[z + 1]):
            ys = index.targets[index.starts[pair] : index.starts[pair + 1]]
            rest |= {(int(index.predicates[pair]), z, int(y)) for y in ys}
    assert rest < facts
    losses = []
    for i, (q, h) in enumerate(zip(step.queries.predicates.tolist(), step.queries.heads.tolist(), strict=True)):
        answers = [int(a) % constants for a in step.answers[step.row == i]]
        asked = {(q, h, y) for y in answers}
        assert asked <= facts - rest
        assert not any((index.reciprocals[q], y, h) in rest for y in answers)
        out = {fact for fact in rest if pairs and any({fact[1], fact[2]} == {h, y} for y in answers)}
        weights = weights_of(logits)
        found = row_logits(weights, rest - out, q, h, DEPTH)
        own = {y: {fact for fact in out if y in answers and {*fact[1:]} == {h, y}} for y in range(constants)}
        found = {y: found.get(y, 0.0) + alone(weights, rest - own[y], q, y) for y in range(constants)}
        known = {y for r, z, y in facts if (r, z) == (q, h)}
        members = language.members(language.predicates[q].domains[1]).tolist()
        losses += [row_loss(found, [y], known, members) for y in answers]
    torch.testing.assert_close(step.losses(model, options).total, torch.stack(losses).mean(), rtol=1e-6, atol=1e-6)
    loss = step.losses(model, options).total
    model.zero_grad()
    loss.backward()
    name, parameter = dice.choice([(n, p) for n, p in model.named_parameters() if p.numel()])
    at = dice.randrange(parameter.numel())
    with torch.no_grad():
        flat, ends = parameter.view(-1), list[float]()
        for change in (1e-6, -2e-6, 1e-6):
            flat[at] += change
            ends.append(float(step.losses(model, options).total))
    assert parameter.grad is not None
    expected = (ends[0] - ends[1]) / 2e-6
    assert float(parameter.grad.view(-1)[at]) == pytest.approx(expected, rel=1e-3, abs=1e-6), name


@given(dice())
def test_a_width_that_holds_all_atoms_changes_nothing_and_a_small_one_keeps_the_first_step(dice: Random) -> None:
    knowledge = world(dice)
    logits = made(knowledge, dice)
    paths, model = logits.source.paths, logits.model
    assert paths is not None
    assert model.paths is not None
    queries = PathQueries(np.zeros(3, np.int64), np.arange(3) % paths.index.constants)
    unlimited = model.paths(paths.index, queries)
    wide = model.paths(paths.index, queries, 100)
    assert (unlimited.reached == wide.reached).all()
    torch.testing.assert_close(unlimited.logits, wide.logits)
    narrow = model.paths(paths.index, queries, 1).reached
    assert np.isin(narrow, unlimited.reached).all()
    assert np.isin(first_atoms(paths.index, queries), narrow).all()
