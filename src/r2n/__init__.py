"""Relational Reasoning Networks: facts, rules and features in, predictions with their reasons out.

The parts, in the order that data flows (docs/architecture.md explains them):

    logic/         symbols: domains, predicates, formulas, rules, theories and their files
    data/          what is known: the Herbrand base, tables of facts, evidence, features, problems
    datasets/      known problems
    grounding/     rules -> ground rules
    network/       ground rules -> tensors -> logits
    scoring        logits of atoms, and of the candidates of a query
    training/      negatives, losses, batches; `fit`
    evaluation/    metrics, ranking, classification, calibration
    explanation/   why an answer is given, and what rules do
    mining/        rules and constraints from facts
    store/         a model as a folder
    model/         a model: train, evaluate, predict, explain, change facts
    reporting/     pages of a run, comparisons
    reproduction/  the paper's tables
    serving/       HTTP API and page
    cli/           the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2n.data.features import FeatureTable as FeatureTable
    from r2n.data.knowledge_base import Evidence as Evidence
    from r2n.data.knowledge_base import KnowledgeBase as KnowledgeBase
    from r2n.data.problem import Problem as Problem
    from r2n.data.tables import Table as Table
    from r2n.datasets.benchmarks import load as load
    from r2n.errors import R2NError as R2NError
    from r2n.evaluation.report import Report as Report
    from r2n.explanation.records import Explanation as Explanation
    from r2n.logic.parser import parse_theory as parse_theory
    from r2n.logic.theory import Theory as Theory
    from r2n.mining.mine import mine as mine
    from r2n.model.answers import Answers as Answers
    from r2n.model.model import Model as Model
    from r2n.model.training import train as train
    from r2n.options import Options as Options

_HOMES = {
    "Answers": "model.answers",
    "Evidence": "data.knowledge_base",
    "Explanation": "explanation.records",
    "FeatureTable": "data.features",
    "KnowledgeBase": "data.knowledge_base",
    "Model": "model.model",
    "Options": "options",
    "Problem": "data.problem",
    "R2NError": "errors",
    "Report": "evaluation.report",
    "Table": "data.tables",
    "Theory": "logic.theory",
    "load": "datasets.benchmarks",
    "mine": "mining.mine",
    "parse_theory": "logic.parser",
    "train": "model.training",
}

__version__ = "0.1.0"
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch is loaded only if it is needed."""
    if name not in _HOMES:
        raise AttributeError(f"module 'r2n' has no attribute '{name}'")
    return getattr(import_module(f"r2n.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
