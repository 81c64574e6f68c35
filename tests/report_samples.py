"""A report with every section, made by hand."""

from dataclasses import replace
from math import nan

import numpy as np

from r2n import parse_theory
from r2n.evaluation.by_query import PrecisionRecall, RankCounts
from r2n.evaluation.metrics import calibration
from r2n.evaluation.report import Report
from r2n.explanation.rules import LearnedClause, Occurrence, RuleAccount, RuleEffect, RuleReport
from r2n.reporting.run_report import (
    AnswerGroup,
    Curve,
    ExampleAnswer,
    PhaseCost,
    RunReport,
    SplitResult,
    shown_curves,
)
from tests.explanations import italy

RULES = parse_theory("rule manifold: near(x, y) & in(x, z) -> in(y, z)\nrule empty: near(x, y) -> near(y, x)").rules


def report(name: str = "countries", *, networks: int = 1) -> RunReport:
    """A report with every section, in which things from the data are called by this name."""
    probabilities = np.linspace(0.05, 0.95, 40)
    classified = Report(
        "valid",
        {"ap": 0.5, "roc_auc_macro": nan, "brier": 0.125},
        {name: {"queries": 40, "true": 24, "ap": 0.5}, "other": {"queries": 0, "true": 0, "ap": nan}},
        {"task": "classification", "queries": 40, "true": 24, "ap": "pooled over all queries", "groups": 0},
        calibration=calibration(probabilities, probabilities > 0.4),
        baselines={"rules alone": {"ap": 0.25}},
    )
    ranking = {"mrr": 0.5, "hits@1": 0.25, "hits@3": 0.5, "hits@10": 1.0}
    ranked = Report(
        "test",
        ranking,
        {name: {"ranks": 4, **ranking}},
        {"task": "ranking", "queries": 2, "sample": "2 of 9 queries"},
        {"optimistic": ranking, "pessimistic": ranking},
        intervals={"mrr": (0.4, 0.6)},
    )
    curve = PrecisionRecall(name, (0.0, 0.5, 1.0), (1.0, 1.0, 0.6), 0.8, 40, 24)
    curves = (
        Curve("loss", (1, 2, 3), (1000.0, 0.5, nan)),
        Curve("semantic", (1, 2, 3), (0.1, 0.2, 0.2)),
        Curve("valid", (2,), (0.75,), panel="validation"),
    )
    account = RuleAccount(
        RULES[0],
        "explicit",
        Occurrence(12, 8, 0.75, 0.5),
        RuleEffect(1.25, 0.1, 9, 0.875, 0.625, 0.375),
        (LearnedClause(RULES[1], 1000, 0.75, 20, None, 0.1),),
    )
    rules = RuleReport(name, "valid", 24, "ap", 0.875, 0.5, (account, RuleAccount(RULES[1], "explicit")))
    explained = replace(italy(), atom=f"locatedIn({name}, europe)", notes=(name,))
    answer = ExampleAnswer(f"in({name}, europe)", 0.97, False, f"rank 7; first is {name}", explained)
    predicate = {"name": name, "domains": (name, "place"), "is_closed": True, "true": 1234, "false": 0, "queries": 24}
    values = (("model.dim", "32", "32", "default", ""), ("model.layers", "2", "3", "set", ""))
    values = (*values, ("training.n3", "0.1", "0.0", "chosen", f"many facts of {name}"))
    keys = "key", "value", "default", "origin", "reason"
    return RunReport(
        name,
        (("known", "978 true atoms"), ("read from", name)),
        ((name, 12),),
        (predicate,),
        (f"rule manifold: near({name}, y) -> in(y, z)",),
        3,
        (SplitResult(classified, (curve,)), SplitResult(ranked, ranks=(RankCounts(name, (1, 1, 2, 0, 0)),))),
        shown_curves((curves,) * networks),
        rules,
        (AnswerGroup("Surest wrong answers", "The surest first.", (answer, ExampleAnswer("plain", 0.25, None))),),
        (PhaseCost("read", 0.5, 0.25, 0.125), PhaseCost("train", 30.0, 31.0, 0.5)),
        tuple(dict(zip(keys, row, strict=True)) for row in values),
        (f"a note about {name}",),
        (("test mrr", "0.500"),),
    )
