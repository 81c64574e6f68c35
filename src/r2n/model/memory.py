"""Memory budgets: what work needs, estimated before it is done."""

import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from r2n.components import aggregations, input_layers
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import ConfigError, MemoryLimitError
from r2n.grounding.counting import split_rules
from r2n.grounding.paths import PathGrounder
from r2n.grounding.store import MemoryBudget, Store, shown_size
from r2n.grounding.strategies import make_engine, make_grounder
from r2n.options import ModelOptions, Options
from r2n.progress import Progress, no_progress
from r2n.training.negatives import count_negatives

if TYPE_CHECKING:  # `r2n check` reads sizes and estimates memory without torch, which takes seconds to import
    import torch

    from r2n.network.factor_graph import FactorGraph
    from r2n.network.graph_sources import GraphSource

MEMORY_SHARE = 0.8  # of what is free: what may be taken where nobody says how much

# Of a training step, fitted to measured peaks: docs/decisions/033-memory-before-it-is-taken.md
FIXED_BYTES = 200 * 2**20  # what the first step takes whatever its size
BYTES_OF_ATOM = 480  # codes, labels, known states, batch, outputs
BYTES_OF_NEGATIVE = 28
BYTES_OF_POSITION = 16
FLOAT = 4  # bytes

# Floats kept for each dimension, forward and backward; those of input layers and aggregations are in `r2n.components`.
FLOATS_OF_LAYER = 5.0  # of a reasoning layer, for each atom
FLOATS_OF_RULE_OUTPUT = 5.0  # of out(g), for each ground rule
FLOATS_OF_SHALLOW_RULE = 1.5  # for each ground rule and layer: its embedding is kept, not computed again

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_MEMINFO, _CGROUP, _CGROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
MOST_UNITS = 1e15


def forget_peak() -> None:
    """Begin to measure anew, where the system can; else the peak is that of the process so far."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def peak_gigabytes() -> float:
    """The most memory the process has held since `forget_peak`, in GB."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e9
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def available_bytes() -> int:
    """The memory that is free: of the machine, and of the control groups (containers) of the process."""
    found = list(_free_in_groups())
    with suppress(OSError):
        lines = _MEMINFO.read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if found:
        return min(found)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return sys.maxsize


def _free_in_groups() -> Iterator[int]:
    """What the limit of each visible control group leaves; files that are only cached can be given up."""
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (_CGROUPS / "memory", _VERSION_1) if controllers else (_CGROUPS, _VERSION_2)
        limit_name, usage_name, idle_key = names
        group = root / path.lstrip("/")
        for folder in (part for part in (group, *group.parents) if part.is_relative_to(root)):
            with suppress(OSError, ValueError):  # no such file, or the limit is "max"
                limit, usage = int((folder / limit_name).read_text()), int((folder / usage_name).read_text())
                stat = (folder / "memory.stat").read_text().splitlines()
                idle = sum(int(entry.split()[1]) for entry in stat if entry.startswith(f"{idle_key} "))
                yield max(0, limit - usage + idle)


def parse_size(text: str) -> int:
    """`8GB`, `500 MB`, `2GiB` in bytes; a number up to 1 without a unit is a share of what is free."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(?:([kmgt]?)(i?)(b?))", text.strip(), re.IGNORECASE)
    hint = "write 8GB, 500MB, or 0.5 for half of what is free"
    if found is not None:
        number, unit = float(found[1]), (found[2] or found[4]).lower()
        if not unit and 0 < number <= 1:
            return int(number * available_bytes())
        if unit and not (found[3] and unit == "b") and 0 < number < MOST_UNITS:
            return int(number * (1024 if found[3] else 1000) ** "bkmgt".index(unit))
        hint = f"with a unit: {found[1]}GB" if number > 1 else hint
    raise ConfigError(f"'{text}' is no size of memory", hint=hint)


def check_memory(needed: int, limit: int | None, *, what: str, hints: Sequence[str]) -> None:
    """Refuse `what` (the subject of a sentence) if it needs more bytes than the limit (None: a share of the free)."""
    allowed, by = limit, "that --memory allows"
    if allowed is None:
        free = available_bytes()
        allowed, by = int(MEMORY_SHARE * free), f"that may be taken ({MEMORY_SHARE:g} of the {shown_size(free)} free)"
    if needed > allowed:
        what = f"{what} needs about {shown_size(needed)}, more than the {shown_size(allowed)} {by}"
        raise MemoryLimitError(what, hint="; or ".join([*hints, "allow more with --memory SIZE"]))


def training_bytes(
    options: Options, atoms: int, *, ground_rules: int = 0, positions: int = 0, negatives: int = 0
) -> int:
    """About the most bytes that a training step takes, with its collated graph, above the process before it.

    The counts are of the largest batch: its atoms, its ground rules, all their `positions`, and `negatives` as drawn.
    """
    model, layers = options.model, options.model.layers if options.model.has_layers else 0
    of_atom = input_layers[model.input].floats_per_atom + layers * FLOATS_OF_LAYER
    of_rule = FLOATS_OF_RULE_OUTPUT if options.training.semantic_weight > 0 and layers else 0.0
    of_rule += layers * FLOATS_OF_SHALLOW_RULE if model.mlp == "shallow" else 0.0
    of_position = layers * aggregations[model.aggregation].floats_per_position
    floats = model.dim * (atoms * of_atom + ground_rules * of_rule + positions * of_position)
    integers = atoms * BYTES_OF_ATOM + negatives * BYTES_OF_NEGATIVE + positions * BYTES_OF_POSITION
    return int(FIXED_BYTES + FLOAT * floats + integers)


def over_grids(options: Options) -> bool:
    """Whether the full Herbrand base is computed over grids, where the atoms' embeddings are never written out."""
    model, training = options.model, options.training
    reads_plain = model.evidence_input == "off" and model.reasoner != "fgnn" and not training.hiding
    keeps_form = model.mlp == "shallow" and aggregations[model.aggregation].is_linear
    can_be = input_layers[model.input].over_grids and (keeps_form or not model.has_layers)
    return training.asks_base and reads_plain and can_be


def make_source(
    knowledge: KnowledgeBase,
    options: Options,
    progress: Progress = no_progress,
    *,
    to_train: bool = False,
    memory: int | None = None,
) -> "GraphSource":
    """Where the graphs of atoms come from; `knowledge` is that of the training's language.

    Without reasoning layers only a t-norm in training (`to_train`) reads ground rules. Grounding and counting that take
    more than `memory` bytes (by default a share of what is free) are refused.
    """
    from r2n.network.graph_sources import Counted, GroundedOnDemand, Paths, Ungrounded

    ceiling = MemoryBudget(int(MEMORY_SHARE * available_bytes()) if memory is None else memory)
    grounding = options.grounding
    if options.model.rules == "counted" or options.model.blends:
        layered, rules = split_rules(knowledge) if options.model.rules == "counted" else (knowledge, ())
        changes = {} if layered.theory.rules or options.model.reasoner == "paths" else {"reasoner": "none"}
        changes |= {"rules": "layers", "input_score": False}
        others = options.model_copy(update={"model": options.model.model_copy(update=changes)})
        source = make_source(layered, others, progress, to_train=to_train, memory=memory)
        return Counted(source, Store(knowledge, ceiling=ceiling), rules, progress, grounding.max_groundings)
    if options.model.reasoner == "paths":
        grounder = PathGrounder(grounding.depth, grounding.width)
        return Paths(knowledge, grounder, options.training.leave_out == "pair")
    if not options.model.has_layers and not (to_train and options.training.regularisation != "off"):
        return Ungrounded()
    store = Store(knowledge, make_engine(memory=ceiling.most), ceiling, asks_closed=options.training.reads_closed)
    return GroundedOnDemand(store, make_grounder(grounding), progress)


def make_device(name: str = "auto") -> "torch.device":
    """The device that is named; `auto` is the first accelerator that is there, else the CPU."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [known for known, is_there in there.items() if is_there]
    if name != "auto" and name not in found:
        raise ConfigError(f"there is no device '{name}' here", hint=f"there is: {', '.join(found)}; or take auto")
    return torch.device(found[0] if name == "auto" else name)


BYTES_OF_ROW_SCORE = 20  # a score, its exponential, its gradients
BYTES_OF_VECTOR = 40  # of each complex component: two numbers, their squares in the optimiser, gradients, a best copy
BYTES_OF_WEIGHT = 24  # a number, its gradient, two moments of the optimiser, a best copy, a checkpoint
BYTES_OF_GRID_ATOM = 400  # logits and their gradients: measured on UMLS: 0.5 GB for 1.7 million atoms


def check_training(knowledge: KnowledgeBase, options: Options, limit: int | None) -> None:
    """Refuse atoms and weights that would not fit, before a negative is drawn or a network made."""
    training, model = options.training, options.model
    hints = ["set model.dim lower"]
    if training.batch_size is not None:
        constants = len(knowledge.language.constants)
        compared = constants if training.asks_base else min(constants, training.negatives or constants)
        scores = min(training.batch_size, len(knowledge.evidence)) * compared
        needed = FIXED_BYTES + scores * BYTES_OF_ROW_SCORE + constants * model.dim * BYTES_OF_VECTOR
        what, hints = f"a step that compares {scores:,} candidates", ["set training.batch_size lower", *hints]
    else:
        if training.asks_base:
            atoms, negatives = knowledge.base.size, 0
            what = f"{training.loss} over the full Herbrand base, {atoms:,} atoms,"
            hints = ["take loss = 'softmax' with training.negatives", *hints]
        else:
            negatives = count_negatives(knowledge.base, knowledge.evidence, training)
            atoms = len(knowledge.evidence) + negatives
            what, fewer = f"a training on {atoms:,} facts and negatives", "set training.negatives to 1 or more"
            hints = [f"draw fewer negatives: {fewer}", "ask less at once: set training.batch_size", *hints]
        needed = FIXED_BYTES + atoms * BYTES_OF_GRID_ATOM
        needed = needed if over_grids(options) else training_bytes(options, atoms, negatives=negatives)
    check_memory(needed, limit, what=what, hints=hints)
    weights = count_weights(knowledge, model)
    hints = ["set model.dim, model.rule_dim or model.encoder_dim lower"]
    hints += ["set model.layers lower", 'set model.rule_network = "shared"'] if model.has_layers else []
    needed, what = FIXED_BYTES + weights * BYTES_OF_WEIGHT, f"a network of about {weights:,} weights"
    check_memory(needed, limit, what=what, hints=hints)


def check_graph(options: Options, limit: int | None, graph: "FactorGraph") -> None:
    """Refuse a training graph that would not fit, before it is collated."""
    if over_grids(options) and None not in graph.shapes:
        return  # the atoms were checked before, and nothing is collated rule by rule
    positions = sum(part.numel() for part in graph.neighbours)
    needed = training_bytes(options, len(graph.atoms), ground_rules=len(graph), positions=positions)
    hints = [
        "draw fewer negatives: set training.negatives",
        "set model.dim or model.layers lower",
        "ground less: known-body or backward grounding, or typed and closed predicates",
    ]
    what = f"the training graph of {len(graph.atoms):,} atoms and {len(graph):,} ground rules"
    check_memory(needed, limit, what=what, hints=hints)


def count_weights(knowledge: KnowledgeBase, options: ModelOptions) -> int:
    """About how many numbers a network learns, without the maps from words, whose number is not known."""
    dim, language = options.dim, knowledge.language
    found = 2 * dim * (len(language.constants) + len(language.predicates))
    found += input_layers[options.input].extra_weights([predicate.arity for predicate in language.predicates], dim)
    if knowledge.features:
        found += (options.encoder_dim or dim) * dim
    if not options.has_layers:
        return found
    rules = split_rules(knowledge)[0].theory.rules if options.rules == "counted" else knowledge.theory.rules
    hidden, is_shared = options.rule_dim or dim, options.rule_network == "shared"
    sizes = [len(rule.atoms) for rule in rules]
    inner = hidden * hidden if options.mlp == "deep" else 0
    layer = 2 * len(rules) * hidden if is_shared else 0
    for positions in set(sizes) if is_shared else sizes:
        copies = 1 if options.reasoner == "fgnn" else positions
        layer += copies * dim * hidden + inner + copies * (inner + hidden * dim)
    outputs = (dim * dim if options.output == "mlp" else dim) + hidden * hidden
    return found + layer * options.layers + outputs
