"""The paper's tables: how often out(g) tells whether a ground rule holds, where training did not know it."""

import numpy as np
import torch

from r2n.graph.known_states import known_states, known_truths
from r2n.knowledge.knowledge_base import Evidence
from r2n.runs.run import Run
from r2n.training.targets import rule_targets


def rule_accuracy(run: Run, split: str) -> dict[str, float]:
    """The accuracy of out(g) on the ground rules with at least one atom of a split and no atom of unknown truth.

    `rules_hold` is the share of these that hold: what saying "it holds" each time would score. Empty where there are no
    such ground rules, or no rule output.
    """
    queries, model, evidence = run.problem.queries[split], run.model, run.knowledge.evidence
    graph = run.source.around(queries.atoms)
    order = np.argsort(atoms := np.concatenate([evidence.atoms, queries.atoms]))
    everything = Evidence(atoms[order], np.concatenate([evidence.truth, queries.truth])[order])
    labels = torch.from_numpy(known_truths(model.base, graph.atoms.numpy(), everything))
    asked = torch.isin(graph.atoms, torch.from_numpy(queries.atoms.copy()))
    layout, known_then = model.lay_out(graph), known_states(model.base, graph.atoms, evidence)
    model.eval()
    with torch.no_grad():
        outputs = model(layout, known=known_then.to(model.device)).rules
    if not outputs:
        return {}
    right, holds = [], []
    for j, (out, rows) in enumerate(zip(outputs, graph.neighbours, strict=True)):
        known, truth = rule_targets(graph, j, labels)
        wanted = asked[rows[known]].any(dim=1)
        right.append((out.cpu()[known] > 0)[wanted] == truth[wanted])
        holds.append(truth[wanted])
    if not len(torch.cat(right)):
        return {}
    return {
        "rule_accuracy": float(torch.cat(right).double().mean()),
        "rules_hold": float(torch.cat(holds).double().mean()),
    }
