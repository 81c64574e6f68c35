"""A trained network, explained: how often each rule stands in a graph, and whether it holds where all is known."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import expit

from r2n.explanation.rule_records import Occurrence
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_truths
from r2n.grounding.counting import RuleCounts
from r2n.knowledge.knowledge_base import Evidence
from r2n.logic.theory import Rule

Outs = Sequence[Float64[np.ndarray, " _"] | None]
"""For each rule the logits of its ground rules, None where the network was not trained to give any."""


def occurrences(
    graph: FactorGraph, truths: Int64[np.ndarray, " atoms"], outs: Outs | None = None
) -> dict[str, Occurrence]:
    """Of each rule of a graph, by name; `truths` are 1 true, 0 false, -1 unknown for each atom of the graph.

    Copies of a ground rule, in the neighbourhoods of several atoms, count once; their out(g) may differ.
    """
    found, codes = {}, graph.atoms.numpy()
    is_shared = graph.answered < len(graph.atoms)
    for j, (rule, rows) in enumerate(zip(graph.rules, graph.neighbours, strict=True)):
        ground_rules = rows.numpy()
        if is_shared and len(ground_rules):
            ground_rules = ground_rules[np.unique(codes[ground_rules], axis=0, return_index=True)[1]]
        out = None if outs is None else outs[j]
        mean = None if out is None or not len(out) else float(expit(out).mean())
        found[rule.name] = _occurrence(rule, truths[ground_rules], mean)
    return found


def _occurrence(rule: Rule, truths: Int64[np.ndarray, "ground_rules positions"], out: float | None) -> Occurrence:
    known = truths[(truths >= 0).all(axis=1)]
    if rule.formula is None or not len(known):
        return Occurrence(len(truths), len(known), None, out)
    return Occurrence(len(truths), len(known), float(rule.formula.evaluate(known == 1).mean()), out)


def counted_occurrences(counts: RuleCounts, evidence: Evidence) -> dict[str, Occurrence]:
    """Of rules that are counted: their bodies are known, so that they hold where the head is known to be true."""
    truths, rules = known_truths(counts.base, counts.codes, evidence), len(counts.rules)
    number = np.bincount(counts.rule, counts.counts, minlength=rules).astype(np.int64)
    known = np.bincount(counts.rule, counts.counts * (truths >= 0), minlength=rules).astype(np.int64)
    hold = np.bincount(counts.rule, counts.counts * (truths == 1), minlength=rules)
    return {
        rule.name: Occurrence(int(number[j]), int(known[j]), float(hold[j] / known[j]) if known[j] else None)
        for j, rule in enumerate(counts.rules)
    }
