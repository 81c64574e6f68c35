"""A network on towns, as explanations take it."""

import numpy as np
import torch

from r2n.data.problem import Problem
from r2n.explanation.neighbourhood import Subject
from r2n.model.answers import Question
from r2n.model.model import Model
from r2n.model.run import prepare_run


def predictor_of(problem: Problem, *changes: str, seed: int = 0) -> Model:
    """A network that has learned nothing, with weights large enough to tell atoms apart."""
    run = prepare_run(problem, problem.options.changed([*changes]), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in run.model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    run.model.double()
    return Model.from_run(run)


def subject(problem: Problem, *changes: str) -> Subject:
    return predictor_of(problem, *changes).subject()


def code(of: Subject, atom: str) -> int:
    return int(Question.parse(of.base, atom).codes()[0])


def codes(of: Subject, *atoms: str) -> np.ndarray:
    return np.array([code(of, atom) for atom in atoms], np.int64)
