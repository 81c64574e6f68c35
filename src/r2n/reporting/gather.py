"""Runs -> pages: a run and its reports -> all that its page tells. What other parts of r2n add comes in here.

Each part that costs time, or may be missing, is one function of this module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from r2n.data.herbrand import HerbrandBase
from r2n.errors import R2NError
from r2n.evaluation.by_query import ClassifiedQueries, RankedQueries, precision_recall, rank_counts
from r2n.evaluation.report import REASONING_HARMS, Report
from r2n.explanation.records import Explanation
from r2n.model.model import Model
from r2n.model.rule_report import rule_report
from r2n.reporting.curves import curves_of_networks
from r2n.reporting.overview import figures, option_lines, trained_on
from r2n.reporting.phases import PhaseCost
from r2n.reporting.records import Result, RuleTable, RunReport, ToldAnswers
from r2n.reporting.rule_lines import rule_table_of
from r2n.reporting.told_answers import Explain, told_answers
from r2n.store.folder import RunFolder, read_config

TOLD = "test"
MOST_RULES = 20  # in the table: each costs passes over the ground rules
MANY_RULES = 300  # of these a pass takes long: few are told, and few answers explained
FEW_OF_MANY, EXPLAINED_OF_MANY = 5, 2


@dataclass(frozen=True, slots=True)
class Training:
    """What is known of a training beside its folder: its epochs, the cost of its phases, and the choices made for it.

    `chosen` has the reason for each option that nobody set, by its key.
    """

    epochs: int | None = None
    phases: tuple[PhaseCost, ...] = ()
    chosen: Mapping[str, str] | None = None


def gather(folder: Path, trained: Model, reports: Sequence[Report], training: Training) -> RunReport:
    """All that the page of the run in a folder tells; its queries were asked already."""
    notes: list[str] = []
    rules = _or_note(notes, "the rules", lambda: rule_table(trained))
    answers = _or_note(notes, "the answers", lambda: _answers(trained, reports, notes))
    told = gather_results(folder, trained, reports, training)
    return replace(told, rules=rules, answers=answers or (), notes=(*told.notes, *notes))


def gather_results(folder: Path, trained: Model, reports: Sequence[Report], training: Training) -> RunReport:
    """The same without its rules and answers, which take the most time."""
    config, base = read_config(RunFolder(folder)), trained.problem.knowledge.base
    return RunReport(
        trained_on(trained, config, training.epochs),
        tuple(_result(report, base) for report in reports),
        curves_of_networks(RunFolder(folder)),
        phases=training.phases,
        options=option_lines(config.options, training.chosen or {}),
        figures=figures(reports, training.phases),
        notes=tuple(str(report.protocol[REASONING_HARMS]) for report in reports if REASONING_HARMS in report.protocol),
    )


Made = TypeVar("Made")


def _or_note(notes: list[str], what: str, make: Callable[[], Made]) -> Made | None:
    """A section; where it cannot be made, the page is written without it and says why."""
    try:
        return make()
    except Exception as error:
        why = error.what if isinstance(error, R2NError) else f"{type(error).__name__}: {error}"
        notes.append(f"{what} are not told: {why}")
        return None


def _result(report: Report, base: HerbrandBase) -> Result:
    asked = report.by_query
    return Result(
        report,
        tuple(precision_recall(asked, base)) if isinstance(asked, ClassifiedQueries) else (),
        tuple(rank_counts(asked, base)) if isinstance(asked, RankedQueries) else (),
    )


def _answers(trained: Model, reports: Sequence[Report], notes: list[str]) -> tuple[ToldAnswers, ...]:
    """Of the test queries, or of the last ones that there are."""
    asked = [report.by_query for report in reports if report.split == TOLD] or [report.by_query for report in reports]
    if not asked or asked[-1] is None:
        return ()
    predictor = trained
    return told_answers(predictor, asked[-1], explainer(predictor, notes))


def explainer(predictor: Model, notes: list[str]) -> Explain:
    """What explains an atom; where it cannot be explained, a note says why."""

    most = EXPLAINED_OF_MANY if _has_many_rules(predictor) else None
    done = 0

    def explain(atom: str, against: str | None) -> Explanation | None:
        nonlocal done
        done += 1
        if most is not None and done > most:
            if done == most + 1:
                notes.append(
                    f"with more than {MANY_RULES:,} rules, {most} answers are explained; r2n explain tells more"
                )
            return None
        try:
            return predictor.explain(atom, against=against)
        except R2NError as error:
            notes.append(f"{atom} is not explained: {error.what}")
            return None

    return explain


def rule_table(trained: Model) -> RuleTable | None:
    """What each rule does; None where there is nothing to say of rules."""
    if not trained.problem.knowledge.theory.rules:
        return None
    most = FEW_OF_MANY if _has_many_rules(trained) else MOST_RULES
    return rule_table_of(rule_report(trained, most=most).to_dict())


def _has_many_rules(trained: Model) -> bool:
    return len(trained.problem.knowledge.theory.rules) > MANY_RULES
