"""The command line: a report as a table, for r2n train, evaluate and infer."""

from typing import Any

from rich.text import Text

from r2n.cli.screen import ScreenTable, screen
from r2n.reproduction.paper import PAPER_COUNTRIES

SHOWN_METRICS = ("ap", "roc_auc_macro", "accuracy", "brier", "ece", "mrr", "hits@1", "hits@3", "hits@10")


COMPARED_OTHERWISE = ("single network, mean", "deviation", "without reasoning")  # no parts of it, or tested
MUCH_BETTER = 0.02  # in the main metric: then a part of the network alone is worth a note


def print_report(report: dict[str, Any], name: str) -> None:
    """The metrics of one split; what nothing defines is left empty. Of a sample, how sure they are.

    What parts of the network reach alone stands beside it.
    """
    sample, intervals, beside = report["protocol"].get("sample"), report["intervals"], report["beside"]
    constraints = report["protocol"].get("constraints")
    title = f"{name}, {report['split']}" + (f": a sample, {sample}" if sample else "")
    table = ScreenTable("metric", title=title + (", with constraints" if constraints else ""))
    for column in ("value", *beside):
        table.add_column(column, justify="right")
    metrics = {metric: report["metrics"][metric] for metric in SHOWN_METRICS if metric in report["metrics"]}
    is_paper = report["split"] == "test" and name in PAPER_COUNTRIES and "ap" in metrics
    if is_paper:
        table.add_column("the paper's R2NS", justify="right")
    if sample:
        table.add_column("of all, at 95 %", justify="right")
    for metric, value in metrics.items():
        paper = [f"{PAPER_COUNTRIES[name]:.3f}" if metric in ("ap", "roc_auc_macro") else ""] if is_paper else []
        shown = [_number(numbers[metric]) for numbers in ({metric: value}, *beside.values())]
        table.add_texts([metric, *shown, *paper, *_interval(intervals.get(metric))])
    for metric in ("brier", "ece") if report.get("calibrated") else ():
        table.add_texts([f"{metric}, calibrated", _number(report["calibrated"][metric])])
    screen().print(table)
    shown = ("nothing_to_rank", "no metrics: "), ("not_held_out", f"{report['split']} is not held out: ")
    for key, words in (
        *shown,
        ("combination", "combination: "),
        ("constraints", "constraints: "),
        ("not_compared", "not compared "),
        ("ensemble", ""),
    ):
        if key in report["protocol"]:
            screen().print(Text(f"{words}{report['protocol'][key]}"))


def notes_beside(report: dict[str, Any]) -> list[str]:
    """Which part of the network is better alone than the whole, by much."""
    name = "mrr" if "mrr" in report["metrics"] else "ap"
    harm = report["protocol"].get("reasoning_harms")
    own, found = report["metrics"].get(name), [harm] if harm else []
    for part, metrics in report["beside"].items():
        alone = None if part in COMPARED_OTHERWISE else metrics.get(name)
        if own is not None and alone is not None and alone > own + MUCH_BETTER:
            which = "the rules alone, counted, reach" if part == "rules alone" else f"the {part} reaches"
            costly = "network does not earn its cost" if part == "rules alone" else "rules do not earn their cost"
            found.append(f"{report['split']}: {which} {name} {alone:.3f}, and all together {own:.3f}: the {costly}")
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(bounds: list[float | None] | None) -> list[str]:
    """Between which numbers a metric of all queries lies: no column where all were asked."""
    if bounds is None:
        return []
    low, high = bounds
    return ["" if low is None or high is None else f"{low:.4f} to {high:.4f}"]
