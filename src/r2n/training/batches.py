"""Predictions -> a trained network: what one step sees, the whole graph or a part of it, and what it asks there."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.graph.batching import Batch, falling_apart
from r2n.graph.factor_graph import FactorGraph
from r2n.training.targets import Questions, rule_truths


@dataclass(frozen=True, eq=False)
class Step:
    """A graph, the questions about it, and what is known of its atoms.

    `supervised` and `semantic` weigh the losses, which are means over the questions of the step, so that their mean
    over all steps of an epoch is the mean over the questions of the whole graph.
    """

    graph: FactorGraph
    questions: Questions
    known: Int64[Tensor, " atoms"]
    supervised: float = 1.0
    semantic: float = 1.0


def steps_of(whole: Step, batches: int | None, *, whole_rules: bool = False) -> list[Step]:
    """The steps of an epoch: one over the whole graph, or at most `batches` over parts that share nothing.

    What no question touches is in no part, for no loss can feel it; unless (`whole_rules`) one asks every ground rule.
    """
    if batches is None:
        return [whole]
    questions = whole.questions
    wanted = torch.full((len(whole.graph.atoms),), whole_rules)
    wanted[questions.asked] = True
    for rows, (known, _) in zip(whole.graph.neighbours, questions.rules, strict=True):
        wanted[rows[known].flatten()] = True
    parts = falling_apart(whole.graph, wanted, batches)
    steps = [Step(part.graph, _questions(questions, part), whole.known[part.kept]) for part in parts]
    asked, ruled = len(questions.asked), _ruled(questions)
    return [
        replace(
            step,
            supervised=len(step.questions.asked) * len(steps) / max(1, asked),
            semantic=_ruled(step.questions) * len(steps) / max(1, ruled),
        )
        for step in steps
    ] or [whole]


def _ruled(questions: Questions) -> int:
    return sum(len(known) for known, _ in questions.rules)


def _questions(questions: Questions, part: Batch) -> Questions:
    """The questions about the atoms and ground rules of a part."""
    labels = questions.labels[part.kept]
    is_asked = torch.zeros(len(questions.labels), dtype=torch.bool)
    is_asked[questions.asked] = True
    return Questions(
        labels=labels,
        asked=is_asked[part.kept].nonzero().flatten(),
        facts=questions.facts[:0],
        candidates=questions.candidates[:0],
        rules=tuple(rule_truths(part.graph, j, labels) for j in range(len(part.graph.rules))),
        open_atoms=questions.open_atoms[part.kept],
        first_constants=questions.first_constants[part.kept],
    )
