"""Relational Reasoning Networks: facts, rules and features in, predictions with their reasons out.

The parts, in the order that data flows (docs/architecture.md tells more):

    logic/       symbols: domains, predicates, formulas, rules, theories and their files
    knowledge/   what is known: the Herbrand base, tables of facts, evidence, features, problems
    datasets/    known problems
    grounding/   rules -> ground rules
    graph/       ground rules -> tensors
    model/       tensors -> predictions
    training/    predictions -> a trained network
    evaluation/  how good it is
    explanation/ why an answer is given, and what rules do
    mining/      rules and constraints from facts
    runs/        a training as a folder, whole in itself
    prediction/  a trained network, asked
    reporting/   runs and answers as pages and drawings
    reproduction/ the paper's tables
    serving/     a run over HTTP: an API and a page
    cli/         r2n check | ground | mine | train | evaluate | predict | infer | report | compare | ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2n.datasets.benchmarks import load as load
    from r2n.errors import R2NError as R2NError
    from r2n.evaluation.evaluate import Report as Report
    from r2n.evaluation.network import evaluate as evaluate
    from r2n.graph.factor_graph import FactorGraph as FactorGraph
    from r2n.graph.sources import GroundedOnDemand as GroundedOnDemand
    from r2n.graph.sources import WholeGraph as WholeGraph
    from r2n.grounding.backward import BackwardGrounder as BackwardGrounder
    from r2n.grounding.full import FullGrounder as FullGrounder
    from r2n.grounding.ground_rules import Grounding as Grounding
    from r2n.grounding.known_body import KnownBodyGrounder as KnownBodyGrounder
    from r2n.grounding.store import Store as Store
    from r2n.knowledge.candidates import Candidates as Candidates
    from r2n.knowledge.features import FeatureTable as FeatureTable
    from r2n.knowledge.herbrand import HerbrandBase as HerbrandBase
    from r2n.knowledge.knowledge_base import Evidence as Evidence
    from r2n.knowledge.knowledge_base import KnowledgeBase as KnowledgeBase
    from r2n.knowledge.options import Options as Options
    from r2n.knowledge.problem import Problem as Problem
    from r2n.knowledge.reading.tables import Table as Table
    from r2n.logic.language import Domain as Domain
    from r2n.logic.language import Predicate as Predicate
    from r2n.logic.parser import parse_theory as parse_theory
    from r2n.logic.theory import Rule as Rule
    from r2n.logic.theory import Theory as Theory
    from r2n.model.r2n import R2N as R2N
    from r2n.prediction.predictor import Predictor as Predictor
    from r2n.prediction.trained import Trained as Trained
    from r2n.training.fit import Epoch as Epoch
    from r2n.training.fit import fit as fit

_HOME = {
    "datasets.benchmarks": ["load"],
    "errors": ["R2NError"],
    "evaluation.evaluate": ["Report"],
    "evaluation.network": ["evaluate"],
    "graph.factor_graph": ["FactorGraph"],
    "graph.sources": ["GroundedOnDemand", "WholeGraph"],
    "grounding.backward": ["BackwardGrounder"],
    "grounding.full": ["FullGrounder"],
    "grounding.ground_rules": ["Grounding"],
    "grounding.known_body": ["KnownBodyGrounder"],
    "grounding.store": ["Store"],
    "knowledge.candidates": ["Candidates"],
    "knowledge.features": ["FeatureTable"],
    "knowledge.herbrand": ["HerbrandBase"],
    "knowledge.knowledge_base": ["Evidence", "KnowledgeBase"],
    "knowledge.options": ["Options"],
    "knowledge.problem": ["Problem"],
    "knowledge.reading.tables": ["Table"],
    "logic.language": ["Domain", "Predicate"],
    "logic.parser": ["parse_theory"],
    "logic.theory": ["Rule", "Theory"],
    "model.r2n": ["R2N"],
    "prediction.predictor": ["Predictor"],
    "prediction.trained": ["Trained"],
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
