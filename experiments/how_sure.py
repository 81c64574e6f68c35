"""How sure: ensembles of 5 beside their single networks, and probabilities before and after calibration.

    python experiments/how_sure.py DIR countries cora cora-calibration smokers places nations kinship umls

Each problem is trained into a folder of DIR, in which an interrupted training goes on. The settings are those of
`r2n reproduce`. The test queries are asked at the end alone; no calibration sees them. Cora trains on its validation
folds; for `cora-calibration` it does not, and is calibrated on them. Smokers and places are generated, a problem a
seed; of places one network each is trained.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer
from scipy.special import expit

import r2n
from r2n.data.problem import Problem
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import average_precision, calibration
from r2n.model.calibration import calibrate
from r2n.model.run import evaluate_split, prepare_ensemble
from r2n.model.training import train_in
from r2n.options import Options
from r2n.reproduction.reproduce import table_rows
from r2n.scoring import AtomLogits

NETWORKS, SEEDS = 5, 5
PEOPLE, CIRCLES = 240, 30
SMOKERS = """
domain person
predicate friends(person, person) closed
predicate smokes(person)
predicate cancer(person)
rule peers: smokes(x) & friends(x, y) -> smokes(y)
rule causes: smokes(x) -> cancer(x)
"""
SMOKERS_OPTIONS = {
    "model": {"dim": 16, "layers": 2},
    "training": {"epochs": 150, "corrupted_positions": [], "hiding": 0.3},
}


TOWNS, MAPS = 300, 30
CORNERS = np.array([[0.2, 0.2], [0.2, 0.8], [0.8, 0.2], [0.8, 0.8]])
PLACES = """
domain place, region
predicate near(place, place) closed
predicate inside(place, region)
rule spreads: near(x, y) & inside(x, z) -> inside(y, z)
"""
PLACES_OPTIONS = {
    "model": {"dim": 16, "layers": 3, "aggregation": "mean"},
    "training": {"epochs": 200, "corrupted_positions": [-1], "hiding": 0.3},
}


def smokers(seed: int) -> Problem:
    """Circles of friends smoke or not, with exceptions, and smoking is no sentence: no one can be sure of an answer.

    Of half of the people it is known whether they smoke and are ill; a quarter each is asked for validation and test.
    """
    dice = np.random.default_rng(seed)
    circle = dice.integers(CIRCLES, size=PEOPLE)
    smokes = (dice.random(CIRCLES) < 0.4)[circle] ^ (dice.random(PEOPLE) < 0.15)
    cancer = dice.random(PEOPLE) < np.where(smokes, 0.6, 0.1)
    near = np.where(circle[:, None] == circle, 0.6, 0.005)
    friends = np.triu(dice.random((PEOPLE, PEOPLE)) < near, 1)
    friends |= friends.T
    split = dice.permutation(np.arange(PEOPLE) % 4)

    def tables(which: np.ndarray) -> list[r2n.Table]:
        names = [f"p{i}" for i in np.flatnonzero(which)]
        truths = {"smokes": smokes[which], "cancer": cancer[which]}
        return [r2n.Table(pa.table({"x": names, "label": truth.astype(int)}), name) for name, truth in truths.items()]

    pairs = {"x": [f"p{i}" for i, _ in np.argwhere(friends)], "y": [f"p{j}" for _, j in np.argwhere(friends)]}
    return Problem.build(
        f"smokers-{seed}",
        r2n.parse_theory(SMOKERS),
        [r2n.Table(pa.table(pairs), "friends"), *tables(split < 2)],
        {"valid": tables(split == 2), "test": tables(split == 3)},
        options=Options.model_validate(SMOKERS_OPTIONS),
    )


def places(seed: int) -> Problem:
    """Places around the four corners of a map, near the next ones; few lie where their neighbours do not.

    The region of 24 is asked for validation, that of 120 for the test.
    """
    dice = np.random.default_rng(seed)
    region = dice.integers(len(CORNERS), size=TOWNS)
    at = CORNERS[region] + 0.105 * dice.normal(size=(TOWNS, 2))
    region = np.where(dice.random(TOWNS) < 0.003 * (seed % 3), dice.integers(len(CORNERS), size=TOWNS), region)
    away = ((at[:, None] - at) ** 2).sum(-1) + 9 * np.eye(TOWNS)
    near = away.argsort(1).argsort(1) < dice.integers(3, 7, size=TOWNS)[:, None]
    near |= near.T
    valid, test, train = np.split(dice.permutation(TOWNS), [24, 144])

    def table(which: np.ndarray) -> r2n.Table:
        asked = [(f"p{i}", f"r{r}", int(region[i] == r)) for i in which for r in range(len(CORNERS))]
        return r2n.Table(pa.table(dict(zip(("x", "y", "label"), zip(*asked, strict=True), strict=True))), "inside")

    pairs = {"x": [f"p{i}" for i, _ in np.argwhere(near)], "y": [f"p{j}" for _, j in np.argwhere(near)]}
    return Problem.build(
        f"places-{seed}",
        r2n.parse_theory(PLACES),
        [r2n.Table(pa.table(pairs), "near"), table(train)],
        {"valid": [table(valid)], "test": [table(test)]},
        options=Options.model_validate(PLACES_OPTIONS),
    )


@dataclass(frozen=True)
class Asked:
    """A problem to train, the options, the group of rows that its figures belong to, and how many networks."""

    problem: Problem
    options: Options
    group: str
    networks: int = NETWORKS


GENERATED = {"smokers": (smokers, SEEDS, NETWORKS), "places": (places, MAPS, 1)}


def problems(name: str) -> Iterator[Asked]:
    """The problems of a name, each with the settings of its table."""
    if name in GENERATED:
        make, seeds, networks = GENERATED[name]
        for made in map(make, range(seeds)):
            yield Asked(made, made.options, name, networks)
        return
    table = "kgc" if name in ("nations", "kinship", "umls") else name.partition("-")[0]
    model = "R2NC" if table == "kgc" else "R2NS"
    for row in table_rows(table):
        for dataset in row.datasets if row.row == model else ():
            if table == "kgc" and dataset != name:
                continue
            problem = r2n.load(dataset)
            options = row.options(problem.options)
            if name == "cora-calibration":
                options = options.changed(["training.with_valid=false"])
            yield Asked(problem, options, dataset if table != "cora" else name)


Figures = dict[str, float]


def figures(logits: AtomLogits, problem: Problem, calibrated: Calibrated | None) -> Figures:
    """What networks reach on the test queries; probabilities before and after calibration."""
    test = problem.test
    if test.truth.all():
        return dict(evaluate_split(logits, problem, "test").metrics)
    scores = logits(test.atoms)
    before = calibration(expit(scores), test.truth)
    found = {"ap": average_precision(scores, test.truth), "brier": before.brier, "ece": before.ece}
    if calibrated is None:
        return found
    probabilities = calibrated(scores)
    after = calibration(probabilities, test.truth)
    found |= {"brier calibrated": after.brier, "ece calibrated": after.ece, "temperature": calibrated.temperature}
    wrong = (scores > 0) != test.truth
    sure = np.maximum(probabilities, 1 - probabilities)[wrong]
    raw = expit(np.abs(scores[wrong]))
    return found | {"sure of wrong": _mean(raw), "sure of wrong calibrated": _mean(sure)}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def measure(folder: Path, asked: Asked) -> tuple[list[Figures], Figures]:
    """Train an ensemble into a folder, or go on there; the figures of each network, and of all together."""
    run = prepare_ensemble(asked.problem, asked.options, 0, size=asked.networks)
    for _ in train_in(folder, run, resume=True):
        pass
    logits, problem = run.logits(), run.problem
    singles = [figures(part, problem, calibrate(run, part)) for part in logits.members]
    return singles, figures(logits, problem, calibrate(run))


def show(group: str, singles: list[Figures], together: list[Figures]) -> None:
    """A line a metric: mean and deviation of single networks, and of ensembles."""
    for metric in singles[0]:
        values = np.array([found[metric] for found in singles])
        both = np.array([found[metric] for found in together])
        shown = f"{np.nanmean(values):.4f} ± {np.nanstd(values):.4f}"
        typer.echo(f"{group:14} {metric:26} single {shown}   ensemble {np.nanmean(both):.4f}")


def main() -> None:
    """Train and measure the problems that are named."""
    folder, *names = sys.argv[1:]
    for name in names:
        groups: dict[str, tuple[list[Figures], list[Figures]]] = {}
        for asked in problems(name):
            singles, together = measure(Path(folder) / f"{name}-{asked.problem.name}", asked)
            groups.setdefault(asked.group, ([], []))
            groups[asked.group][0].extend(singles)
            groups[asked.group][1].append(together)
            typer.echo(f"# {asked.problem.name}: {together}")
        for group, found in groups.items():
            show(group, *found)


if __name__ == "__main__":
    main()
