"""A network on towns, as explanations take it."""

import numpy as np
import torch

from r2n.data.problem import Problem
from r2n.explanation.counterfactuals import ExplainedModel
from r2n.model.answers import Question
from r2n.model.model import Model
from r2n.model.run import prepare_run


def predictor_of(problem: Problem, *changes: str, seed: int = 0) -> Model:
    """A network that has learned nothing, with weights large enough to distinguish atoms."""
    run = prepare_run(problem, problem.options.changed([*changes]), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in run.model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    run.model.double()
    return Model.from_run(run)


def explained(problem: Problem, *changes: str) -> ExplainedModel:
    return predictor_of(problem, *changes).subject()


def codes(of: ExplainedModel, *atoms: str) -> np.ndarray:
    return np.array([int(Question.parse(of.base, atom).codes()[0]) for atom in atoms], np.int64)


def code(of: ExplainedModel, atom: str) -> int:
    return int(codes(of, atom)[0])
