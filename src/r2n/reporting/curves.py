"""Runs -> pages: the traces of a training -> its curves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from r2n.evaluation.plots import Curve
from r2n.store.folder import RunFolder
from r2n.store.trace import read_trace

LOSSES = ("loss", "supervised", "semantic")
LOSSES_WHERE_USED = ("regularisation", "rules")
OF_EACH_NETWORK = ("loss", "valid")

Networks = tuple[tuple[Curve, ...], ...]
"""The curves of each network of a run."""


def curves_of_networks(folder: RunFolder) -> Networks:
    """The curves of the networks whose training a run's traces tell of; one at least."""
    return tuple(tuple(training_curves(trace)) for trace in folder.traces)


def told_apart(networks: Networks) -> list[Curve]:
    """The curves of one network, or of several the loss and the validation metric of each, with its number."""
    if len(networks) == 1:
        return list(networks[0])
    return [
        replace(curve, name=f"{curve.name} {i}")
        for i, curves in enumerate(networks, start=1)
        for curve in curves
        if curve.name in OF_EACH_NETWORK
    ]


def training_curves(trace: Path) -> list[Curve]:
    """The losses over the epochs of a trace, and the validation metric where it was measured."""
    return _curves(read_trace(trace))


def _curves(records: Sequence[Mapping[str, Any]]) -> list[Curve]:
    names = [*LOSSES, *(name for name in LOSSES_WHERE_USED if any(record.get(name) for record in records))]
    epochs = tuple(record["number"] for record in records)
    curves = [Curve(name, epochs, tuple(record[name] for record in records)) for name in names]
    validated = [(record["number"], record["valid"]) for record in records if record["valid"] is not None]
    if validated:
        numbers, values = zip(*validated, strict=True)
        curves.append(Curve("valid", numbers, values, panel="validation"))
    return curves
