"""Who decides: how often out(g) tells whether a ground rule holds, on ground rules that training did not know."""

import numpy as np
import torch

from r2n.knowledge.knowledge_base import Evidence
from r2n.runs.run import Run
from r2n.training.targets import ask


def rule_accuracy(run: Run, split: str) -> dict[str, float]:
    """The accuracy of out(g) on the ground rules with at least one atom of a split and no atom of unknown truth.

    `rules_hold` is the share of these that hold: what saying "it holds" each time would score. Empty where there are no
    such ground rules, or no rule output.
    """
    queries, model, graph = run.problem.queries[split], run.model, run.graph
    evidence = run.trainer.evidence
    order = np.argsort(atoms := np.concatenate([evidence.atoms, queries.atoms]))
    told = Evidence(atoms[order], np.concatenate([evidence.truth, queries.truth])[order])
    asked = torch.isin(graph.atoms, torch.from_numpy(queries.atoms.copy()))
    model.eval()
    with torch.no_grad():
        outputs = model(graph, known=run.trainer.known).rules
    if not outputs:
        return {}
    right, holds = [], []
    for out, rows, (known, truth) in zip(
        outputs, graph.neighbours, ask(model.base, graph, told, positions=()).rules, strict=True
    ):
        wanted = asked[rows[known]].any(dim=1)
        right.append((out[known] > 0)[wanted] == truth[wanted])
        holds.append(truth[wanted])
    if not len(torch.cat(right)):
        return {}
    return {
        "rule_accuracy": float(torch.cat(right).double().mean()),
        "rules_hold": float(torch.cat(holds).double().mean()),
    }
