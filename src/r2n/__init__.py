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
    from r2n.data.candidates import Candidates as Candidates
    from r2n.data.features import FeatureTable as FeatureTable
    from r2n.data.herbrand import HerbrandBase as HerbrandBase
    from r2n.data.knowledge_base import Evidence as Evidence
    from r2n.data.knowledge_base import KnowledgeBase as KnowledgeBase
    from r2n.data.problem import Problem as Problem
    from r2n.data.tables import Table as Table
    from r2n.datasets.benchmarks import load as load
    from r2n.errors import R2NError as R2NError
    from r2n.evaluation.evaluate import evaluate as evaluate
    from r2n.evaluation.report import Report as Report
    from r2n.grounding.backward import BackwardGrounder as BackwardGrounder
    from r2n.grounding.full import FullGrounder as FullGrounder
    from r2n.grounding.ground_rules import Grounding as Grounding
    from r2n.grounding.known_body import KnownBodyGrounder as KnownBodyGrounder
    from r2n.grounding.store import Store as Store
    from r2n.logic.language import Domain as Domain
    from r2n.logic.language import Predicate as Predicate
    from r2n.logic.parser import parse_theory as parse_theory
    from r2n.logic.theory import Rule as Rule
    from r2n.logic.theory import Theory as Theory
    from r2n.model.predictor import Predictor as Predictor
    from r2n.model.trained import Trained as Trained
    from r2n.network.factor_graph import FactorGraph as FactorGraph
    from r2n.network.graph_sources import GroundedOnDemand as GroundedOnDemand
    from r2n.network.graph_sources import WholeGraph as WholeGraph
    from r2n.network.r2n import R2N as R2N
    from r2n.options import Options as Options
    from r2n.training.fit import Epoch as Epoch
    from r2n.training.fit import fit as fit

_HOME = {
    "data.candidates": ["Candidates"],
    "data.features": ["FeatureTable"],
    "data.herbrand": ["HerbrandBase"],
    "data.knowledge_base": ["Evidence", "KnowledgeBase"],
    "data.problem": ["Problem"],
    "data.tables": ["Table"],
    "datasets.benchmarks": ["load"],
    "errors": ["R2NError"],
    "evaluation.evaluate": ["evaluate"],
    "evaluation.report": ["Report"],
    "grounding.backward": ["BackwardGrounder"],
    "grounding.full": ["FullGrounder"],
    "grounding.ground_rules": ["Grounding"],
    "grounding.known_body": ["KnownBodyGrounder"],
    "grounding.store": ["Store"],
    "logic.language": ["Domain", "Predicate"],
    "logic.parser": ["parse_theory"],
    "logic.theory": ["Rule", "Theory"],
    "model.predictor": ["Predictor"],
    "model.trained": ["Trained"],
    "network.factor_graph": ["FactorGraph"],
    "network.graph_sources": ["GroundedOnDemand", "WholeGraph"],
    "network.r2n": ["R2N"],
    "options": ["Options"],
    "training.fit": ["Epoch", "fit"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch is loaded only by those who need the graph."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'r2n' has no attribute '{name}'")
    return getattr(import_module(f"r2n.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, "__version__"]
