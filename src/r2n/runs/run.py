"""Who decides: one run is one folder, with its configuration, versions, seed, trace, checkpoint and report."""

import json
import os
import platform
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch import nn

from r2n.datasets.benchmarks import load
from r2n.errors import CheckpointError, ConfigError
from r2n.evaluation.evaluate import Report, known_facts
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.cache import fingerprint
from r2n.grounding.reach import reached_by
from r2n.grounding.strategies import make_grounder
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.knowledge.problem import Problem
from r2n.knowledge.problem_file import Options, TrainingOptions
from r2n.knowledge.reciprocal import reciprocal_codes, with_reciprocals
from r2n.model.r2n import R2N
from r2n.runs.scoring import AtomScores, evaluate_scores
from r2n.training.checkpoint import read_checkpoint, restore_trainer, trainer_state, write_atomically, write_checkpoint
from r2n.training.fit import Epoch, Trainer, Validate
from r2n.training.negatives import fact_corruptions

CONFIG, TRACE, REPORT = "config.json", "trace.jsonl", "report.json"
SECONDS_BETWEEN_CHECKPOINTS = 2.0
LARGEST_WHOLE_BASE = 20_000_000  # atoms
SMALL_GRAPH = 50_000  # ground rules: below, a second thread costs more than it gives


@dataclass(frozen=True, eq=False)
class Run:
    """A problem, its options and seed, and the network being trained on its graph.

    `encoders` are the domains whose features go through modules of the caller.
    """

    problem: Problem
    options: Options
    seed: int
    graph: FactorGraph
    trainer: Trainer
    encoders: tuple[str, ...] = ()

    @property
    def model(self) -> R2N:
        """The network."""
        return self.trainer.model

    def scores(self) -> AtomScores:
        """The network's logits for any atoms."""
        return AtomScores(self.model, self.graph, self.trainer.known)

    def evaluate(self, split: str) -> Report:
        """The report on a split: ranking where all its queries are true, else classification."""
        return evaluate_split(self.scores(), self.problem, split)


def evaluate_split(scores: AtomScores, problem: Problem, split: str) -> Report:
    """The report of scores on a split; ranking is filtered by the true atoms of all splits, as everybody does."""
    if split not in problem.queries:
        splits = ", ".join(problem.queries) or "none"
        raise ConfigError(f"the problem has no queries '{split}'", hint=f"it has: {splits}")
    base = problem.knowledge.base
    return evaluate_scores(scores, problem.queries[split], base, known_facts(problem), split=split)


def prepare_run(
    problem: Problem, options: Options, seed: int, *, encoders: Mapping[str, nn.Module] | None = None
) -> Run:
    """Ground, build graph, network and trainer; the only place where the global seed and the threads are set.

    `encoders` are modules of the caller for the features of domains, with the weights they begin with.
    """
    training, model_options = options.training, options.model.model_dump()
    problem = _told(problem, training)
    semantic_weight, reciprocal = model_options.pop("semantic_weight"), model_options.pop("reciprocal")
    knowledge = with_reciprocals(problem.knowledge) if reciprocal else problem.knowledge
    graph = build_graph(problem, knowledge, options, seed)
    training_options = training.model_dump(exclude={"with_valid"})
    torch.set_num_threads(training_options.pop("threads") or (1 if len(graph) < SMALL_GRAPH else os.cpu_count() or 1))
    torch.manual_seed(seed)
    model = R2N.build(knowledge, encoders=encoders, **model_options)
    validate = validation(problem, graph, knowledge.evidence) if training.patience is not None else None
    trainer = Trainer(
        model,
        graph,
        knowledge.evidence,
        semantic_weight=semantic_weight,
        seed=seed,
        validate=validate,
        **training_options,
    )
    return Run(problem, options, seed, graph, trainer, tuple(sorted(encoders or {})))


def build_graph(
    problem: Problem, knowledge: KnowledgeBase, options: Options, seed: int, asked: Codes | None = None
) -> FactorGraph:
    """Ground a problem around its evidence, its queries and what else is `asked`; `knowledge` may have reciprocals.

    To be asked makes no atom a candidate: else its answer would depend on what else is asked.
    """
    atoms = _atoms_of_interest(problem, knowledge, options.training, seed)
    if asked is not None:
        reciprocals = reciprocal_codes(knowledge.base, asked)
        atoms = np.unique(np.concatenate([atoms, asked, reciprocals[reciprocals >= 0]]))
    grounding = reached_by(make_grounder(options.grounding).ground(knowledge, atoms), atoms)
    return FactorGraph.from_grounding(grounding, atoms=atoms)


def _told(problem: Problem, training: TrainingOptions) -> Problem:
    """The problem as it is trained on."""
    if not training.with_valid:
        return problem
    if training.patience is not None:
        raise ConfigError(
            "the validation queries cannot both be trained on and tell when to stop",
            hint="leave out training.patience, or training.with_valid",
        )
    return problem.with_valid_told()


def _atoms_of_interest(problem: Problem, knowledge: KnowledgeBase, training: TrainingOptions, seed: int) -> Codes:
    """The atoms that the graph must hold: evidence, queries and corruptions, or the whole Herbrand base."""
    if training.loss == "full-softmax":
        if knowledge.base.size > LARGEST_WHOLE_BASE:
            raise ConfigError(
                f"full-softmax needs the whole Herbrand base, and this one has {knowledge.base.size:,} atoms",
                hint="take loss = 'softmax' with training.negatives",
            )
        return np.arange(knowledge.base.size)
    _, candidates = fact_corruptions(
        knowledge.base,
        knowledge.evidence,
        positions=training.corrupted_positions,
        ask_closed=training.ask_closed,
        samples=training.negatives,
        generator=np.random.default_rng(seed),
    )
    reciprocals = reciprocal_codes(knowledge.base, problem.atoms)
    parts = (problem.atoms, knowledge.evidence.atoms, reciprocals[reciprocals >= 0], candidates[candidates >= 0])
    return np.unique(np.concatenate(parts))


def validation(problem: Problem, graph: FactorGraph, evidence: Evidence) -> Validate:
    """The metric that chooses the best weights: average precision, or the mean reciprocal rank, of `valid` alone."""
    if "valid" not in problem.queries:
        raise ConfigError(
            "training.patience needs queries to validate on", hint="add [queries] valid, or drop patience"
        )

    valid = problem.valid
    facts = np.union1d(
        problem.train.atoms[problem.train.truth], valid.atoms[valid.truth]
    )  # not even the filter knows the test

    def validate(model: R2N) -> float:
        report = evaluate_scores(
            AtomScores.of(model, graph, evidence), valid, problem.knowledge.base, facts, split="valid"
        )
        return report.metrics["mrr" if "mrr" in report.metrics else "ap"]

    return validate


def config_of(run: Run) -> dict[str, Any]:
    """All that tells this run from another."""
    return {
        "problem": run.problem.source,
        "name": run.problem.name,
        "fingerprint": fingerprint(run.problem.knowledge),
        "options": run.options.model_dump(mode="json"),
        "encoders": list(run.encoders),
        "seed": run.seed,
        "versions": {"r2n": version("r2n"), "torch": torch.__version__, "python": platform.python_version()},
        "threads": torch.get_num_threads(),
    }


def train_in(
    folder: Path, run: Run, *, resume: bool = False, checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS
) -> Generator[Epoch, None, None]:
    """Train, keeping trace and checkpoint in the folder; `resume` goes on from what is there, or begins."""
    config = config_of(run)
    if resume and (folder / CONFIG).exists():
        _go_on(folder, run, config)
    else:
        _begin(folder, run, config)
    saved = monotonic()
    with (folder / TRACE).open("a", encoding="utf-8") as trace:
        while not run.trainer.is_done:
            epoch = run.trainer.step()
            trace.write(json.dumps(asdict(epoch)) + "\n")
            if monotonic() - saved > checkpoint_seconds or run.trainer.is_done:
                trace.flush()
                write_checkpoint(folder, *trainer_state(run.trainer))
                saved = monotonic()
            yield epoch
    run.trainer.finish()


def _begin(folder: Path, run: Run, config: dict[str, Any]) -> None:
    """Make the folder; weights that the seed does not give, those of the caller's modules, are kept from the start."""
    if (folder / CONFIG).exists():
        raise ConfigError(f"{folder} already holds a run", hint="go on with --resume, or give another --out")
    folder.mkdir(parents=True, exist_ok=True)
    if run.encoders:
        write_checkpoint(folder, *trainer_state(run.trainer))
    write_atomically(folder / CONFIG, json.dumps(config, indent=1).encode())


def _go_on(folder: Path, run: Run, config: dict[str, Any]) -> None:
    """Put the trainer where the checkpoint says, and cut the trace to it; without a checkpoint begin again."""
    kept = read_config(folder)
    for key in ("fingerprint", "options", "encoders", "seed", "threads"):
        if kept.get(key, []) != json.loads(json.dumps(config[key])):
            raise CheckpointError(
                f"the run in {folder} was begun with another {key}", hint="resume with the same, or give another --out"
            )
    checkpoint = read_checkpoint(folder)
    if checkpoint is not None:
        restore_trainer(run.trainer, *checkpoint)
    path = folder / TRACE
    lines = path.read_text("utf-8").splitlines()[: run.trainer.epoch] if path.exists() else []
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of the run in a folder."""
    try:
        return json.loads((folder / CONFIG).read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{folder} holds no run", hint="a run is made by: r2n train P --out DIR") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder / CONFIG} is damaged", hint="train again in another folder") from error


def load_run(folder: Path, *, problem: Problem | None = None, encoders: Mapping[str, nn.Module] | None = None) -> Run:
    """A trained run: its problem, loaded again and checked to be the same, and its network.

    A `problem` that was built in Python, and `encoders` of the caller, are given again.
    """
    config = read_config(folder)
    _check_encoders(folder, config.get("encoders", []), encoders or {})
    problem = _problem_again(folder, config) if problem is None else problem
    options = Options.model_validate(config["options"])
    if fingerprint(_told(problem, options.training).knowledge) != config["fingerprint"]:
        raise CheckpointError(
            f"the problem {config['problem'] or config['name']} has changed since the run in {folder}",
            hint="train again on it",
        )
    checkpoint = read_checkpoint(folder)
    if checkpoint is None or not checkpoint[1]["epoch"]:
        raise CheckpointError(
            f"the run in {folder} has no checkpoint yet", hint="train it: r2n train P --out DIR --resume"
        )
    run = prepare_run(problem, options, config["seed"], encoders=encoders)
    restore_trainer(run.trainer, *checkpoint)
    run.trainer.finish()
    return run


def _problem_again(folder: Path, config: dict[str, Any]) -> Problem:
    """The problem of a run, from where it was loaded."""
    if config["problem"] is None:
        raise ConfigError(
            f"the run in {folder} is of the problem '{config['name']}', which was built in Python",
            hint="build it again and give it: load_run(folder, problem=problem)",
        )
    return load(config["problem"])


def _check_encoders(folder: Path, wanted: list[str], given: Mapping[str, nn.Module]) -> None:
    """A run needs the modules that it was trained with, and takes no others."""
    if sorted(given) == sorted(wanted):
        return
    missing = [name for name in wanted if name not in given]
    listed = ", ".join(f"'{name}': module" for name in wanted)
    hint = f"give them again: load_run(folder, encoders={{{listed}}})" if wanted else "load it without encoders"
    what = f"no encoder is given for '{missing[0]}'" if missing else "encoders are given for other domains"
    raise ConfigError(
        f"the run in {folder} was trained with encoders of its own for {wanted or 'no domain'}; {what}", hint=hint
    )
