"""All that is fuzzed, by name; a module is imported only where one of its readers is tried, for some need torch."""

from importlib import import_module

from tests.faults.fuzzing.target import Target

MODULES = ("problems", "rules", "atoms", "tables", "runs", "asking")


def targets_of(module: str) -> tuple[Target, ...]:
    return import_module(f"tests.faults.fuzzing.targets.{module}").TARGETS


def all_targets() -> dict[str, Target]:
    return {target.name: target for module in MODULES for target in targets_of(module)}
