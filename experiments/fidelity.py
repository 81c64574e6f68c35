"""How much of an answer do the ground rules carry that an explanation lists first? Against others' rankings of them.

    python experiments/fidelity.py runs/countries-s2 runs/countries-s3 runs/cora-s1 runs/kinship

For test queries that are true and answered so, the ground rules that the atom stands in are ranked by
- r2n: what `Model.explain` says, leaving them out one by one;
- gradient times input: d logit / d mask, with a mask of one on all messages of a ground rule, the greatest first;
- random.
The first k of a ranking alone (sufficiency), and all but these (necessity), are run again: 1 means that they carry all
that ground rules do to the logit. Printed are means over queries where ground rules change the logit by 0.1 or more;
above 1 the first ground rules alone say more than all together, as under `mean`, where others dilute them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor

import r2n
from r2n.data.knowledge_base import counterparts, reciprocal_codes
from r2n.explanation.records import Fidelity
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.reasoning import ReasoningLayer

TOPS, LEAST = (1, 3, 5), 0.1
ATOM = re.compile(r"[^][\s(!&|,]+\([^()]*\)")
GroundRule = tuple[int, tuple[int, ...]]
"""The number of its rule, and the codes of its atoms."""


@dataclass(frozen=True, eq=False)
class Asked:
    """An atom, or its reciprocal, in the graph that its logit depends on."""

    predictor: r2n.Model
    code: int
    graph: FactorGraph

    @classmethod
    def directions(cls, predictor: r2n.Model, code: int) -> list["Asked"]:
        """The atom, and its reciprocal where there is one."""
        mirrored = int(reciprocal_codes(predictor.network.base, np.array([code]))[0])
        steps = len(predictor.network.layers)
        both = [code] if mirrored < 0 else [code, mirrored]
        return [cls(predictor, each, predictor.source.around(np.array([each]), steps=steps)) for each in both]

    @property
    def row(self) -> int:
        """Where the atom stands in its graph."""
        return int(self.graph.rows(torch.tensor([self.code])))

    def ground_rules(self) -> list[GroundRule]:
        """Those that the atom stands in."""
        found = []
        for j, rows in enumerate(self.graph.neighbours):
            own = rows[(rows == self.row).any(dim=1)]
            found += [(j, tuple(codes)) for codes in self.graph.atoms[own].tolist()]
        return found

    def logit(self, without: Sequence[GroundRule] = ()) -> float:
        """The logit in the graph without some ground rules."""
        model, neighbours = self.predictor.network.eval(), []
        for j, rows in enumerate(self.graph.neighbours):
            gone = {codes for rule, codes in without if rule == j}
            kept = [tuple(codes) not in gone for codes in self.graph.atoms[rows].tolist()]
            neighbours.append(rows[torch.tensor(kept, dtype=torch.bool)])
        none = (None,) * len(neighbours)
        graph = FactorGraph(self.graph.atoms, tuple(neighbours), self.graph.rules, none, self.graph.answered)
        with torch.no_grad():
            return float(model(model.lay_out(graph, "indexed"), known=self._known).atoms[self.row])

    def gradients(self) -> dict[GroundRule, float]:
        """The derivative of the logit by a mask on all messages of a ground rule, for those the atom stands in."""
        model = self.predictor.network.eval()
        masks = [torch.ones(len(rows), requires_grad=True) for rows in self.graph.neighbours]
        atoms = model.input_layer(model.lay_out(self.graph, "indexed"), known=self._known)
        for layer in model.layers:
            atoms = masked(layer, atoms, self.graph, masks)
        assert model.atom_output is not None
        logit = model.atom_output(atoms)[self.row]
        found = torch.autograd.grad(logit, masks, allow_unused=True)
        effects = {}
        for j, (rows, effect) in enumerate(zip(self.graph.neighbours, found, strict=True)):
            for codes, each in zip(self.graph.atoms[rows].tolist(), [] if effect is None else effect, strict=False):
                effects[j, tuple(codes)] = float(each)
        return {ground_rule: effects[ground_rule] for ground_rule in self.ground_rules()}

    @property
    def _known(self) -> Tensor:
        return known_states(self.predictor.network.base, self.graph.atoms, self.predictor.members[0].evidence)


def masked(layer: ReasoningLayer, atoms: Tensor, graph: FactorGraph, masks: Sequence[Tensor]) -> Tensor:
    """Eqs. 2-5 to the letter, each ground rule's messages times its mask; for layers as these runs have."""
    assert layer.aggregation in ("mean", "sum", "mean-then-sum")
    assert layer.rule_embedding is None
    total, received = torch.zeros_like(atoms), torch.zeros(len(atoms), 1)
    for (update, to_atoms), rows, mask in zip(layer.parts(), graph.neighbours, masks, strict=True):
        before = to_atoms.before_last(update(atoms[rows].flatten(1)))
        each = [to_atoms.last(before[:, i], i) + to_atoms.last_bias(i) for i in range(rows.shape[1])]
        messages = torch.stack(each, dim=1) * mask[:, None, None]
        arriving = torch.zeros_like(atoms).index_add(0, rows.flatten(), messages.flatten(0, 1))
        count = torch.bincount(rows.flatten(), minlength=len(atoms)).unsqueeze(1)
        received = received + count
        total = total + (arriving / count.clamp(min=1) if layer.aggregation == "mean-then-sum" else arriving)
    updated = total / received.clamp(min=1) if layer.aggregation == "mean" else total
    if layer.isolated == "keep" and not layer.residual:
        updated = torch.where(received > 0, updated, atoms)
    return atoms + updated if layer.residual else updated


# rankings of the ground rules that an atom stands in


@dataclass(frozen=True, eq=False)
class Query:
    """An atom with its ground rules, ranked in three ways."""

    asked: list[Asked]
    rankings: dict[str, list[GroundRule]]

    @classmethod
    def of(cls, predictor: r2n.Model, code: int, dice: Random) -> "Query | None":
        """None where no ground rule reaches the atom."""
        asked = Asked.directions(predictor, code)
        everything = list(dict.fromkeys(ground_rule for each in asked for ground_rule in each.ground_rules()))
        if not everything:
            return None
        gradients = dict.fromkeys(everything, 0.0)
        for each in asked:
            for ground_rule, effect in each.gradients().items():
                gradients[ground_rule] += effect / len(asked)
        rankings = {
            "r2n": as_explained(predictor, code, asked),
            "gradient times input": sorted(everything, key=lambda g: -gradients[g]),
            "random": dice.sample(everything, len(everything)),
        }
        return cls(asked, rankings)

    def fidelity(self, ranking: str, top: int) -> Fidelity:
        """Of the first ground rules of a ranking."""
        everything = self.rankings[ranking]
        listed, others = everything[:top], everything[top:]
        logits = (self.logit(without) for without in ((), others, listed, everything))
        return Fidelity(len(listed), len(everything), *logits)

    def logit(self, without: Sequence[GroundRule]) -> float:
        """The mean of both directions."""
        return fmean(each.logit(without) for each in self.asked)


def as_explained(predictor: r2n.Model, code: int, asked: Sequence[Asked]) -> list[GroundRule]:
    """The ground rules in the order of an explanation's reasons, found by their text."""
    rules = asked[0].graph.rules
    found = {}
    for ground_rule in (g for each in asked for g in each.ground_rules()):
        names = plain_names(predictor, ground_rule[1])
        found[rules[ground_rule[0]].name, tuple(dict.fromkeys(names))] = ground_rule
    reasons = predictor.explain(predictor.base.names(np.array([code]))[0], depth=1, top=None).reasons
    return [found[reason.rule, tuple(dict.fromkeys(ATOM.findall(reason.ground_rule)))] for reason in reasons]


def plain_names(predictor: r2n.Model, codes: Sequence[int]) -> list[str]:
    """Atoms as text; a reciprocal as the atom that it says the same as."""
    both = np.array(codes, np.int64)
    other = counterparts(predictor.network.base, both)
    return predictor.network.base.names(np.where((both >= predictor.base.size) & (other >= 0), other, both))


# runs


def queries(predictor: r2n.Model, most: int, dice: Random) -> Iterator[Query]:
    """Test queries that are true and answered so, and that ground rules reach; not of a constant with itself."""
    test = predictor.problem.test
    right = test.atoms[test.truth & (predictor.logits(test.atoms) > 0)]
    arguments = predictor.base.decode(right)[1]
    right = right[(arguments != arguments[:, :1]).any(axis=1) | (arguments.shape[1] == 1)].tolist()
    for code in dice.sample(right, min(most, len(right))):
        query = Query.of(predictor, code, dice)
        if query is not None:
            yield query


def main(
    folders: list[Path],
    most: Annotated[int, typer.Option(help="queries of a run")] = 40,
    seed: Annotated[int, typer.Option(help="which queries, and which random ranking")] = 0,
) -> None:
    """Print a table: runs, rankings, and for the first 1, 3, 5 ground rules sufficiency and necessity."""
    torch.set_num_threads(1)
    typer.echo("run | ranking | queries | " + " | ".join(f"first {top}: sufficiency, necessity" for top in TOPS))
    for folder in folders:
        found = list(queries(r2n.Model.load(folder), most, Random(seed)))
        moved = [query for query in found if abs(query.logit(()) - query.logit(query.rankings["r2n"])) >= LEAST]
        of_each = fmean(len(query.rankings["r2n"]) for query in moved)
        for ranking in ("r2n", "gradient times input", "random"):
            columns = [means([query.fidelity(ranking, top) for query in moved]) for top in TOPS]
            typer.echo(
                f"{folder.name} | {ranking} | {len(moved)} of {of_each:.1f} ground rules | {' | '.join(columns)}"
            )


def means(found: Sequence[Fidelity]) -> str:
    """The means of sufficiency and necessity."""
    return f"{fmean(f.sufficiency or 0 for f in found):.2f}, {fmean(f.necessity or 0 for f in found):.2f}"


if __name__ == "__main__":
    typer.run(main)
