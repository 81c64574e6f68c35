"""A trained network, asked: the rules that help it, and the clauses that it has learned, as a theory file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from r2n.errors import ConfigError, counted
from r2n.explanation.rule_records import RuleAccount, RuleReport
from r2n.logic.theory import Rule, Theory
from r2n.whole_files import write_atomically


def helps(account: RuleAccount) -> bool:
    """Whether the metric is better with the rule; where it is the same, whether the truth is more probable."""
    effect = account.effect
    if effect is None:
        return False
    if effect.metric is None or effect.without is None or effect.metric == effect.without:
        return effect.gain > 0
    return effect.metric > effect.without


def report_theory(report: RuleReport, theory: Theory) -> tuple[Theory, str]:
    """The theory with the rules that help and the learned clauses in place of its rules, and its text.

    What was counted of each stands in a comment above it. A clause has its confidence for a weight, or its fidelity
    where nothing is known.
    """
    taken = {rule.name for rule in theory.rules}
    commented = [pair for account in report.rules for pair in _commented(account, report.metric or "", taken)]
    if not commented:
        raise ConfigError(
            "there is nothing to export: no explicit rule helps, and no clause was learned",
            hint="train longer, or ask by other queries: --split",
        )
    whole = replace(theory, rules=tuple(rule for rule, _ in commented))
    lines = [f"# {' '.join(comment.split())}\n{rule}\n" for rule, comment in commented]
    return whole, str(replace(theory, rules=())) + "".join(lines)


def _commented(account: RuleAccount, metric: str, taken: set[str]) -> Iterator[tuple[Rule, str]]:
    """The rules that stand for one rule of the run, each with a comment."""
    if account.kind != "implicit":
        effect = account.effect
        if helps(account) and effect is not None:
            yield account.rule, f"{metric} {_number(effect.metric)}, without it {_number(effect.without)}"
        return
    for number, clause in enumerate(account.clauses, start=1):
        name = _free(f"{account.name}_{number}", taken)
        taken.add(name)
        weight = clause.fidelity if clause.confidence is None else clause.confidence
        yield replace(clause.rule, name=name, weight=round(weight, 4)), f"learned by '{account.name}': {clause.counts}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _free(name: str, taken: set[str]) -> str:
    """The name, or with more behind it where it is taken."""
    return name if name not in taken else _free(f"{name}_", taken)


def export_theory(report: RuleReport, theory: Theory, path: Path) -> str:
    """Write that theory, and say what was written."""
    whole, text = report_theory(report, theory)
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return f"{counted(len(whole.rules), 'rule')} in {path}"
