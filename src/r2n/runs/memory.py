"""Predictions -> a run: how much memory work has taken, may take, and is going to take."""

import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2n.errors import ConfigError, MemoryLimitError
from r2n.grounding.ceiling import shown_size
from r2n.knowledge.options import Options

MEMORY_SHARE = 0.8  # of what is free: what may be taken where nobody says how much

# Of a training step, fitted to measured peaks: docs/decisions/033-memory-before-it-is-taken.md
FIXED_BYTES = 200 * 2**20  # what the first step takes whatever its size
BYTES_OF_ATOM = 480  # codes, labels, known states, layout, outputs
BYTES_OF_NEGATIVE = 28
BYTES_OF_POSITION = 16
FLOAT = 4  # bytes

# Floats kept for each atom and each of its dimensions, forward and backward, by input layer.
FLOATS_OF_INPUT = {"complex": 17.0, "rotate": 17.0, "distmult": 10.0, "pair": 11.0, "mlp": 7.0, "transe": 3.0}
FLOATS_OF_LAYER = 5.0  # of a reasoning layer, for each atom
FLOATS_OF_RULE_OUTPUT = 5.0  # of out(g), for each ground rule
FLOATS_OF_SHALLOW_RULE = 1.5  # for each ground rule and layer: its embedding is kept, not computed again
FLOATS_OF_MAXIMUM = 3.5  # for each position of a ground rule and layer: every message is kept

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_MEMINFO, _CGROUP, _CGROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
MOST_UNITS = 1e15
_UNITS = {"b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def forget_peak() -> None:
    """Begin to measure anew, where the system can; else the peak is that of the whole process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_gigabytes() -> float:
    """The most memory the process has held since `forget_peak`, in GB."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e9
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def available_bytes() -> int:
    """The memory that is free for this process: of the machine, and of the control groups (containers) it is in.

    Where the system tells neither, all the memory of the machine.
    """
    found = [*_free_in_machine(), *_free_in_groups()]
    return min(found) if found else _physical_bytes()


def _free_in_machine() -> Iterator[int]:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return
    yield from (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _free_in_groups() -> Iterator[int]:
    """What each control group of the process leaves, up to the root; those inside a container may not be visible."""
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, names = _CGROUPS / "memory", _VERSION_1
        elif not controllers:
            root, names = _CGROUPS, _VERSION_2
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                yield from _free_in_group(folder, *names)


def _free_in_group(folder: Path, limit_name: str, usage_name: str, idle_key: str) -> Iterator[int]:
    """The limit without what is used; files that are only cached can be given up."""
    try:
        limit, usage = int((folder / limit_name).read_text()), int((folder / usage_name).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        idle = sum(int(line.split()[1]) for line in lines if line.startswith(f"{idle_key} "))
    except (OSError, ValueError):  # no such file, or the limit is "max"
        return
    yield max(0, limit - usage + idle)


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return sys.maxsize


def parse_size(text: str) -> int:
    """`8GB`, `500 MB`, `2GiB` in bytes; a number up to 1 without a unit is a share of what is free."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(?:([kmgt]?)(i?)(b?))", text.strip(), re.IGNORECASE)
    if found is None:
        raise ConfigError(f"'{text}' is no size of memory", hint="write 8GB, 500MB, or 0.5 for half of what is free")
    number, unit = float(found[1]), (found[2] or found[4]).lower()
    if not unit and 0 < number <= 1:
        return int(number * available_bytes())
    units = _BINARY_UNITS if found[3] else _UNITS
    if unit not in units or not 0 < number < MOST_UNITS:
        raise ConfigError(
            f"'{text}' is no size of memory",
            hint=f"with a unit: {found[1]}GB" if number > 1 else "write 8GB, 500MB, or 0.5 for half of what is free",
        )
    return int(number * units[unit])


def allowed_bytes(limit: int | None) -> int:
    """The limit, by default `MEMORY_SHARE` of what is free."""
    return int(MEMORY_SHARE * available_bytes()) if limit is None else limit


def check_memory(needed: int, limit: int | None, *, what: str, ways_out: Sequence[str]) -> None:
    """Refuse what needs more bytes than the limit (by default `MEMORY_SHARE` of what is free), with the ways out.

    `what` is what needs them, as the subject of a sentence: "the training graph of 118,400,000 atoms".
    """
    if limit is not None:
        allowed, by = limit, "that --memory allows"
    else:
        free = available_bytes()
        allowed, by = int(MEMORY_SHARE * free), f"that may be taken ({MEMORY_SHARE:g} of the {shown_size(free)} free)"
    if needed > allowed:
        hint = "; or ".join([*ways_out, "allow more with --memory SIZE"])
        raise MemoryLimitError(
            f"{what} needs about {shown_size(needed)}, more than the {shown_size(allowed)} {by}", hint=hint
        )


def training_bytes(
    atoms: int,
    ground_rules: int,
    positions: int,
    dim: int,
    layers: int,
    *,
    negatives: int = 0,
    input: str = "complex",
    rule_outputs: bool = True,
    mlp: str = "deep",
    aggregation: str = "mean",
) -> int:
    """About the most bytes that a training step takes, with its layout, above the process before it.

    The counts are of the largest batch: its atoms, its ground rules, and the `positions` of all of these together.
    `negatives` are counted as drawn, with repetitions. `layers` are 0 without a reasoner; `rule_outputs`: whether
    out(g) is computed (semantic_weight above 0). The other options are those of [model].
    """
    of_atom = FLOATS_OF_INPUT.get(input, max(FLOATS_OF_INPUT.values())) + layers * FLOATS_OF_LAYER
    of_rule = FLOATS_OF_RULE_OUTPUT if rule_outputs and layers else 0.0
    of_rule += layers * FLOATS_OF_SHALLOW_RULE if mlp == "shallow" else 0.0
    of_position = layers * FLOATS_OF_MAXIMUM if aggregation == "max" else 0.0
    floats = dim * (atoms * of_atom + ground_rules * of_rule + positions * of_position)
    integers = atoms * BYTES_OF_ATOM + negatives * BYTES_OF_NEGATIVE + positions * BYTES_OF_POSITION
    return int(FIXED_BYTES + FLOAT * floats + integers)


def over_grids(options: Options) -> bool:
    """Whether a whole Herbrand base is computed over grids, where the atoms' embeddings are never written out."""
    model, training = options.model, options.training
    reads_plain = model.evidence_input == "off" and model.reasoner != "fgnn" and not training.hiding
    keeps_form = model.mlp == "shallow" and model.aggregation != "max" and not model.exclude_self
    is_linear = model.input not in ("mlp", "pair")
    return training.loss == "full-softmax" and reads_plain and is_linear and (keeps_form or not model.has_layers)
