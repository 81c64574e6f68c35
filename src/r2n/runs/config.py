"""Predictions -> a run: options of a problem file -> the objects they name."""

import torch

from r2n.errors import ConfigError
from r2n.graph.sources import GraphSource, GroundedOnDemand, Ungrounded
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_engine, make_grounder
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import GroundingOptions, Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.reciprocal import with_reciprocals
from r2n.progress import Progress, no_progress
from r2n.training.objective import check_objective
from r2n.training.regularisation import refuse_without_explicit_rules


def as_trained(knowledge: KnowledgeBase, options: GroundingOptions) -> KnowledgeBase:
    """What is known, in the language that the network is trained in."""
    return with_reciprocals(knowledge) if options.reciprocal else knowledge


def problem_to_train(problem: Problem, options: Options) -> Problem:
    """The problem as it is trained on: with or without its validation queries."""
    if not options.training.with_valid:
        return problem
    if options.training.patience is not None:
        raise ConfigError(
            "the validation queries cannot both be trained on and tell when to stop",
            hint="leave out training.patience, or training.with_valid",
        )
    return problem.with_valid_as_evidence()


def make_source(
    knowledge: KnowledgeBase, options: Options, progress: Progress = no_progress, *, to_train: bool = False
) -> GraphSource:
    """Where the graphs of atoms come from; `knowledge` is that of the training's language.

    A network without reasoning layers reads no ground rule; only a t-norm in training (`to_train`) does.
    """
    if not options.model.has_layers and not (to_train and options.training.regularisation != "off"):
        return Ungrounded()
    return GroundedOnDemand(Store(knowledge, make_engine()), make_grounder(options.grounding), progress)


def make_device(name: str = "auto") -> torch.device:
    """The device that is named; `auto` is the first accelerator that is there, else the CPU."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [known for known, is_there in there.items() if is_there]
    if name != "auto" and name not in found:
        raise ConfigError(f"there is no device '{name}' here", hint=f"there is: {', '.join(found)}; or take auto")
    return torch.device(found[0] if name == "auto" else name)


def check_options(problem: Problem, options: Options) -> None:
    """Refuse options that contradict each other or the problem, before any work is done."""
    training = options.training
    check_objective(options.model.evidence_input if options.model.has_layers else "off", training)
    if training.patience is not None and "valid" not in problem.queries:
        raise ConfigError(
            "training.patience needs queries to validate on", hint="add [queries] valid, or drop patience"
        )
    if training.regularisation != "off" and all(rule.is_implicit for rule in problem.knowledge.theory.rules):
        refuse_without_explicit_rules()
