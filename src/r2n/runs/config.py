"""Predictions -> a run: options of a problem file -> the objects they name."""

import torch

from r2n.errors import ConfigError
from r2n.graph.sources import Counted, GraphSource, GroundedOnDemand, Ungrounded
from r2n.grounding.ceiling import Ceiling
from r2n.grounding.counting import split_rules
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_engine, make_grounder
from r2n.knowledge.contradictions import contradictions, refuse_two_uses_of_valid
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.reciprocal import as_trained as as_trained
from r2n.progress import Progress, no_progress
from r2n.runs.memory import allowed_bytes


def problem_to_train(problem: Problem, options: Options) -> Problem:
    """The problem as it is trained on: with or without its validation queries."""
    if not options.training.with_valid:
        return problem
    refuse_two_uses_of_valid(options.training)
    return problem.with_valid_as_evidence()


def make_source(
    knowledge: KnowledgeBase,
    options: Options,
    progress: Progress = no_progress,
    *,
    to_train: bool = False,
    memory: int | None = None,
) -> GraphSource:
    """Where the graphs of atoms come from; `knowledge` is that of the training's language.

    A network without reasoning layers reads no ground rule; only a t-norm in training (`to_train`) does. Grounding and
    counting take no more than `memory` bytes (by default a share of what is free), or are refused.
    """
    ceiling, grounding = Ceiling(allowed_bytes(memory)), options.grounding
    if options.model.rules == "counted":
        layered, rules = split_rules(knowledge)
        changes = {} if layered.theory.rules else {"reasoner": "none"}
        others = options.model_copy(update={"model": options.model.model_copy(update={"rules": "layers", **changes})})
        source = make_source(layered, others, progress, to_train=to_train, memory=memory)
        return Counted(source, Store(knowledge, ceiling=ceiling), rules, progress, grounding.max_groundings)
    if not options.model.has_layers and not (to_train and options.training.regularisation != "off"):
        return Ungrounded()
    store = Store(knowledge, make_engine(memory=ceiling.most), ceiling)
    return GroundedOnDemand(store, make_grounder(grounding), progress)


def make_device(name: str = "auto") -> torch.device:
    """The device that is named; `auto` is the first accelerator that is there, else the CPU."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [known for known, is_there in there.items() if is_there]
    if name != "auto" and name not in found:
        raise ConfigError(f"there is no device '{name}' here", hint=f"there is: {', '.join(found)}; or take auto")
    return torch.device(found[0] if name == "auto" else name)


def check_options(problem: Problem, options: Options) -> None:
    """Refuse options that contradict each other or the problem, before any work is done."""
    for error in contradictions(problem, options):
        raise error
