"""Batches of queries: what each step asks and with which graph, what is left out, and that it goes on after a kill."""

from typing import Any

import pytest
import torch

from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.errors import ConfigError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import TRUE, UNKNOWN
from r2n.network.graph_sources import GroundedOnDemand
from r2n.options import TrainingOptions
from r2n.store.checkpoint import restore_trainer, trainer_state
from r2n.training.batches import FixedBatches, QueryBatches, Step
from r2n.training.fit import Trainer, batches_of
from tests.unit.grounding.small_knowledge import knowledge
from tests.unit.training.toy_training import THEORY, network, same, toy, weights

RULES = "rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)\nrule both: old(x) & old(y) -> near(x, y)\n"
TRUE_FACTS = (
    "liesIn(n0,north) liesIn(n1,north) liesIn(n2,north) liesIn(s0,south) old(n0) old(s0) near(n0,n1) near(n1,n2)"
)
FALSE_FACTS = "liesIn(s1,north) old(n2)"
MORE = knowledge(RULES, TRUE_FACTS, FALSE_FACTS, theory=THEORY)
SOURCES: dict[str, Grounder] = {
    "full": FullGrounder(),
    "known-body": KnownBodyGrounder(),
    "backward": BackwardGrounder(1, 2),
}


def batches(
    known: KnowledgeBase = MORE,
    grounder: str = "full",
    model: dict[str, Any] | None = None,
    *,
    asks_closed: bool = False,
    **options: Any,
) -> QueryBatches:
    source = GroundedOnDemand(Store(known, asks_closed=asks_closed), SOURCES[grounder])
    wanted = TrainingOptions(**{"batch_size": 3, "corrupted_positions": (-1,), **options})
    return QueryBatches(network(known=known, **(model or {})), source, known.evidence, wanted)


def steps_of(made: QueryBatches, seed: int = 0) -> list[Step]:
    return list(made.epoch(torch.Generator().manual_seed(seed)))


def asked_in(step: Step, label: int, known: KnowledgeBase = MORE) -> list[str]:
    rows = step.targets.asked[step.targets.labels[step.targets.asked] == label]
    return known.base.names(step.graph.atoms[rows].numpy())


# what is asked


@pytest.mark.parametrize("grounder", SOURCES)
def test_an_epoch_asks_each_known_atom_once_and_its_negatives_with_it(grounder: str) -> None:
    made = batches(grounder=grounder, leave_one_out=False)
    steps = steps_of(made)
    assert len(steps) == len(made) == 3
    true = sorted(name for step in steps for name in asked_in(step, 1))
    facts = MORE.base.names(MORE.evidence.atoms[MORE.evidence.truth])
    assert true == sorted(name for name in facts if not name.startswith("near"))
    for step in steps:
        false = set(asked_in(step, 0))
        for fact in asked_in(step, 1):
            if fact.startswith("liesIn"):
                turned = fact.replace("north", "x").replace("south", "north").replace("x", "south")
                assert turned in false
    denied = [name for step in steps for name in asked_in(step, 0) if name in ("old(n2)", "liesIn(s1, north)")]
    assert {"old(n2)", "liesIn(s1, north)"} <= set(denied)


def test_an_epoch_tells_beforehand_what_it_asks() -> None:
    made = batches()
    true, false = made.asked(torch.Generator().manual_seed(0))
    steps = steps_of(made)
    assert MORE.base.names(true) == sorted((n for s in steps for n in asked_in(s, 1)), key=MORE.base.names(true).index)
    assert set(MORE.base.names(false)) == {name for step in steps for name in asked_in(step, 0)}


def test_nothing_known_is_one_step_that_asks_nothing() -> None:
    known, _ = toy(facts="near(n0,n1)")
    made = batches(known)
    (step,) = steps_of(made)
    assert (len(step.targets.asked), step.weights[0], len(made.asked(torch.Generator())[0])) == (0, 1.0, 0)


# the graph


def test_a_step_sees_what_its_layers_feel_and_counts_the_ground_rules_of_what_it_asks() -> None:
    one, two = (batches(model={"layers": layers}, batch_size=1) for layers in (1, 2))
    for near, far in zip(steps_of(one), steps_of(two), strict=True):
        assert near.own is not None
        assert all(len(own) == len(rows) for own, rows in zip(near.own, near.graph.neighbours, strict=True))
        assert len(near.graph) <= len(far.graph)
    assert sum(len(step.graph) for step in steps_of(one)) < sum(len(step.graph) for step in steps_of(two))
    assert one.ground_rules > 0


def test_a_t_norm_reads_all_ground_rules_once_or_more_in_an_epoch() -> None:
    made = batches(model={"layers": 1}, regularisation="product", batch_size=2)
    full = made.source.full_graph
    assert full is not None
    counted: set[tuple[int, ...]] = set()
    for step in steps_of(made):
        assert step.own is not None
        for rows, own in zip(step.graph.neighbours, step.own, strict=True):
            counted |= {tuple(step.graph.atoms[row].tolist()) for row in rows[own]}
    assert counted == {tuple(full.atoms[row].tolist()) for rows in full.neighbours for row in rows}


def test_ground_rules_of_closed_atoms_alone_that_are_kept_count_in_the_semantic_loss() -> None:
    known = knowledge("rule back: near(x, y) -> near(y, x)\n", TRUE_FACTS, theory=THEORY)
    for weight, asks_closed, expected in ((0.1, True, 2), (0.0, True, 0), (0.1, False, 0)):
        steps = steps_of(batches(known, asks_closed=asks_closed, semantic_weight=weight, batch_size=4))
        assert sum(len(rows) for step in steps for rows, _ in step.targets.rules) == expected


# leave-one-out


@pytest.mark.parametrize("grounder", ["known-body", "backward"])
def test_what_is_asked_is_in_no_body_as_known_and_no_input_tells_it(grounder: str) -> None:
    made = batches(grounder=grounder, leave_one_out=True, model={"evidence_input": "add"})
    assert len(made) == 5, "at most a fifth of what is known is left out together"
    found: set[int] = set()
    for step, drawn in zip(steps_of(made), made.drawn(torch.Generator().manual_seed(0)), strict=True):
        hidden = set(made.left_out(drawn).tolist())
        assert set(drawn.asked.tolist()) & set(MORE.evidence.atoms.tolist()) <= hidden
        codes, known = step.graph.atoms.tolist(), step.known.tolist()
        assert all(state == UNKNOWN for code, state in zip(codes, known, strict=True) if code in hidden)
        found |= set(known)
        for rule, rows in zip(step.graph.rules, step.graph.neighbours, strict=True):
            body = [literal.position for literal in rule.body]
            assert grounder != "known-body" or not hidden & set(step.graph.atoms[rows[:, body]].flatten().tolist())
        assert step.leaves_out
    assert TRUE in found


def test_a_negative_that_is_denied_is_left_out_too_and_nothing_of_a_closed_world() -> None:
    made = batches(leave_one_out=True, batch_size=1, ask_closed=True, corrupted_positions=(0, -1))
    base = MORE.base
    for drawn in made.drawn(torch.Generator().manual_seed(0)):
        names, asked = set(base.names(made.left_out(drawn))), set(base.names(drawn.asked))
        known = set(base.names(MORE.evidence.atoms))
        assert names == {name for name in asked & known if not name.startswith("near")}
    several = [set(base.names(made.left_out(drawn))) for drawn in made.drawn(torch.Generator().manual_seed(0))]
    assert any("liesIn(s1, north)" in names and len(names) > 1 for names in several)


def test_reciprocals_are_left_out_with_what_is_asked() -> None:
    known = with_reciprocals(MORE)
    made = batches(known, grounder="known-body", batch_size=1, corrupted_positions=())
    for drawn in made.drawn(torch.Generator()):
        names = known.base.names(made.left_out(drawn))
        binary = [name for name in names if name.startswith(("liesIn", '"liesIn'))]
        assert len(binary) in (0, 2)
        assert len({tuple(sorted(name[name.index("(") :].strip("()").split(", "))) for name in binary}) <= 1


@pytest.mark.parametrize(
    ("grounder", "rules", "evidence_input", "expected"),
    [
        ("known-body", RULES, "off", True),
        ("backward", RULES, "off", True),
        ("full", RULES, "off", False),
        ("full", RULES, "add", True),
        ("known-body", "rule closed: near(x, y) & near(y, z) -> near(x, z)\n", "off", False),
    ],
)
def test_by_default_it_is_left_out_where_something_would_tell(
    grounder: str, rules: str, evidence_input: str, expected: bool
) -> None:
    known = knowledge(rules, TRUE_FACTS, theory=THEORY)
    model = {"evidence_input": evidence_input}
    assert batches(known, grounder, model).leaves_out == expected
    assert not batches(known, grounder, model, leave_one_out=False).leaves_out
    assert batches(known, grounder, model, leave_one_out=True).leaves_out


def test_where_evidence_is_an_input_all_that_is_left_out_is_asked() -> None:
    """Nothing has to be hidden beside it."""
    source = GroundedOnDemand.from_knowledge(MORE, FullGrounder())
    model = network(known=MORE, evidence_input="only")
    trainer = Trainer.from_source(model, source, MORE.evidence, batch_size=2, hiding=0.0, semantic_weight=0.0)
    losses = [trainer.step().supervised for _ in range(15)]
    assert losses[0] > 0.3
    assert losses[-1] < losses[0]
    with pytest.raises(ConfigError, match="learns to copy it"):
        Trainer.from_source(model, source, MORE.evidence, batch_size=2, hiding=0.0, leave_one_out=False)


# training


@pytest.mark.parametrize(("grounder", "loss"), [("full", "bce"), ("known-body", "softmax"), ("backward", "bce")])
def test_it_learns_and_goes_on_after_a_checkpoint(grounder: str, loss: str) -> None:
    options: dict[str, Any] = {"batch_size": 3, "negatives": 2, "loss": loss, "epochs": 6, "learning_rate": 0.05}
    source = GroundedOnDemand.from_knowledge(MORE, SOURCES[grounder])
    first = Trainer.from_source(network(known=MORE), source, MORE.evidence, **options)
    epochs = [first.step().loss for _ in range(3)]
    kept = trainer_state(first)
    rest = [first.step().loss for _ in range(3)]
    source = GroundedOnDemand.from_knowledge(MORE, SOURCES[grounder])
    second = Trainer.from_source(network(known=MORE), source, MORE.evidence, **options)
    restore_trainer(second, *kept)
    assert [second.step().loss for _ in range(3)] == rest
    assert same(weights(first.model), weights(second.model))
    assert rest[-1] < epochs[0]


def test_the_options_choose_the_steps() -> None:
    source = GroundedOnDemand.from_knowledge(MORE, FullGrounder())
    seen: list[int] = []
    model = network(known=MORE)
    for size in (None, 2):
        options = TrainingOptions(batch_size=size)
        made = batches_of(model, source, MORE.evidence, options, check=lambda graph: seen.append(len(graph.atoms)))
        assert isinstance(made, FixedBatches if size is None else QueryBatches)
    assert seen[1] < seen[0], "what would not fit is measured by a batch"
