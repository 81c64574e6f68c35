"""A run, served: what the run is, what its rules do, and how good it is."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from r2n import __version__
from r2n.model.rule_report import rule_report
from r2n.reporting.pages import run_charts
from r2n.reporting.run_report import build_report
from r2n.reporting.write import read_training
from r2n.serving.replies import Reply
from r2n.serving.session import Session


def describe_run(session: Session, _: Mapping[str, Any]) -> Reply:
    """The problem, the network, the language and the rules."""
    predictor = session.predictor
    trained, language = predictor, predictor.base.language
    made, calibration = trained.options.model, predictor.calibration
    domains = [
        {
            "name": domain.name,
            "constants": len(language.members(domain)),
            "parts": [part.name for part in domain.parts],
        }
        for domain in language.domains
    ]
    predicates = [
        {"name": each.name, "domains": [domain.name for domain in each.domains], "closed": each.closed}
        for each in language.predicates
    ]
    return Reply.of(
        {
            "problem": trained.problem.name,
            "version": __version__,
            "input": made.input,
            "reasoner": made.reasoner,
            "layers": len(trained.network.layers),
            "dim": made.dim,
            "strategy": trained.options.grounding.strategy,
            "evidence_input": trained.network.evidence_input,
            "networks": len(predictor.members),
            "calibration": None if calibration is None else asdict(calibration),
            "facts": len(trained.problem.train),
            "constants": len(language.constants),
            "domains": domains,
            "predicates": predicates,
            "rules": [{"name": rule.name, "text": str(rule)} for rule in trained.problem.knowledge.theory.rules],
            "limits": session.limits.to_dict(),
        }
    )


def report_rules(session: Session, _: Mapping[str, Any]) -> Reply:
    """The document of `r2n rules --json`."""
    return Reply.of(rule_report(session.predictor).to_dict())


def report_run(session: Session, _: Mapping[str, Any]) -> Reply:
    """Curves, and the metrics, reliability and predicates' ranks by split: what the page of a run shows."""
    trained = session.predictor
    reports = [trained.evaluate(split, baselines=True) for split in trained.problem.queries]
    told = build_report(session.folder, trained, reports, read_training(session.folder), is_full=False)
    results = [
        {
            "report": result.report.to_dict(),
            "precision_recall": [asdict(curve) for curve in result.precision_recall],
            "ranks": [{**asdict(part), "ranks": part.ranks} for part in result.ranks],
        }
        for result in told.results
    ]
    return Reply.of(
        {
            "trained_on": asdict(told.trained_on),
            "results": results,
            "networks": [[asdict(curve) for curve in curves] for curves in told.networks],
            "phases": [asdict(phase) for phase in told.phases],
            "options": [asdict(line) for line in told.options],
            "figures": told.figures,
            "charts": {name: [asdict(card) for card in cards] for name, cards in run_charts(told).items()},
            "notes": told.notes,
        }
    )
